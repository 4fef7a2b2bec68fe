//! Calling off: before the decision it wins, after it is too late.

use jobq::ErrorKind;
use jobq::state::Status;
use jobq::store::{Beat, CancelOutcome, Cancellation, Decision, Ending, Lease, Pulse, Store as _};

use super::Harness;
use super::draft::{note, put};
use super::fencing::lease_verbs;
use super::world::{Disk, World, kind};

pub fn a_pending_job_ends_at_once<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a"));
    let expected =
        Cancellation { id: "a".to_owned(), outcome: CancelOutcome::Cancelled, cancelled_waiters: Vec::new() };
    assert_eq!(world.cancel("a"), expected);
    let job = world.get("a");
    assert_eq!((job.status, job.gate, job.completed_at), (Status::Cancelled, None, Some(world.now())));
    assert_eq!((job.attempts, job.token), (0, 0));
    assert_eq!(world.claim(10), [""; 0]);
    let again = world.unchanged("cancelling again", || world.cancel("a"));
    assert_eq!(again.outcome, CancelOutcome::AlreadyCancelled);
}

pub fn whatever_gate_a_pending_job_stands_at<H: Harness>() {
    let world = World::<H>::new();
    let rescheduled = world.running(note("backoff"));
    world.reschedule(&rescheduled, 1_000);
    world.add(note("delayed").run_at(world.now() + 1));
    world.add(note("first").holds(&["lane:x"]));
    world.add(note("held").holds(&["lane:x"]));
    world.add(note("waiting").after("first"));
    for id in ["backoff", "delayed", "held", "waiting"] {
        assert_eq!(world.cancel(id).outcome, CancelOutcome::Cancelled, "{id}");
        assert_eq!(world.status(id), Status::Cancelled, "{id}");
    }
    world.clock.advance(1_000_000);
    assert_eq!(world.claim(10), ["first"]);
}

pub fn a_running_job_is_asked_to_stop<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    assert_eq!(world.cancel("a").outcome, CancelOutcome::Requested);
    let job = world.get("a");
    assert_eq!((job.status, job.cancel_requested), (Status::Claimed, true));
    let again = world.unchanged("asking again", || world.cancel("a"));
    assert_eq!(again.outcome, CancelOutcome::Requested);
    let beat = Beat { lease: lease.clone(), progress: None, checkpoint: None };
    assert_eq!(world.store.heartbeat(vec![beat]).unwrap(), [Pulse::CancelRequested]);
    assert_eq!(world.store.acknowledge_cancel(lease).unwrap(), Ending::Cancelled);
    let job = world.get("a");
    assert_eq!((job.status, job.completed_at, job.locked_by), (Status::Cancelled, Some(world.now()), None));
    assert_eq!(world.event_types("a"), ["queued", "claimed", "cancelled"]);
}

/// Whatever the owner wanted to say, the cancel was committed first.
pub fn a_cancel_that_came_first_wins_over_every_verb<H: Harness>() {
    for (name, verb) in lease_verbs::<H::S>() {
        if name == "heartbeat" || name == "apply" {
            continue;
        }
        let world = World::<H>::new();
        let lease = world.running(note("a").max_attempts(1).holds(&["lane:x"]));
        world.add(note("child").after("a"));
        world.add(note("next").holds(&["lane:x"]));
        world.cancel("a");
        assert_eq!(verb(&world.store, lease), Ok("Cancelled".to_owned()), "{name}");
        let job = world.get("a");
        assert_eq!((job.status, job.outcome, job.result), (Status::Cancelled, None, None), "{name}");
        assert_eq!(world.event_types("a"), ["queued", "claimed", "cancelled"], "{name}");
        assert_eq!(world.status("child"), Status::Cancelled, "{name}");
        assert_eq!(kind(world.store.get("f")), ErrorKind::NotFound, "{name}: no follow-up of a cancelled job");
        assert_eq!(world.claim(10), ["next"], "{name}: its holds are free");
    }
}

pub fn a_cancel_after_the_decision_is_refused<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(note("a"), vec![put("x")]);
    world.add(note("child").after("a"));
    assert_eq!(world.unchanged("a late cancel", || kind(world.store.cancel("a"))), ErrorKind::WrongState);
    world.store.apply(lease, Disk::full(0)).unwrap();
    assert_eq!(world.unchanged("a late cancel", || kind(world.store.cancel("a"))), ErrorKind::WrongState);
    let lease = world.take_over("w2").remove(0).lease;
    world.apply(&lease).unwrap();
    assert_eq!(world.status("a"), Status::Completed);
    world.claim_only("child");
}

pub fn a_decision_without_effects_is_a_decision_too<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.store.decide(lease.clone(), Decision::default()).unwrap();
    assert_eq!(world.unchanged("a late cancel", || kind(world.store.cancel("a"))), ErrorKind::WrongState);
    world.apply(&lease).unwrap();
}

pub fn a_completed_job_cannot_be_cancelled<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.complete(&lease);
    assert_eq!(world.unchanged("a late cancel", || kind(world.store.cancel("a"))), ErrorKind::WrongState);
}

pub fn a_failed_job_nothing_waits_on_cannot_be_cancelled<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.fail(&lease);
    assert_eq!(world.unchanged("a late cancel", || kind(world.store.cancel("a"))), ErrorKind::WrongState);
}

pub fn a_request_to_stop_does_not_survive_a_retry<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.cancel("a");
    world.store.acknowledge_cancel(lease).unwrap();
    assert!(!world.store.retry("a").unwrap().cancel_requested);
    let lease: Lease = world.claim_only("a");
    world.complete(&lease);
    assert_eq!(world.status("a"), Status::Completed);
}
