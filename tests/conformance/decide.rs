//! Deciding: what a job will do is durable, its paths are held, and it is
//! never run again.

use std::sync::Arc;

use jobq::ErrorKind;
use jobq::state::{Gate, Status};
use jobq::store::{Decision, Ending, Settled, Step, Store as _};

use super::Harness;
use super::draft::{create, note, put, remove};
use super::world::{Disk, World, kind};

pub fn a_decided_job_stays_claimed_and_is_never_run_again<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    let decision = Decision { result: Some("7".to_owned()), effects: vec![put("x")], follow_ups: Vec::new() };
    assert_eq!(world.store.decide(lease, decision).unwrap(), Ending::Done);
    let job = world.get("a");
    assert_eq!((job.status, job.gate, job.attempts, job.token), (Status::Claimed, None, 1, 1));
    assert!(job.outcome.is_some());
    assert_eq!(job.result, None, "not before it has completed");
    assert_eq!(world.event_types("a"), ["queued", "claimed", "decided"]);
    world.reclaim_from("w1");
    assert_eq!(world.claim(10), [""; 0], "whoever comes next applies it");
    assert_eq!((world.status("a"), world.gate("a")), (Status::Claimed, None));
}

pub fn effects_reach_the_disk_as_they_were_decided<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(note("a"), vec![put("out/b"), remove("out/a")]);
    let disk = Disk::obedient();
    world.store.apply(lease.clone(), disk.clone()).unwrap();
    assert_eq!(*disk.asked.lock().unwrap(), [(lease, vec![put("out/b"), remove("out/a")])]);
}

pub fn a_decision_is_not_recorded_when_the_disk_has_changed_since_it_was_looked_at<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    let decision = Decision { effects: vec![put("x")], ..Decision::default() };
    let decide_if = |still_so: bool| {
        let step = Step::DecideIf(decision.clone(), Arc::new(move |_| still_so));
        world.store.one(lease.clone(), step)
    };
    assert_eq!(decide_if(false).unwrap_err().kind(), ErrorKind::PathBusy);
    assert_eq!((world.get("a").outcome, world.get("a").holds), (None, None), "nothing has changed");
    assert_eq!(decide_if(true).unwrap(), Settled::Ended(Ending::Done));
    assert_eq!(world.event_types("a"), ["queued", "claimed", "decided"]);
}

/// Order by seq is promised for declared holds only; a pending holder that was
/// there before waits until the decided job is through.
pub fn paths_known_only_now_are_held_from_here_on<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.add(create("waiting", "x", "1"));
    assert_eq!(world.gate("waiting"), Some(Gate::Ready));
    world.decide(&lease, vec![put("x"), put("y")]).unwrap();
    assert_eq!(world.get("a").holds.unwrap().as_str(), r#"["path:x","path:y"]"#);
    world.add(create("later", "y", "1"));
    assert_eq!((world.gate("waiting"), world.gate("later")), (Some(Gate::Held), Some(Gate::Held)));
    assert_eq!(world.claim(10), [""; 0]);
    world.apply(&lease).unwrap();
    assert_eq!(world.claim(10), ["waiting", "later"]);
}

pub fn a_path_is_held_even_before_an_earlier_pending_job<H: Harness>() {
    let world = World::<H>::new();
    world.add(create("early", "x", "1").run_at(world.now() + 1_000));
    let lease = world.running(note("a"));
    world.decide(&lease, vec![put("x")]).unwrap();
    world.clock.advance(1_000);
    assert_eq!(world.claim(10), [""; 0]);
    assert_eq!(world.get("early").blocked.as_deref(), Some("behind a on path:x"));
    world.apply(&lease).unwrap();
    world.claim_only("early");
}

pub fn a_declared_path_is_held_once<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(create("a", "x", "1"));
    world.decide(&lease, vec![put("x"), put("./y"), remove("y")]).unwrap();
    assert_eq!(world.get("a").holds.unwrap().as_str(), r#"["path:x","path:y"]"#, "two spellings are one path");
    world.add(create("b", "x", "2"));
    world.apply(&lease).unwrap();
    world.claim_only("b");
}

pub fn a_path_that_a_running_job_holds_is_busy<H: Harness>() {
    let world = World::<H>::new();
    world.add(create("other", "x", "1"));
    world.add(note("a"));
    let leases: Vec<_> = world.claim_as("w1", 10).into_iter().map(|c| c.lease).collect();
    let (other, lease) = (&leases[0], &leases[1]);
    let error =
        world.unchanged("a decision on a busy path", || world.decide(lease, vec![put("free"), put("x")]).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::PathBusy);
    assert!(error.to_string().contains("other") && error.to_string().contains('x'), "{error}");
    world.add(create("on the free path", "free", "1"));
    world.claim_only("on the free path");
    world.complete(other);
    assert_eq!(world.decide(lease, vec![put("x")]).unwrap(), Ending::Done, "when it has ended");
}

pub fn a_path_that_a_decided_job_holds_is_busy<H: Harness>() {
    let world = World::<H>::new();
    let first = world.decided(note("first"), vec![put("x")]);
    let second = world.running(note("second"));
    let answer = world.unchanged("a decision on a busy path", || kind(world.decide(&second, vec![put("x")])));
    assert_eq!(answer, ErrorKind::PathBusy);
    // Also when nobody owns it at the moment.
    world.store.apply(first, Disk::full(1_000)).unwrap();
    assert_eq!(kind(world.decide(&second, vec![put("x")])), ErrorKind::PathBusy);
    world.clock.advance(1_000);
    let first = world.take_over("w2").remove(0).lease;
    world.apply(&first).unwrap();
    assert_eq!(world.decide(&second, vec![remove("x")]).unwrap(), Ending::Done);
}

pub fn what_cannot_be_recorded_is_refused<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    for path in ["../outside", "/absolute", ".jobq/jobq.db", ""] {
        let answer = world.unchanged(path, || kind(world.decide(&lease, vec![put("fine"), put(path)])));
        assert_eq!(answer, ErrorKind::Invalid, "{path}");
    }
    let not_json = Decision { result: Some("{".to_owned()), ..Decision::default() };
    let answer = world.unchanged("a broken result", || kind(world.store.decide(lease.clone(), not_json)));
    assert_eq!(answer, ErrorKind::Invalid);
    world.complete(&lease);
}

pub fn a_decision_closes_the_door_on_retries_of_earlier_jobs<H: Harness>() {
    let world = World::<H>::new();
    let failed = world.running(create("failed", "x", "1"));
    world.fail(&failed);
    let lease = world.decided(note("a"), vec![remove("x")]);
    world.apply(&lease).unwrap();
    let error = world.unchanged("an overtaken retry", || world.store.retry("failed").unwrap_err());
    assert_eq!(error.kind(), ErrorKind::WrongState);
    assert!(error.to_string().contains("job a "), "names the job that came in between: {error}");
}
