//! Fencing: whoever has lost a lease changes nothing any more, whichever verb
//! it calls and however it lost it.

use std::time::Duration;

use jobq::ErrorKind;
use jobq::store::{Beat, Completion, Decision, Lease, Progress, Pulse, Store};

use super::Harness;
use super::draft::{note, put};
use super::world::{Disk, World, failure, owner};

/// A verb on a claimed job; the kind of its error, or what it says.
pub type LeaseVerb<S> = fn(&S, Lease) -> Result<String, ErrorKind>;

fn told<T: std::fmt::Debug>(answer: jobq::Result<T>) -> Result<String, ErrorKind> {
    answer.map(|value| format!("{value:?}")).map_err(|error| error.kind())
}

/// Every verb that names a lease, each with something that would show.
pub fn lease_verbs<S: Store>() -> [(&'static str, LeaseVerb<S>); 8] {
    [
        ("heartbeat", |store, lease| {
            let progress = Some(Progress { percent: 99, message: None });
            match store.heartbeat(vec![Beat { lease, progress, checkpoint: Some("{}".to_owned()) }]).unwrap()[0] {
                // A heartbeat is answered, not refused.
                Pulse::Lost => Err(ErrorKind::LeaseLost),
                pulse => Ok(format!("{pulse:?}")),
            }
        }),
        ("decide", |store, lease| {
            let result = Some("1".to_owned());
            told(store.decide(lease, Decision { result, effects: vec![put("z")], follow_ups: vec![note("f").build()] }))
        }),
        ("apply", |store, lease| {
            let disk = Disk::obedient();
            let answer = told(store.apply(lease, disk.clone()));
            assert!(answer.is_ok() || disk.asked.lock().unwrap().is_empty(), "a refused apply touches no file");
            answer
        }),
        ("complete", |store, lease| {
            let follow_ups = vec![note("f").build()];
            told(
                store.complete(vec![Completion { lease, result: Some("1".to_owned()), follow_ups }]).unwrap().remove(0),
            )
        }),
        ("reschedule", |store, lease| told(store.reschedule(lease, failure(), Duration::from_secs(1)))),
        ("fail", |store, lease| told(store.fail(lease, failure()))),
        ("release", |store, lease| told(store.release(lease))),
        ("acknowledge_cancel", |store, lease| told(store.acknowledge_cancel(lease))),
    ]
}

fn all_are_refused<H: Harness>(world: &World<H>, lease: &Lease, expected: ErrorKind) {
    for (name, verb) in lease_verbs::<H::S>() {
        let answer = world.unchanged(name, || verb(&world.store, lease.clone()));
        // To a heartbeat every lost lease looks the same.
        let expected = if name == "heartbeat" { ErrorKind::LeaseLost } else { expected };
        assert_eq!(answer, Err(expected), "{name}");
    }
}

fn all_are_lost<H: Harness>(world: &World<H>, lease: &Lease) {
    all_are_refused(world, lease, ErrorKind::LeaseLost);
}

pub fn lost_to_another_claim<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.reclaim_from("w1");
    assert_eq!(world.claim_as("w2", 1).len(), 1);
    all_are_lost(&world, &lease);
}

pub fn lost_to_another_claim_by_the_same_worker<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.release(&lease);
    world.claim_only("a");
    all_are_lost(&world, &lease);
}

pub fn lost_to_another_claim_that_was_asked_to_stop<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.release(&lease);
    world.claim_only("a");
    world.cancel("a");
    all_are_lost(&world, &lease);
}

pub fn lost_to_a_reclaim<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.reclaim_from("w1");
    // Nobody has claimed since, so the token in the row is still this one.
    assert_eq!(world.get("a").token, lease.token);
    all_are_lost(&world, &lease);
}

pub fn lost_to_a_release_or_a_reschedule<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.release(&lease);
    all_are_lost(&world, &lease);
    let lease = world.claim_only("a");
    world.reschedule(&lease, 1_000);
    all_are_lost(&world, &lease);
}

pub fn lost_to_another_owner_that_completed<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.release(&lease);
    let other = world.claim_only("a");
    world.complete(&other);
    all_are_lost(&world, &lease);
}

pub fn lost_to_another_owner_that_failed<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.release(&lease);
    let other = world.claim_only("a");
    world.fail(&other);
    all_are_lost(&world, &lease);
}

pub fn lost_to_a_cancel<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.cancel("a");
    world.reclaim_from("w1");
    all_are_lost(&world, &lease);
}

pub fn lost_to_another_owner_that_decided<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.release(&lease);
    let other = world.claim_only("a");
    world.decide(&other, vec![put("x")]).unwrap();
    all_are_lost(&world, &lease);
}

pub fn lost_to_a_take_over<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(note("a"), vec![put("x")]);
    world.reclaim_from("w1");
    all_are_lost(&world, &lease);
    assert_eq!(world.store.take_over(owner("w2"), 1).unwrap().len(), 1);
    all_are_lost(&world, &lease);
}

pub fn lost_to_a_deferred_apply<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(note("a"), vec![put("x")]);
    world.store.apply(lease.clone(), Disk::full(1_000)).unwrap();
    all_are_lost(&world, &lease);
}

pub fn lost_to_a_retry<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.fail(&lease);
    world.store.retry("a").unwrap();
    all_are_lost(&world, &lease);
    world.cancel("a");

    let lease = world.decided(note("b"), vec![put("x")]);
    world.store.apply(lease.clone(), Disk::in_conflict()).unwrap();
    world.store.retry("b").unwrap();
    all_are_lost(&world, &lease);
}

pub fn a_token_that_was_never_given_out_is_no_lease<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    for token in [0, lease.token + 1, i64::MAX] {
        all_are_lost(&world, &Lease { token, ..lease.clone() });
    }
    world.complete(&lease);
}

pub fn an_unknown_job_is_not_found<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    let nobody = Lease { id: "nobody".to_owned(), seq: lease.seq + 1, token: 1 };
    all_are_refused(&world, &nobody, ErrorKind::NotFound);
    // Neither a name nor a number alone is the job.
    all_are_refused(&world, &Lease { id: "nobody".to_owned(), ..lease.clone() }, ErrorKind::NotFound);
    all_are_refused(&world, &Lease { seq: lease.seq + 1, ..lease }, ErrorKind::NotFound);
}

/// A lost lease among several completions does not stop the others.
pub fn one_lost_completion_does_not_stop_the_others<H: Harness>() {
    let world = World::<H>::new();
    let lost = world.running(note("lost"));
    world.release(&lost);
    world.cancel("lost");
    let good = world.running(note("good"));
    let unknown = Lease { id: "nobody".to_owned(), seq: 99, token: 1 };
    let completion = |lease: &Lease| Completion { lease: lease.clone(), result: None, follow_ups: Vec::new() };
    let answers = world.store.complete(vec![completion(&lost), completion(&good), completion(&unknown)]).unwrap();
    let told: Vec<_> = answers.into_iter().map(told).collect();
    assert_eq!(told, [Err(ErrorKind::LeaseLost), Ok("Done".to_owned()), Err(ErrorKind::NotFound)]);
    assert_eq!(world.store.complete(Vec::new()).unwrap().len(), 0);
}
