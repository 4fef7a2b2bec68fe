//! What applications call: typed payloads and results, their own transactions,
//! waiting.

#[path = "queue_api/other_files.rs"]
mod other_files;

use std::time::Duration;

use jobq::liveness::OwnerLock;
use jobq::store::{ClaimRequest, Completion, Store as _};
use jobq::{EnqueueOutcome, ErrorKind, Filter, JobTypes, NewJob, Payload, Queue, QueueOptions, Status};
use rusqlite::{Connection, TransactionBehavior};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Sum {
    numbers: Vec<u64>,
}

impl Payload for Sum {
    const TYPE: &'static str = "sum";
    type Output = u64;

    fn validate(&self) -> jobq::Result<()> {
        if self.numbers.is_empty() {
            return Err(jobq::Error::invalid("numbers", "must not be empty"));
        }
        Ok(())
    }
}

fn open(folder: &tempfile::TempDir) -> Queue {
    let types = JobTypes::builtin().with::<Sum>();
    QueueOptions::at(folder.path().join("app.db")).create(true).types(types).open().unwrap()
}

fn application(folder: &tempfile::TempDir) -> Connection {
    Connection::open(folder.path().join("app.db")).unwrap()
}

/// Claims the one ready job and completes it with this result.
fn complete_next(queue: &Queue, lock: &OwnerLock, result: &str) -> String {
    let request = ClaimRequest {
        owner: lock.owner().clone(),
        types: vec!["sum".into()],
        limit: 1,
        limits: jobq::store::Limits::new(),
    };
    let claimed = queue.store().claim(request).unwrap().remove(0);
    let id = claimed.lease.id.clone();
    let completion = Completion { lease: claimed.lease, result: Some(result.into()), follow_ups: Vec::new() };
    queue.store().complete(vec![completion]).unwrap().remove(0).unwrap();
    id
}

#[test]
fn a_typed_payload_goes_in_and_a_typed_result_comes_out() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let lock = OwnerLock::acquire(&queue.owners_folder()).unwrap();
    let job = queue.enqueue(Sum { numbers: vec![1, 2, 3] }).unwrap();
    assert_eq!(queue.result::<Sum>(&job.id).unwrap(), None, "not yet");
    assert_eq!(complete_next(&queue, &lock, "6"), job.id);
    assert_eq!(queue.result::<Sum>(&job.id).unwrap(), Some(6));
    assert_eq!(queue.get(&job.id).unwrap().payload::<Sum>().unwrap().numbers, [1, 2, 3]);
    let other = queue.enqueue(NewJob::raw("other", "{}")).unwrap();
    assert!(queue.result::<Sum>(&other.id).unwrap_err().is_invalid(), "another type's result");
}

/// With `flatten`, a map can bring a key that the type has already.
#[test]
fn a_typed_payload_that_is_written_with_a_key_twice_is_refused() {
    #[derive(Serialize, Deserialize)]
    struct Open {
        to: String,
        #[serde(flatten)]
        more: std::collections::BTreeMap<String, String>,
    }
    impl Payload for Open {
        const TYPE: &'static str = "open";
        type Output = ();
    }
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let job = |key: &str| Open { to: "a".into(), more: [(key.into(), "b".into())].into() };
    let refused = queue.enqueue(job("to")).unwrap_err();
    assert_eq!((refused.kind(), refused.field()), (ErrorKind::Invalid, Some("payload")), "{refused}");
    assert!(refused.to_string().contains("has the key \"to\" twice"), "{refused}");
    queue.enqueue(job("cc")).unwrap();
}

#[test]
fn an_invalid_payload_is_refused_typed_or_raw_with_its_field() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let typed = queue.enqueue(Sum { numbers: vec![] }).unwrap_err();
    let raw = queue.enqueue(NewJob::raw("sum", r#"{"numbers":[]}"#)).unwrap_err();
    assert_eq!((typed.field(), raw.field()), (Some("numbers"), Some("numbers")));
    let many = [NewJob::of(&Sum { numbers: vec![1] }), NewJob::of(&Sum { numbers: vec![] })];
    assert_eq!(queue.enqueue_many(many).unwrap_err().item(), Some(1));
    assert!(queue.list(&Filter::default()).unwrap().is_empty(), "none of it was queued");
}

#[test]
fn typed_and_raw_payloads_that_mean_the_same_are_the_same_job() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let typed = queue.enqueue(Sum { numbers: vec![1, 2] }).unwrap();
    let raw = queue.enqueue(NewJob::raw("sum", "{ \"numbers\": [1, 2] }")).unwrap();
    assert_eq!((raw.outcome, raw.id), (EnqueueOutcome::Existing, typed.id));
}

