//! Workers that stand still for longer than their lease.

use rustix::process::Signal;

use super::act::{Deed, act, act_on, put};
use super::child::Setup;
use super::harness::{Process, World, until};

#[test]
fn a_worker_that_was_stopped_for_a_lease_changes_nothing_when_it_goes_on() {
    let world = World::new();
    let go = world.outside("go");
    let id = world.enqueue(act_on("a.txt", [put("a.txt", "by {worker}"), Deed::WaitFor(go.clone())]));
    let quick = |name| Setup { lease_ms: 1_000, poll_ms: 100, ..world.setup(name) };
    let mut first = Process::start(&quick("first"));
    first.hear(&format!("running {id} 1"));
    first.signal(Signal::STOP);
    std::fs::write(&go, "").unwrap();
    let mut second = Process::start(&quick("second"));
    second.hear(&format!("completed {id}"));
    assert_eq!(world.read("a.txt").unwrap(), "by second");
    let before = world.queue.get(&id).unwrap();
    first.signal(Signal::CONT);
    assert!(first.hear(&format!("lease_lost {id} 1")).contains("lease_lost"));
    assert_eq!(world.read("a.txt").unwrap(), "by second");
    let after = world.queue.get(&id).unwrap();
    assert_eq!(serde_json::to_value(&before).unwrap(), serde_json::to_value(&after).unwrap());
    assert_eq!(after.attempts, 2);
    // It is a worker like any other again.
    second.stop();
    let next = world.enqueue(act([put("b.txt", "by {worker}")]));
    first.hear(&format!("completed {next}"));
    first.stop();
    assert_eq!((world.staged(), world.lock_files()), (Vec::new(), Vec::new()));
    assert_eq!(world.files(), ["a.txt", "b.txt"]);
}

#[test]
fn a_worker_that_was_stopped_for_a_lease_cannot_end_a_job_that_another_runs_now() {
    let world = World::new();
    let deeds = [put("a.txt", "by {worker}"), Deed::WaitFor(world.outside("go-{worker}"))];
    let id = world.enqueue(act_on("a.txt", deeds));
    let quick = |name| Setup { lease_ms: 1_000, poll_ms: 100, ..world.setup(name) };
    let mut first = Process::start(&quick("first"));
    first.hear(&format!("running {id} 1"));
    first.signal(Signal::STOP);
    let mut second = Process::start(&quick("second"));
    second.hear(&format!("running {id} 2"));
    std::fs::write(world.outside("go-first"), "").unwrap();
    first.signal(Signal::CONT);
    first.hear(&format!("lease_lost {id} 1"));
    assert_eq!(world.read("a.txt"), None);
    first.stop();
    std::fs::write(world.outside("go-second"), "").unwrap();
    second.hear(&format!("completed {id} 2"));
    assert_eq!(world.read("a.txt").unwrap(), "by second");
    second.stop();
    assert_eq!((world.staged(), world.lock_files()), (Vec::new(), Vec::new()));
}

#[test]
fn a_worker_that_beats_keeps_a_job_for_many_leases() {
    let world = World::new();
    let go = world.outside("go");
    let id = world.enqueue(act([Deed::WaitFor(go.clone())]));
    let quick = |name| Setup { lease_ms: 500, poll_ms: 50, ..world.setup(name) };
    let mut first = Process::start(&quick("first"));
    first.hear(&format!("running {id} 1"));
    let mut second = Process::start(&quick("second"));
    second.hear("started");
    // Twenty beats are two leases.
    let beats = world.queue.get(&id).unwrap().heartbeat + 20;
    until("signs of life", || world.queue.get(&id).unwrap().heartbeat >= beats);
    std::fs::write(&go, "").unwrap();
    assert_eq!(world.completed(&id).attempts, 1);
    assert_eq!(world.runs(&id), 1);
    first.stop();
    second.stop();
}

#[test]
fn a_worker_with_a_shorter_lease_takes_nothing_from_one_that_is_well() {
    let world = World::new();
    let go = world.outside("go");
    let id = world.enqueue(act([put("a.txt", "by {worker}"), Deed::WaitFor(go.clone())]));
    // Gives a sign of life every 30 s.
    let mut patient = Process::start(&world.setup("patient"));
    patient.hear(&format!("running {id} 1"));
    // Frozen, and known to be so by the other: what it has is taken at the end of its lease.
    let frozen = world.enqueue(act([put("b.txt", "by {worker}"), Deed::WaitFor(go.clone())]));
    let mut still = Process::start(&Setup { lease_ms: 1_000, poll_ms: 50, ..world.setup("still") });
    still.hear(&format!("running {frozen} 1"));
    still.signal(Signal::STOP);
    let mut hasty = Process::start(&Setup { lease_ms: 200, poll_ms: 50, concurrency: 2, ..world.setup("hasty") });
    hasty.hear(&format!("running {frozen} 2"));
    // It has judged both, for several of its own leases.
    assert_eq!(world.queue.get(&id).unwrap().token, 1);
    std::fs::write(&go, "").unwrap();
    world.completed(&id);
    world.completed(&frozen);
    assert_eq!((world.runs(&id), world.read("a.txt").unwrap()), (1, "by patient".to_owned()));
    still.signal(Signal::CONT);
    still.hear(&format!("lease_lost {frozen} 1"));
    for worker in [&mut patient, &mut still, &mut hasty] {
        worker.stop();
    }
}
