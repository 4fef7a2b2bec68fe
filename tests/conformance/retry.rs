//! The operator's retry: never automatic, never out of turn.

use jobq::ErrorKind;
use jobq::state::{Gate, Status};
use jobq::store::Store as _;

use super::Harness;
use super::draft::{create, delete, note, put};
use super::world::{Disk, World, kind};

fn refused<H: Harness>(world: &World<H>, id: &str, because_of: &str) {
    let error = world.unchanged("a refused retry", || world.store.retry(id).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::WrongState);
    assert!(error.to_string().contains(because_of), "must name {because_of}: {error}");
}

pub fn a_failed_job_starts_afresh_in_its_old_place<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a").max_attempts(1));
    let seq = lease.seq;
    world.fail(&lease);
    world.add(note("b"));
    let job = world.store.retry("a").unwrap();
    assert_eq!((job.status, job.gate, job.attempts), (Status::Pending, Some(Gate::Ready), 0));
    assert_eq!((job.seq, job.token, job.completed_at, job.run_at), (seq, 1, None, None));
    assert_eq!(format!("{job:?}"), format!("{:?}", world.get("a")));
    assert_eq!(world.claim(10), ["a", "b"]);
    assert_eq!(world.get("a").attempts, 1);
}

pub fn a_cancelled_job_comes_back_and_is_due<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a").run_at(world.now() + 60_000));
    world.cancel("a");
    let job = world.store.retry("a").unwrap();
    assert_eq!((job.status, job.gate, job.run_at), (Status::Pending, Some(Gate::Ready), None));
    world.claim_only("a");
}

pub fn only_failed_and_cancelled_jobs_can_be_retried<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a"));
    refused(&world, "a", "pending");
    let lease = world.claim_only("a");
    refused(&world, "a", "claimed");
    world.complete(&lease);
    refused(&world, "a", "completed");
    world.decided(note("b"), vec![put("x")]);
    refused(&world, "b", "claimed");
}

pub fn a_second_retry_is_refused<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.fail(&lease);
    world.store.retry("a").unwrap();
    refused(&world, "a", "pending");
}

pub fn a_failed_decided_job_is_decided_again<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(create("a", "x", "1"), vec![put("x")]);
    world.store.apply(lease, Disk::in_conflict()).unwrap();
    world.add(create("next", "x", "2"));
    let job = world.store.retry("a").unwrap();
    assert_eq!((job.status, job.gate, job.attempts, job.token), (Status::Claimed, None, 1, 1));
    assert_eq!((job.locked_by, job.completed_at), (None, None));
    assert_eq!(world.claim(10), [""; 0], "neither run again nor overtaken");
    let taken = world.take_over("w2").remove(0);
    assert_eq!((taken.lease.id.as_str(), taken.lease.token, taken.job.attempts), ("a", 2, 1));
    world.apply(&taken.lease).unwrap();
    world.claim_only("next");
}

pub fn a_retried_job_goes_before_later_ones_that_have_not_started<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(create("a", "x", "1"));
    world.add(delete("b", "x"));
    world.fail(&lease);
    assert_eq!(world.gate("b"), Some(Gate::Ready));
    world.store.retry("a").unwrap();
    assert_eq!((world.gate("a"), world.gate("b")), (Some(Gate::Ready), Some(Gate::Held)));
    let lease = world.claim_only("a");
    world.complete(&lease);
    world.claim_only("b");
}

/// A file that was deleted since must not come back.
pub fn a_job_that_a_later_one_has_overtaken_stays_down<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(create("a", "x", "1"));
    world.fail(&lease);
    world.add(delete("b", "x"));
    let later = world.claim_only("b");
    refused(&world, "a", "job b ");
    world.reschedule(&later, 0);
    refused(&world, "a", "job b ");
    let later = world.claim_only("b");
    world.complete(&later);
    refused(&world, "a", "job b ");
}

pub fn one_shared_key_is_enough_to_be_overtaken<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a").holds(&["lane:x", "lane:y"]));
    world.fail(&lease);
    let later = world.running(note("b").holds(&["lane:y", "lane:z"]));
    world.complete(&later);
    refused(&world, "a", "job b ");
}

pub fn an_earlier_job_does_not_stand_in_the_way_of_a_retry<H: Harness>() {
    let world = World::<H>::new();
    world.add(create("a", "x", "1"));
    world.add(delete("b", "x"));
    world.cancel("b");
    let earlier = world.claim_only("a");
    world.complete(&earlier);
    assert_eq!(world.store.retry("b").unwrap().gate, Some(Gate::Ready));
}

pub fn a_later_job_that_was_given_back_has_not_started<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(create("a", "x", "1"));
    world.fail(&lease);
    let later = world.running(delete("b", "x"));
    world.release(&later);
    assert_eq!(world.store.retry("a").unwrap().gate, Some(Gate::Ready));
    world.claim_only("a");
}

/// That it was called off afterwards does not mean that it ran.
pub fn a_later_job_that_was_given_back_and_cancelled_has_not_started<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(create("a", "x", "1"));
    world.fail(&lease);
    let later = world.running(delete("b", "x"));
    world.release(&later);
    world.cancel("b");
    assert_eq!(world.store.retry("a").unwrap().gate, Some(Gate::Ready));
}

/// Its attempts are counted from 0 again, but it has run on the key.
pub fn a_later_job_that_ran_and_was_retried_has_started<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(create("a", "x", "1"));
    world.fail(&lease);
    let later = world.running(delete("b", "x"));
    world.fail(&later);
    world.store.retry("b").unwrap();
    refused(&world, "a", "job b ");
}

pub fn a_decided_job_that_a_later_one_has_overtaken_stays_down<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(note("a"), vec![put("x")]);
    world.store.apply(lease, Disk::in_conflict()).unwrap();
    let later = world.running(delete("b", "x"));
    refused(&world, "a", "job b ");
    world.complete(&later);
    refused(&world, "a", "job b ");
}

pub fn a_key_that_is_taken_refuses_the_retry<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a").key("k"));
    world.fail(&lease);
    let other = world.running(note("b").key("k"));
    refused(&world, "a", "job b");
    world.complete(&other);
    assert_eq!(world.store.retry("a").unwrap().status, Status::Pending, "free again");
    assert_eq!(world.enqueue(note("c").key("k")).id, "a", "and taken by the retried one");
}

pub fn a_job_whose_parent_is_down_cannot_come_back_alone<H: Harness>() {
    let world = World::<H>::new();
    let parent = world.running(note("parent"));
    world.add(note("child").after("parent"));
    world.cancel("child");
    world.fail(&parent);
    refused(&world, "child", "job parent is failed");
    world.store.retry("parent").unwrap();
    assert_eq!(world.store.retry("child").unwrap().gate, Some(Gate::Waiting));

    let world = World::<H>::new();
    world.add(note("parent"));
    world.add(note("child").after("parent"));
    world.cancel("parent");
    refused(&world, "child", "job parent is cancelled");
    assert_eq!(kind(world.store.retry("nobody")), ErrorKind::NotFound);
}