#[test]
fn a_job_on_the_callers_transaction_exists_exactly_when_that_commits() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let mut app = application(&folder);
    app.execute_batch("CREATE TABLE model (x INTEGER)").unwrap();
    for commit in [false, true] {
        let tx = app.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        tx.execute("INSERT INTO model VALUES (1)", []).unwrap();
        let job = queue.enqueue_in(&tx, Sum { numbers: vec![1] }).unwrap();
        let refused = queue.enqueue_in(&tx, Sum { numbers: vec![2] }.after("no-such-job"));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound, "a refusal leaves the transaction usable");
        if commit {
            tx.commit().unwrap();
            assert_eq!(queue.get(&job.id).unwrap().status, Status::Pending);
        } else {
            tx.rollback().unwrap();
            assert!(queue.get(&job.id).unwrap_err().is_not_found());
        }
    }
    assert_eq!(app.query_row("SELECT count(*) FROM model", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    assert_eq!(queue.list(&Filter::default()).unwrap().len(), 1);
}

trait After {
    fn after(self, id: &str) -> NewJob;
}

impl<P: Payload> After for P {
    fn after(self, id: &str) -> NewJob {
        NewJob::of(&self).after(id)
    }
}

#[test]
fn tables_in_an_attached_database_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let mut app = Connection::open(folder.path().join("other.db")).unwrap();
    let path = folder.path().join("app.db");
    app.execute("ATTACH ?1 AS jobs_db", [path.to_str().unwrap()]).unwrap();
    let tx = app.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let error = queue.enqueue_in(&tx, Sum { numbers: vec![1] }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoDatabase, "{error}");
    drop(tx);
    assert!(queue.list(&Filter::default()).unwrap().is_empty());
}

#[test]
fn waiting_returns_the_job_when_it_ends_and_nothing_when_time_runs_out() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let lock = OwnerLock::acquire(&queue.owners_folder()).unwrap();
    let job = queue.enqueue(Sum { numbers: vec![1] }).unwrap();
    assert!(queue.wait(&job.id, Duration::from_millis(1)).unwrap().is_none());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| queue.wait(&job.id, Duration::from_secs(60)).unwrap().unwrap());
        complete_next(&queue, &lock, "1");
        assert_eq!(waiter.join().unwrap().status, Status::Completed);
    });
}

#[test]
fn temporary_tables_that_hide_ours_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let mut app = application(&folder);
    app.execute_batch("CREATE TEMP TABLE job_holds (key, seq, job_id, active)").unwrap();
    let tx = app.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    assert_eq!(queue.enqueue_in(&tx, Sum { numbers: vec![1] }).unwrap_err().kind(), ErrorKind::Schema);
}

/// Connections are opened when they are needed, by the path.
#[test]
fn a_queue_never_writes_one_database_and_reads_another() {
    let folder = tempfile::tempdir().unwrap();
    drop(Queue::init(folder.path()).unwrap());
    let patience = Duration::from_millis(50);
    let queue = QueueOptions::in_folder(folder.path()).recover(false).busy_timeout(patience).open().unwrap();
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.path().join(format!(".jobq/jobq.db{end}")));
    }
    let other = Queue::init(folder.path()).unwrap();
    other.enqueue(NewJob::raw("send_mail", "{}")).unwrap();
    let error = queue.list(&Filter::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoDatabase, "{error}");
}

