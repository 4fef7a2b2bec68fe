//! Workers that are killed: whatever they had, another one brings to its end.

use std::time::{Duration, Instant};

use jobq::Status;

use super::act::{Deed, act, act_on, put};
use super::child::Setup;
use super::harness::{Process, World, until};

#[test]
fn a_job_whose_worker_is_killed_is_finished_by_another_within_two_seconds() {
    let world = World::new();
    let go = world.outside("go");
    let id = world.enqueue(act_on("out/a.txt", [put("out/a.txt", "content"), Deed::WaitFor(go.clone())]));
    let mut first = Process::start(&world.setup("first"));
    first.hear(&format!("running {id} 1"));
    until("the content is staged", || world.staged().len() == 1);
    first.kill();
    std::fs::write(&go, "").unwrap();
    let mut second = Process::start(&world.setup("second"));
    second.hear("started");
    let started = Instant::now();
    let job = world.completed(&id);
    let took = started.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(job.attempts, 2);
    assert_eq!(world.files(), ["out/a.txt"]);
    assert_eq!(world.read("out/a.txt").unwrap(), "content");
    assert_eq!(world.staged(), [""; 0], "what the first had staged is swept");
    assert_eq!(world.lock_files().len(), 1, "only the second's is left");
    second.stop();
    assert_eq!(world.lock_files(), [""; 0]);
    assert_eq!(std::fs::read_dir(world.root().join(".jobq/stage")).unwrap().count(), 0, "no folders either");
    let told = world.events(&id);
    let expected = ["queued", "claimed", "worker_lost", "reclaimed", "claimed", "decided", "completed"];
    assert_eq!(told, expected);
}

#[test]
fn what_a_killed_worker_has_decided_is_applied_by_another_and_the_handler_is_not_run_again() {
    let world = World::new();
    let id = world.enqueue(act([put("a.txt", "decided by {worker}")]));
    let mut first = Process::start(&Setup { dies_when_decided: true, ..world.setup("first") });
    assert!(!first.exit().success());
    let job = world.queue.get(&id).unwrap();
    assert_eq!((job.status, job.outcome.is_some()), (Status::Claimed, true), "it is decided");
    assert_eq!(world.read("a.txt"), None, "and not applied");
    // Not even one that runs jobs of this type: no handler is needed.
    let types = Some(vec!["delete_file".to_owned()]);
    let mut second = Process::start(&Setup { types, ..world.setup("second") });
    assert_eq!(world.completed(&id).attempts, 1);
    assert_eq!(world.read("a.txt").unwrap(), "decided by first");
    assert_eq!(world.runs(&id), 1);
    second.stop();
    assert_eq!((world.staged(), world.lock_files()), (Vec::new(), Vec::new()));
}

#[test]
fn a_decided_job_is_applied_by_a_worker_whose_threads_are_all_busy() {
    let world = World::new();
    let go = world.outside("go");
    let long = world.enqueue(act([Deed::WaitFor(go.clone())]));
    let mut busy = Process::start(&Setup { poll_ms: 200, ..world.setup("busy") });
    busy.hear(&format!("running {long}"));
    let decided = world.enqueue(act([put("a.txt", "decided by {worker}")]));
    let mut dies = Process::start(&Setup { dies_when_decided: true, ..world.setup("dies") });
    dies.exit();
    world.completed(&decided);
    assert_eq!(world.read("a.txt").unwrap(), "decided by dies");
    std::fs::write(&go, "").unwrap();
    busy.stop();
}

#[test]
fn an_idle_worker_that_is_killed_leaves_no_lock_file_for_good() {
    let world = World::new();
    let mut first = Process::start(&world.setup("first"));
    first.hear("started");
    first.kill();
    assert_eq!(world.lock_files().len(), 1);
    let mut second = Process::start(&world.setup("second"));
    let mine = format!("{}.lock", second.hear("started"));
    until("the dead worker's lock file is gone", || world.lock_files() == [mine.as_str()]);
    second.stop();
}
