//! Jobs that do not get on.

use jobq::doctor::Verdict;
use jobq::handlers::CreateFile;
use jobq::store::{Failure, Store as _};
use jobq::{NewJob, Queue, QueueOptions};

use super::world::World;
use crate::support::{claim, complete, note, types};

const HOUR: i64 = 3_600_000;

#[test]
fn jobs_of_the_future_are_told() {
    let world = World::new();
    let id = world.queue().enqueue(note("a")).unwrap().id;
    world.examine_after(-30_000).says("clock", Verdict::Ok, &[]);
    world.examine_after(-HOUR).only("clock", Verdict::Warn, &["1 job is of the future", &id, "clock"]);
    // Not only when it was queued.
    let queue = world.queue();
    let job = claim(queue.store(), 1).remove(0);
    complete(queue.store(), &job);
    let ahead = "UPDATE jobs SET completed_at = completed_at + 86400000";
    assert_eq!(world.sql().execute(ahead, []), Ok(1));
    world.examine().only("clock", Verdict::Warn, &[&id]);
}

#[test]
fn a_clock_that_was_set_back_is_told() {
    let world = World::new();
    let queue = world.queue();
    let id = queue.enqueue(note("a")).unwrap().id;
    let job = claim(queue.store(), 1).remove(0);
    complete(queue.store(), &job);
    assert_eq!(world.sql().execute("UPDATE jobs SET completed_at = claimed_at - 3600000", []), Ok(1));
    world.examine().only("clock", Verdict::Warn, &["set back", &id]);
}

#[test]
fn jobs_that_wait_on_a_failed_one_are_told_with_the_ways_out() {
    let world = World::new();
    let queue = world.queue();
    let parent = queue.enqueue(note("parent")).unwrap().id;
    for text in ["one", "two"] {
        queue.enqueue(NewJob::of(&note(text)).after(&parent)).unwrap();
    }
    world.examine().says("waits", Verdict::Ok, &[]);
    let job = claim(queue.store(), 1).remove(0);
    queue.store().fail(job.lease, Failure::new("broken", "no\u{1b}[31m luck")).unwrap();
    let (retry, cancel) = (format!("jobq retry {parent}"), format!("jobq cancel {parent}"));
    let findings = world.examine();
    findings.only("waits", Verdict::Warn, &["2 jobs wait on a job", &retry, &cancel, "broken: no"]);
    assert!(!findings.get("waits").message.contains('\u{1b}'));
    queue.cancel(&parent).unwrap();
    world.examine().says("waits", Verdict::Ok, &[]);
}

#[test]
fn a_wait_on_a_job_that_is_not_there_is_bad() {
    let world = World::new();
    let queue = world.queue();
    let parent = queue.enqueue(note("parent")).unwrap().id;
    let child = queue.enqueue(NewJob::of(&note("child")).after(parent)).unwrap().id;
    let lost = "UPDATE jobs SET waiting_on = 'nobody' WHERE waiting_on IS NOT NULL";
    assert_eq!(world.sql().execute(lost, []), Ok(1));
    world.examine().only("waits", Verdict::Bad, &[&child, "nobody", "jobq cancel"]);
}

/// A row that claims to be admitted, from somebody who can write the database.
#[test]
fn an_unfinished_job_without_its_holds_is_bad() {
    let world = World::new();
    let queue = world.queue();
    for text in ["one", "two"] {
        queue.enqueue(CreateFile::text("a.txt", text)).unwrap();
    }
    let lane = queue.enqueue(NewJob::of(&note("in a lane")).lane("x")).unwrap().id;
    claim(queue.store(), 1);
    world
        .sql()
        .execute("INSERT INTO jobs (id, type, payload, holds) VALUES ('n', 'note', '{', '[\"lane:y\"]')", [])
        .unwrap();
    world.examine().says("holds", Verdict::Ok, &[]);
    let forged = "INSERT INTO jobs (id, type, payload, gate, payload_hash, timeout, backoff_base, backoff_max)
                  SELECT 'forged', type, payload, 'ready', payload_hash, 1, 1, 1 FROM jobs WHERE seq = 2";
    assert_eq!(world.sql().execute(forged, []), Ok(1));
    let found = world.examine();
    found.says("holds", Verdict::Bad, &["1 job ", "forged", "jobq cancel forged", "queue it again"]);
    assert_eq!(world.sql().execute("DELETE FROM job_holds WHERE key = 'lane:x'", []), Ok(1));
    world.examine().says("holds", Verdict::Bad, &["2 jobs ", &lane, "forged"]);
    for id in ["forged", &lane] {
        queue.cancel(id).unwrap();
    }
    world.examine().says("holds", Verdict::Ok, &[]);
}

#[test]
fn rows_that_nobody_admits_are_told_by_type() {
    let world = World::new();
    let insert = |id: &str, job_type: &str| {
        let sql = "INSERT INTO jobs (id, type, payload) VALUES (?1, ?2, '{}')";
        assert_eq!(world.sql().execute(sql, [id, job_type]), Ok(1));
    };
    insert("a", "note");
    world.examine().says("admission", Verdict::Ok, &[]);
    world.examine_after(HOUR).only("admission", Verdict::Warn, &["1 of type note", "start a worker"]);
    insert("b", "send_pigeon");
    insert("c", "send_pigeon");
    world.examine_after(HOUR).only(
        "admission",
        Verdict::Warn,
        &["2 of type send_pigeon", "knows the type send_pigeon"],
    );
}

/// There is no room for its file, so the commit is accepted and not applied.
pub fn accepted_and_not_applied(world: &World) -> String {
    let queue = QueueOptions::in_folder(world.root()).types(types()).watched(|act, _| match act {
        jobq::effects::Act::Create => Err(rustix::io::Errno::NOSPC.into()),
        _ => Ok(()),
    });
    let queue: Queue = queue.open().unwrap();
    let accepted = queue.commit(|draft| draft.write("a.txt", "a")).unwrap();
    assert!(!accepted.applied);
    accepted.id
}

#[test]
fn a_decided_job_that_nobody_applies_is_told_with_its_reason() {
    let world = World::new();
    let id = accepted_and_not_applied(&world);
    world.examine().only("decided", Verdict::Warn, &["1 job is decided", &id, "disk_full", "jobq reclaim"]);
    let queue = world.queue();
    queue.enqueue(CreateFile::text("b.txt", "b")).unwrap();
    world.examine().only("decided", Verdict::Warn, &[&id]);
}
