//! Rows that are fit, or not, and what becomes of each.

use jobq::handlers::{CreateFile, DeleteFile};
use jobq::store::Store as _;
use jobq::store::sqlite::SqliteStore;
use jobq::{JobTypes, NewJob, Status};

use super::support::{Note, claim, claim_request, complete, event_types, note, options_for, raw, rows, run_order};
use super::{Bench, python_insert};

const HELLO: &str = r#"{"text": "hello"}"#;
const FILE_A: &str = r#"{"path": "./a.txt", "content": "a"}"#;

#[test]
fn admission_fills_in_what_a_plain_row_lacks() {
    let Some(bench) = Bench::set_up() else { return };
    bench.insert_plain(&[["n", "note", HELLO], ["f", "create_file", FILE_A]]);
    assert_eq!(bench.gate("n"), Some("new"));
    assert_eq!(bench.queue.get("n").unwrap().payload_hash, None);

    assert_eq!(bench.queue.store().admit().unwrap(), 2);

    let by_library = {
        let other = tempfile::tempdir().unwrap();
        let queue = super::queue_at(&other.path().join("jobq.db"));
        let id = queue.enqueue(NewJob::raw("note", HELLO)).unwrap().id;
        queue.get(&id).unwrap()
    };
    let admitted = bench.queue.get("n").unwrap();
    assert_eq!(bench.gate("n"), Some("ready"));
    // Computed with another program: printf '{"text": "hello"}' | sha256sum.
    let hash = "fe63cf9369e847eaac71392cbe7f78a0e9cab4dc2f21e96af4ce478e3ac7bb1b";
    assert_eq!(admitted.payload_hash.as_deref(), Some(hash));
    assert!(admitted.idempotency_key.as_deref().is_some_and(|key| key.starts_with("payload:")));
    assert_eq!(admitted.idempotency_key, by_library.idempotency_key);
    assert_eq!(
        (admitted.timeout, admitted.backoff_base, admitted.backoff_max, admitted.max_attempts),
        (by_library.timeout, by_library.backoff_base, by_library.backoff_max, by_library.max_attempts)
    );
    let file = bench.queue.get("f").unwrap();
    assert_eq!(file.holds.unwrap().as_str(), r#"["path:a.txt"]"#);
    assert_eq!(file.idempotency_key, None, "file jobs are compared by their path, not by a key");
    let holds = rows(&raw(&bench.db), "SELECT key, seq, job_id, active FROM job_holds");
    assert_eq!(holds, [["path:a.txt", "2", "f", "0"]]);
    assert_eq!(event_types(&bench.queue, "n"), ["queued"]);
}

#[test]
fn plain_and_library_jobs_on_one_path_run_in_the_order_they_were_accepted() {
    let Some(bench) = Bench::set_up() else { return };
    let queue = &bench.queue;
    let first = queue.enqueue(CreateFile::text("a.txt", "1")).unwrap().id;
    bench.insert_plain(&[["second", "delete_file", r#"{"path": "a.txt"}"#], ["third", "create_file", FILE_A]]);
    let fourth = queue.enqueue(DeleteFile { path: "a.txt".to_owned(), require_exists: false }).unwrap().id;
    bench.insert_plain(&[["fifth", "create_file", FILE_A]]);

    let alone = claim(queue.store(), 10);
    assert_eq!(alone.iter().map(|c| &c.job.id).collect::<Vec<_>>(), [&first], "the others are behind it");
    complete(queue.store(), &alone[0]);
    assert_eq!(run_order(queue.store()), ["second", "third", &fourth, "fifth"]);
}

/// As schema.sql says: a row that left `max_attempts` out cannot be told from one that said 3.
#[test]
fn a_row_has_its_types_times_and_three_attempts_and_keeps_what_it_brings() {
    let Some(bench) = Bench::set_up() else { return };
    let bucket = |name: &str| format!(r#"{{"resourceType":"AWS::S3::Bucket","resourceId":"{name}","config":null}}"#);
    bench.insert_plain(&[["plain", "sync_aws", &bucket("a")]]);
    let own = ["own", "sync_aws", &bucket("b"), "9", "7000", "10", "20"];
    bench.insert("id, type, payload, max_attempts, timeout, backoff_base, backoff_max", &[&own]);
    assert_eq!(bench.queue.store().admit().unwrap(), 2);
    let got = |id: &str| {
        let job = bench.queue.get(id).unwrap();
        (job.max_attempts, job.timeout, job.backoff_base, job.backoff_max)
    };
    assert_eq!(got("plain"), (3, Some(3_600_000), Some(2_000), Some(60_000)));
    assert_eq!(got("own"), (9, Some(7_000), Some(10), Some(20)));
}

#[test]
fn an_invalid_row_fails_through_claimed_and_alone() {
    let Some(bench) = Bench::set_up() else { return };
    bench.insert_plain(&[
        ["before", "note", r#"{"text": "before"}"#],
        ["not-json", "note", "{"],
        ["wrong-field", "note", r#"{"txt": 1}"#],
        ["not-an-object", "note", "[]"],
        ["bad-path", "create_file", r#"{"path": "../etc/passwd", "content": ""}"#],
        ["twice", "sync_aws", r#"{"resourceType":"A::B::C","resourceId":"a","config":{"a":1,"\u0061":2}}"#],
        ["../x", "note", r#"{"text": "bad name"}"#],
        ["after", "note", r#"{"text": "after"}"#],
    ]);
    bench.insert("id, type, payload, holds", &[&["bad-holds", "note", HELLO, r#"["path:a.txt"]"#]]);

    assert_eq!(run_order(bench.queue.store()), ["before", "after"]);

    for (id, reason) in [
        ("not-json", "payload: is not JSON"),
        ("wrong-field", "payload: unknown field `txt`"),
        ("not-an-object", "payload: is JSON but not an object"),
        ("bad-path", "path: contains `..`"),
        ("twice", "payload: an object has the key \"a\" twice"),
        ("../x", "id: is at most 64 letters"),
        ("bad-holds", "holds: is a JSON array of lanes"),
    ] {
        let job = bench.queue.get(id).unwrap();
        assert_eq!((job.status, job.attempts, job.token), (Status::Failed, 1, 1), "{id}");
        let error = job.last_error.unwrap();
        assert!(error.starts_with(&format!("invalid_input: {reason}")), "{id}: {error}");
        assert_eq!(event_types(&bench.queue, id), ["queued", "claimed", "failed"], "{id}");
    }
    assert_eq!(rows(&raw(&bench.db), "SELECT * FROM job_holds"), Vec::<Vec<String>>::new());
}

#[test]
fn a_duplicate_is_cancelled_and_what_waited_on_it_waits_on_the_one_that_stands_for_it() {
    let Some(bench) = Bench::set_up() else { return };
    let first = bench.queue.enqueue(note("hello")).unwrap().id;
    bench.insert_plain(&[["again", "note", HELLO], ["f1", "create_file", FILE_A], ["f2", "create_file", FILE_A]]);
    bench.insert("id, type, payload, waiting_on", &[&["waiter", "note", r#"{"text": "waiter"}"#, "again"]]);

    bench.queue.store().admit().unwrap();

    let again = bench.queue.get("again").unwrap();
    assert_eq!((again.status, again.last_error), (Status::Cancelled, Some(format!("duplicate of {first}"))));
    assert_eq!(event_types(&bench.queue, "again"), ["queued", "cancelled"]);
    let f2 = bench.queue.get("f2").unwrap();
    assert_eq!((f2.status, f2.last_error.as_deref()), (Status::Cancelled, Some("duplicate of f1")));
    let waiter = bench.queue.get("waiter").unwrap();
    assert_eq!((waiter.status, waiter.waiting_on.as_deref()), (Status::Pending, Some(first.as_str())));
    assert_eq!(bench.gate("waiter"), Some("waiting"));
    assert_eq!(run_order(bench.queue.store()), [first.as_str(), "f1", "waiter"]);
}

#[test]
fn a_key_that_is_given_is_kept_and_a_taken_one_is_refused_at_once() {
    const COLUMNS: &str = "id, type, payload, idempotency_key";
    let Some(bench) = Bench::set_up() else { return };
    bench.insert(COLUMNS, &[&["keyed", "note", HELLO, "mine"]]);
    bench.queue.store().admit().unwrap();
    assert_eq!(bench.queue.get("keyed").unwrap().idempotency_key.as_deref(), Some("mine"));

    let refused = python_insert(&bench.db, COLUMNS, &[&["other", "note", r#"{"text": "other"}"#, "mine"]]);
    let error = refused.unwrap_err();
    assert!(error.starts_with("IntegrityError: jobq: there is a job with this id or key already"), "{error}");
    assert!(bench.queue.get("other").unwrap_err().is_not_found());
}

#[test]
fn an_empty_key_means_never_a_duplicate() {
    let Some(bench) = Bench::set_up() else { return };
    let keyless: &[&[&str]] =
        &[&["one", "note", HELLO, ""], &["two", "note", HELLO, ""], &["f1", "create_file", FILE_A, ""]];
    bench.insert("id, type, payload, idempotency_key", keyless);
    bench.insert("id, type, payload, idempotency_key", &[&["f2", "create_file", FILE_A, ""]]);
    assert_eq!(run_order(bench.queue.store()), ["one", "two", "f1", "f2"]);
}

#[test]
fn lanes_that_a_row_names_are_honoured() {
    let Some(bench) = Bench::set_up() else { return };
    let lane = r#"["lane:x"]"#;
    bench.insert(
        "id, type, payload, holds",
        &[&["l1", "note", r#"{"text": "1"}"#, lane], &["l2", "create_file", FILE_A, lane]],
    );
    let l3 = bench.queue.enqueue(NewJob::of(&note("3")).lane("x")).unwrap().id;

    let claimed = claim(bench.queue.store(), 10);
    assert_eq!(claimed.iter().map(|c| c.job.id.as_str()).collect::<Vec<_>>(), ["l1"]);
    assert_eq!(bench.queue.get("l2").unwrap().holds.unwrap().as_str(), r#"["lane:x","path:a.txt"]"#);
    assert_eq!((bench.gate("l2"), bench.gate(&l3)), (Some("held"), Some("held")));
    complete(bench.queue.store(), &claimed[0]);
    assert_eq!(run_order(bench.queue.store()), ["l2", &l3]);
}

#[test]
fn a_row_of_an_unknown_type_waits_for_a_process_that_knows_it() {
    let Some(bench) = Bench::set_up() else { return };
    let stranger = SqliteStore::open(jobq::store::sqlite::SqliteOptions {
        types: JobTypes::builtin(),
        ..options_for(&bench.db, false)
    })
    .unwrap();
    bench.insert_plain(&[["n", "note", HELLO], ["f", "create_file", FILE_A]]);

    let mut request = claim_request(10);
    assert!(request.types.contains(&"note".to_owned()));
    let claimed: Vec<_> = stranger.claim(request.clone()).unwrap().into_iter().map(|c| c.job.id).collect();
    assert_eq!(claimed, ["f"], "a type that this process does not know is not even looked at");
    assert_eq!(bench.gate("n"), Some("new"));

    request.types = vec![<Note as jobq::Payload>::TYPE.to_owned()];
    let claimed: Vec<_> = bench.queue.store().claim(request).unwrap().into_iter().map(|c| c.job.id).collect();
    assert_eq!(claimed, ["n"]);
}

#[test]
fn a_row_that_waits_on_what_will_not_come_fails() {
    let Some(bench) = Bench::set_up() else { return };
    let text = |n: u8| format!(r#"{{"text": "{n}"}}"#);
    let [one, two, three, four, five] = [1, 2, 3, 4, 5].map(text);
    bench.insert_plain(&[["failing", "note", "{"]]);
    bench.insert(
        "id, type, payload, waiting_on",
        &[
            &["on-later", "note", &one, "later"],
            &["on-itself", "note", &two, "on-itself"],
            &["on-nobody", "note", &three, "nobody"],
            &["on-failed", "note", &four, "failing"],
        ],
    );
    bench.insert_plain(&[["later", "note", &five]]);

    assert_eq!(run_order(bench.queue.store()), ["later"]);
    for (id, reason) in [
        ("on-later", "job later was queued later"),
        ("on-itself", "job on-itself was queued later"),
        ("on-nobody", "no job nobody"),
        ("on-failed", "job failing is failed"),
    ] {
        assert_eq!(bench.queue.get(id).unwrap().status, Status::Failed, "{id}");
        let error = bench.last_error(id);
        assert!(error.starts_with("invalid_input: waiting_on") && error.contains(reason), "{id}: {error}");
    }
}
