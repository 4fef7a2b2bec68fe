//! What handlers may return, and the rules of the built-in file jobs.

use jobq::handlers::{CreateFile, DeleteFile};
use jobq::{NewJob, Status, sha256_hex};

use super::act::{Deed, act, act_on, put};
use super::child::Setup;
use super::harness::{Process, World, until};

#[track_caller]
fn fails(world: &World, job: impl Into<NewJob>, words: &[&str]) {
    let id = world.enqueue(job);
    let job = world.ended(&id);
    assert_eq!((job.status, job.attempts), (Status::Failed, 1), "for good, at once: {:?}", job.last_error);
    let error = job.last_error.unwrap();
    for word in words {
        assert!(error.contains(word), "{error:?} does not say {word:?}");
    }
}

#[test]
fn outcomes_that_cannot_be_are_failures_for_good_and_say_why() {
    let world = World::new();
    let mut worker = Process::start(&world.setup("worker"));
    fails(&world, act([put("a.txt", "1"), put("./a.txt", "2")]), &["a.txt", "two effects"]);
    fails(&world, act([put("a", "1"), put("a/b", "2")]), &["a/b", "file and folder"]);
    fails(&world, act([put("a.txt", "1"), Deed::BadFollowUp]), &["invalid_outcome", "follow-up job 1", "path"]);
    fails(&world, act([Deed::BadFollowUp]), &["invalid_outcome", "follow-up job 1", "path"]);
    fails(&world, act([put("../a.txt", "1")]), &["../a.txt"]);
    let taken = world.enqueue(act([]));
    let again = Deed::FollowUp { id: taken.clone(), content: String::new(), correlation: None };
    fails(&world, act([put("a.txt", "1"), again.clone()]), &["follow-up", &taken]);
    fails(&world, act([again]), &["follow-up", &taken]);
    let failed = world.enqueue(act([put("../a.txt", "2")]));
    world.ended(&failed);
    for (parent, word) in [("nonesuch", "no job nonesuch"), (&*failed, "is failed")] {
        let after = Deed::FollowUpAfter(parent.to_owned());
        let words = ["invalid_outcome", "follow-up job 1 (later", word];
        fails(&world, act([put("a.txt", "1"), after.clone()]), &words);
        fails(&world, act([after]), &words);
    }
    worker.stop();
    assert_eq!((world.files(), world.staged()), (Vec::new(), Vec::new()));
}

#[test]
fn an_effect_on_a_path_that_another_job_is_at_work_on_waits_and_comes_on_top() {
    for round in 0..5 {
        let world = World::new();
        let go = world.outside("go");
        let mut worker = Process::start(&Setup { concurrency: 2, ..world.setup("worker") });
        let first = world.enqueue(act_on("a.txt", [put("a.txt", "first"), Deed::WaitFor(go.clone())]));
        until("the first runs", || world.runs(&first) == 1);
        let second = world.enqueue(act([put("a.txt", "second")]));
        until("the second has run", || world.runs(&second) == 1);
        // At different moments of the wait between its tries.
        std::thread::sleep(std::time::Duration::from_millis(30 + 13 * round));
        assert_eq!(world.queue.get(&second).unwrap().status, Status::Claimed);
        std::fs::write(&go, "").unwrap();
        world.completed(&first);
        assert_eq!(world.completed(&second).attempts, 1);
        assert_eq!((world.read("a.txt").unwrap(), world.runs(&second)), ("second".to_owned(), 1));
        worker.stop();
    }
}

#[test]
fn two_jobs_that_want_each_others_paths_do_not_wait_for_ever() {
    let world = World::new();
    let go = world.outside("go");
    let cross = |mine: &str, other: &str| {
        let job = act_on(mine, [put(other, mine), Deed::WaitFor(go.clone())]);
        job.timeout(std::time::Duration::from_millis(300)).max_attempts(20)
    };
    let (one, two) = (world.enqueue(cross("a", "b")), world.enqueue(cross("b", "a")));
    let mut worker = Process::start(&Setup { concurrency: 2, ..world.setup("worker") });
    until("both run", || world.runs(&one) > 0 && world.runs(&two) > 0);
    std::fs::write(&go, "").unwrap();
    world.completed(&one);
    world.completed(&two);
    worker.stop();
    assert_eq!((world.read("a").unwrap(), world.read("b").unwrap()), ("b".to_owned(), "a".to_owned()));
}

#[test]
fn create_file_keeps_what_is_there_unless_told_otherwise() {
    let world = World::new();
    let mut worker = Process::start(&world.setup("worker"));
    let create = |path: &str, content: &str| world.completed(&world.enqueue(CreateFile::text(path, content)));
    let result = |job: jobq::Job| job.result.unwrap().parse::<serde_json::Value>().unwrap();
    let made = result(create("deep/er/a.txt", "one"));
    let expected = serde_json::json!({
        "path": "deep/er/a.txt", "sha256": sha256_hex(b"one"), "size": 3, "changed": true
    });
    assert_eq!(made, expected);
    let again = create("deep/er/a.txt", "one");
    let applied = |id: &str| -> Vec<String> {
        let sql = world.sql();
        let mut rows = sql.prepare("SELECT op || ' ' || state FROM effects WHERE job_id = ?1").unwrap();
        rows.query_map([id], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    assert_eq!(applied(&again.id), ["put applied"], "on record, so that it can be checked later");
    assert_eq!(result(again)["changed"], false);
    let hashes = [sha256_hex(b"one"), sha256_hex(b"two")];
    fails(&world, CreateFile::text("deep/er/a.txt", "two"), &["deep/er/a.txt", &hashes[0], &hashes[1]]);
    assert_eq!(world.read("deep/er/a.txt").unwrap(), "one");
    let over = CreateFile { overwrite: true, ..CreateFile::text("deep/er/a.txt", "two") };
    assert_eq!(result(world.completed(&world.enqueue(over)))["changed"], true);
    assert_eq!(world.read("deep/er/a.txt").unwrap(), "two");
    let id = world.enqueue(CreateFile::bytes("b.bin", [0, 159, 146, 150]));
    world.completed(&id);
    assert_eq!(std::fs::read(world.root().join("b.bin")).unwrap(), [0, 159, 146, 150]);
    worker.stop();
}

#[test]
fn delete_file_takes_a_missing_file_for_deleted_unless_told_otherwise() {
    let world = World::new();
    let mut worker = Process::start(&world.setup("worker"));
    std::fs::write(world.root().join("a.txt"), "a").unwrap();
    let delete = || world.completed(&world.enqueue(DeleteFile::at("a.txt"))).result.unwrap().as_str().to_owned();
    assert_eq!(delete(), format!(r#"{{"path":"a.txt","sha256":"{}"}}"#, sha256_hex(b"a")));
    assert_eq!(world.files(), [""; 0]);
    assert_eq!(delete(), r#"{"path":"a.txt","sha256":null}"#);
    let strict = DeleteFile { require_exists: true, ..DeleteFile::at("a.txt") };
    fails(&world, strict, &["file_missing", "a.txt"]);
    worker.stop();
}