/// What nobody else would ever see is not acknowledged.
#[test]
fn nothing_is_accepted_into_a_database_that_is_no_longer_there() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    queue.enqueue(Sum { numbers: vec![1] }).unwrap();
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", queue.database().display()));
    }
    let refused = |error: jobq::Error| {
        assert_eq!(error.kind(), ErrorKind::NoDatabase, "{error}");
        assert!(error.to_string().contains("start again"), "{error}");
    };
    refused(queue.enqueue(Sum { numbers: vec![2] }).unwrap_err());
    let again = open(&folder);
    refused(queue.enqueue(Sum { numbers: vec![3] }).unwrap_err());
    refused(queue.commit(|tx| tx.write("a.txt", "a")).unwrap_err());
    assert!(!folder.path().join("a.txt").exists());
    assert_eq!(again.list(&Filter::default()).unwrap().len(), 0);
    again.enqueue(Sum { numbers: vec![3] }).unwrap();
}

/// A dashboard would show for ever what was the truth once.
#[test]
fn a_database_that_is_no_longer_there_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let id = queue.enqueue(Sum { numbers: vec![1] }).unwrap().id;
    queue.get(&id).unwrap();
    std::fs::rename(queue.database(), folder.path().join("elsewhere")).unwrap();
    let looks = [queue.get(&id).map(drop), queue.list(&Filter::default()).map(drop), queue.stats().map(drop)];
    assert!(looks.into_iter().all(|look| look.unwrap_err().kind() == ErrorKind::NoDatabase));
}

/// Nor does the caller's own transaction make good a database that is gone, or a folder that is another by now.
#[test]
fn what_is_refused_is_refused_on_the_callers_transaction_too() {
    let folder = tempfile::tempdir().unwrap();
    let early = open(&folder);
    let mut app = application(&folder);
    let mut kind = || {
        let transaction = app.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        early.enqueue_in(&transaction, Sum { numbers: vec![1] }).unwrap_err().kind()
    };
    drop(QueueOptions::at(early.database()).root(folder.path().join("other")).open().unwrap());
    assert_eq!(kind(), ErrorKind::Schema);
    std::fs::rename(early.database(), folder.path().join("elsewhere")).unwrap();
    assert_eq!(kind(), ErrorKind::NoDatabase);
}

/// The first to change something puts on record what it goes by, also if it was opened only to look.
#[test]
fn a_root_is_put_on_record_by_the_first_change() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    let database = open(&folder).database().to_owned();
    let looking = |root: &std::path::Path| QueueOptions::at(&database).root(root).recover(false).open().unwrap();
    let (first, second, home) = (looking(&one), looking(&other), open(&folder));
    for root in [&one, &other] {
        std::fs::create_dir(root).unwrap();
    }
    first.commit(|tx| tx.write("a", "a")).unwrap();
    for late in [second.commit(|tx| tx.write("b", "b")).map(drop), home.commit(|tx| tx.write("b", "b")).map(drop)] {
        let error = late.unwrap_err().to_string();
        assert!(error.contains("by another process: one"), "{error}");
    }
    // Who only looks would look in the wrong folder.
    assert_eq!(home.reconcile(&jobq::ReconcileOptions::default(), |_, _| true).unwrap_err().kind(), ErrorKind::Schema);
    assert!(one.join("a").exists() && !other.join("b").exists());
}

/// Several that start at once, each with the same root, are no strangers to each other.
#[test]
fn the_same_root_may_be_named_by_many_at_once() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let database = open(&folder).database().to_owned();
        let together = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let (database, folder, together) = (&database, &folder, &together);
                scope.spawn(move || {
                    together.wait();
                    let queue = QueueOptions::at(database).root(folder.path().join("other")).open().unwrap();
                    queue.enqueue(Sum { numbers: vec![number] }).unwrap();
                });
            }
        });
    }
}

/// What was accepted for one folder is not done in another by who has had the queue open for longer.
#[test]
fn a_root_that_is_put_on_record_meanwhile_is_heeded() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let early = open(&folder);
    let named = QueueOptions::at(early.database()).root(&other).open().unwrap();
    for refused in
        [early.enqueue(NewJob::raw("send_mail", "{}")).map(drop), early.commit(|tx| tx.write("a", "a")).map(drop)]
    {
        let error = refused.unwrap_err();
        assert!(error.kind() == ErrorKind::Schema && error.to_string().contains("other"), "{error}");
    }
    named.commit(|tx| tx.write("a", "a")).unwrap();
    assert!(other.join("a").exists() && !folder.path().join("a").exists());
    drop(early);
    open(&folder).commit(|tx| tx.write("b", "b")).unwrap();
    assert!(other.join("b").exists());
}
