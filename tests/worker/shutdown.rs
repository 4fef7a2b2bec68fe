//! Workers that are told to stop: what runs is waited for, what has not
//! started goes back, and nobody loses an attempt by it.

use jobq::Status;
use rustix::process::Signal;

use super::act::{Deed, act, act_on, put};
use super::child::Setup;
use super::harness::{Process, World, until};

#[test]
fn a_long_job_is_waited_for() {
    let world = World::new();
    let go = world.outside("go");
    let id = world.enqueue(act([put("a.txt", "done"), Deed::WaitFor(go.clone())]));
    // A second thread is free all the time.
    let mut worker = Process::start(&Setup { concurrency: 2, poll_ms: 20, lease_ms: 2_000, ..world.setup("worker") });
    worker.hear(&format!("running {id}"));
    worker.signal(Signal::TERM);
    assert_eq!(worker.hear("stopping"), id, "it says what it waits for");
    let late = world.enqueue(act([]));
    // A sign of life: it has been round its loop since.
    let beats = || world.queue.get(&id).unwrap().heartbeat;
    let before = beats();
    until("it gives signs of life", || beats() > before);
    std::fs::write(&go, "").unwrap();
    assert!(worker.exit().success());
    let job = world.queue.get(&id).unwrap();
    assert_eq!((job.status, job.attempts), (Status::Completed, 1));
    assert_eq!(world.read("a.txt").unwrap(), "done");
    assert_eq!(world.queue.get(&late).unwrap().token, 0, "it claims nothing more");
    assert_eq!((world.staged(), world.lock_files()), (Vec::new(), Vec::new()));
}

#[test]
fn a_handler_that_looks_at_the_flag_gives_its_job_back() {
    let world = World::new();
    let id = world.enqueue(act_on("a.txt", [put("a.txt", "never"), Deed::UntilToldToStop]));
    let mut worker = Process::start(&world.setup("worker"));
    worker.hear(&format!("running {id}"));
    worker.stop();
    let job = world.queue.get(&id).unwrap();
    assert_eq!((job.status, job.attempts, job.locked_by), (Status::Pending, 0, None));
    assert_eq!(world.events(&id), ["queued", "claimed", "released"]);
    assert_eq!((world.staged(), world.files()), (Vec::new(), Vec::new()));
}

#[test]
fn a_second_signal_gives_back_a_job_whose_handler_does_not_listen() {
    let world = World::new();
    let id = world.enqueue(act([put("a.txt", "never"), Deed::WaitFor(world.outside("never"))]));
    let mut worker = Process::start(&world.setup("worker"));
    worker.hear(&format!("running {id}"));
    worker.signal(Signal::TERM);
    worker.hear("stopping");
    worker.signal(Signal::TERM);
    assert!(worker.exit().success());
    let job = world.queue.get(&id).unwrap();
    assert_eq!((job.status, job.attempts), (Status::Pending, 0));
    assert_eq!((world.staged(), world.lock_files()), (Vec::new(), Vec::new()));
}

#[test]
fn patience_that_runs_out_is_like_a_second_signal() {
    let world = World::new();
    let id = world.enqueue(act([Deed::WaitFor(world.outside("never"))]));
    let mut worker = Process::start(&Setup { grace_ms: Some(50), ..world.setup("worker") });
    worker.hear(&format!("running {id}"));
    worker.stop();
    let job = world.queue.get(&id).unwrap();
    assert_eq!((job.status, job.attempts), (Status::Pending, 0));
}

#[test]
fn what_was_claimed_and_has_not_started_goes_back() {
    let world = World::new();
    let go = world.outside("go");
    // Short ones first, so that the worker claims ahead; then one that blocks the only thread.
    let mut jobs: Vec<_> = (0..300).map(|_| act([])).collect();
    jobs.push(act([Deed::WaitFor(go.clone())]));
    jobs.extend((0..100).map(|_| act([])));
    let ids = world.queue.enqueue_many(jobs).unwrap();
    let mut worker = Process::start(&world.setup("worker"));
    worker.hear(&format!("running {}", ids[300].id));
    worker.signal(Signal::TERM);
    worker.hear("stopping");
    until("all but one are given back", || {
        ids[301..].iter().all(|job| world.queue.get(&job.id).unwrap().status == Status::Pending)
    });
    std::fs::write(&go, "").unwrap();
    assert!(worker.exit().success());
    for job in &ids[301..] {
        assert_eq!((world.queue.get(&job.id).unwrap().attempts, world.runs(&job.id)), (0, 0));
    }
    let told = worker.hear_out().iter().filter(|line| line.starts_with("released")).count();
    assert_eq!(told, 0, "a claim that has not started is no attempt to tell of");
}

#[test]
fn a_second_signal_ends_a_worker_that_cannot_write_to_its_database() {
    let world = World::new();
    let go = world.outside("go");
    let id = world.enqueue(act([Deed::WaitFor(go.clone())]));
    let mut worker = Process::start(&Setup { busy_ms: 50, ..world.setup("worker") });
    worker.hear(&format!("running {id}"));
    let sql = world.sql();
    sql.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::fs::write(&go, "").unwrap();
    worker.hear("trouble");
    worker.signal(Signal::TERM);
    worker.signal(Signal::INT);
    assert!(!worker.exit().success(), "not all is in order");
    sql.execute_batch("ROLLBACK").unwrap();
    let mut next = Process::start(&world.setup("next"));
    assert_eq!(world.completed(&id).attempts, 2);
    next.stop();
}

#[test]
fn a_hook_that_hangs_does_not_outlast_a_second_signal() {
    let world = World::new();
    let id = world.enqueue(act([Deed::HooksHang]));
    let mut worker = Process::start(&world.setup("worker"));
    worker.hear(&format!("completed {id}"));
    until("its hook is called", || world.log("success").len() == 1);
    worker.signal(Signal::TERM);
    worker.signal(Signal::INT);
    assert!(worker.exit().success());
}
