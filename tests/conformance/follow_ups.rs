//! Follow-up jobs: there exactly when the job that asked for them completed.

use jobq::state::{Gate, Status};
use jobq::store::{Application, Completion, Decision, EnqueueJob, Lease, Store as _};
use jobq::{EnqueueOutcome, ErrorKind};

use super::Harness;
use super::draft::{Draft, create, note, put};
use super::world::{Disk, World, kind};

fn decide_with<H: Harness>(world: &World<H>, lease: &Lease, follow_ups: &[Draft]) -> jobq::Result<()> {
    let follow_ups: Vec<EnqueueJob> = follow_ups.iter().cloned().map(Draft::build).collect();
    world.store.decide(lease.clone(), Decision { follow_ups, ..Decision::default() }).map(drop)
}

fn complete_with<H: Harness>(world: &World<H>, lease: &Lease, follow_ups: &[Draft]) -> jobq::Result<()> {
    let follow_ups: Vec<EnqueueJob> = follow_ups.iter().cloned().map(Draft::build).collect();
    let completion = Completion { lease: lease.clone(), result: None, follow_ups };
    world.store.complete(vec![completion]).unwrap().remove(0).map(drop)
}

pub fn they_come_with_the_completion<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    complete_with(&world, &lease, &[note("f1").priority(3), note("f2").after("f1")]).unwrap();
    assert_eq!((world.status("a"), world.gate("f1")), (Status::Completed, Some(Gate::Ready)));
    assert_eq!((world.get("f1").priority, world.gate("f2")), (3, Some(Gate::Waiting)));
    world.unchanged("completing again", || world.complete(&lease));
    assert_eq!(world.claim(10), ["f1"]);
}

pub fn they_come_with_the_apply_and_not_with_the_decision<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    decide_with(&world, &lease, &[note("f1"), note("f2")]).unwrap();
    assert_eq!(kind(world.store.get("f1")), ErrorKind::NotFound);
    world.store.apply(lease, Disk::full(0)).unwrap();
    assert_eq!(kind(world.store.get("f1")), ErrorKind::NotFound);
    let lease = world.take_over("w2").remove(0).lease;
    assert_eq!(world.apply(&lease).unwrap(), Application::Completed);
    assert_eq!(world.claim(10), ["f1", "f2"]);
    world.unchanged("applying again", || world.apply(&lease).unwrap());
}

pub fn a_conflict_brings_none_and_its_retry_brings_all<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    decide_with(&world, &lease, &[note("f1")]).unwrap();
    world.store.apply(lease, Disk::in_conflict()).unwrap();
    assert_eq!(kind(world.store.get("f1")), ErrorKind::NotFound);
    world.store.retry("a").unwrap();
    let lease = world.take_over("w2").remove(0).lease;
    world.apply(&lease).unwrap();
    assert_eq!(world.claim(10), ["f1"]);
}

pub fn a_bad_follow_up_refuses_the_completion<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    let bad = [note("good"), note("bad").after("nobody")];
    let answer = world.unchanged("a bad completion", || kind(complete_with(&world, &lease, &bad)));
    assert_eq!(answer, ErrorKind::Invalid, "it is not the job that is not found");
    let answer = world.unchanged("a bad decision", || kind(decide_with(&world, &lease, &bad)));
    assert_eq!(answer, ErrorKind::Invalid, "promised only what can be queued");
    let said = complete_with(&world, &lease, &bad).unwrap_err().to_string();
    assert!(said.contains("follow-up job 2") && said.contains("no job nobody"), "{said}");
    complete_with(&world, &lease, &[note("good")]).unwrap();
    world.claim_only("good");
}

pub fn a_bad_follow_up_spoils_only_its_own_completion<H: Harness>() {
    let world = World::<H>::new();
    let (bad, good) = (world.running(note("bad")), world.running(note("good")));
    let completion = |lease: &Lease, follow_ups| Completion { lease: lease.clone(), result: None, follow_ups };
    let first = completion(&bad, vec![note("f1").build(), note("f2").after("nobody").build()]);
    let answers = world.store.complete(vec![first, completion(&good, vec![note("f3").build()])]).unwrap();
    assert_eq!((answers[0].is_err(), answers[1].is_ok()), (true, true));
    assert_eq!((world.status("bad"), world.status("good")), (Status::Claimed, Status::Completed));
    assert_eq!(world.claim(10), ["f3"]);
}

/// The world may change between the decision and its apply. The effects are
/// certain; what could not be queued is said.
pub fn one_that_has_become_impossible_does_not_stop_the_job<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("parent").run_at(world.now() + 1));
    let lease = world.running(note("a"));
    decide_with(&world, &lease, &[note("f1").after("parent"), note("f2")]).unwrap();
    world.cancel("parent");
    assert_eq!(world.apply(&lease).unwrap(), Application::Completed);
    let job = world.get("a");
    assert_eq!(job.status, Status::Completed);
    assert!(job.last_error.unwrap().contains("f1"), "names what could not be queued");
    assert_eq!(kind(world.store.get("f1")), ErrorKind::NotFound);
    assert_eq!(world.claim(10), ["f2"]);
}

pub fn they_may_wait_on_the_job_itself<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    complete_with(&world, &lease, &[note("f1").after("a")]).unwrap();
    let lease = world.claim_only("f1");
    decide_with(&world, &lease, &[note("f2").after("f1")]).unwrap();
    world.apply(&lease).unwrap();
    world.claim_only("f2");
}

pub fn they_stand_in_line_behind_what_was_there<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(create("a", "x", "1"));
    world.add(create("next", "x", "2"));
    complete_with(&world, &lease, &[create("f1", "x", "3").priority(9)]).unwrap();
    let next = world.claim_only("next");
    world.complete(&next);
    world.claim_only("f1");
}

/// A job that queues its own successor under its own key: the key is free by
/// the time the successor is queued, because the job has completed by then.
pub fn a_successor_may_have_the_key_of_the_job_that_completes<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a").key("k"));
    complete_with(&world, &lease, &[note("f1").key("k")]).unwrap();
    assert_eq!(world.claim(10), ["f1"], "completed without effects");

    let world = World::<H>::new();
    let lease = world.running(note("a").key("k"));
    decide_with(&world, &lease, &[note("f1").key("k")]).unwrap();
    world.apply(&lease).unwrap();
    assert_eq!(world.claim(10), ["f1"], "decided and applied");
}

/// The same for file jobs, whose rule looks at the newest on their path.
pub fn a_successor_may_equal_the_file_job_that_completes<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(create("a", "x", "1"));
    complete_with(&world, &lease, &[create("f1", "x", "1")]).unwrap();
    assert_eq!(world.claim(10), ["f1"], "completed without effects");

    let world = World::<H>::new();
    let lease = world.running(create("a", "x", "1"));
    let follow_ups = vec![create("f1", "x", "1").build()];
    world.store.decide(lease.clone(), Decision { result: None, effects: vec![put("x")], follow_ups }).unwrap();
    world.apply(&lease).unwrap();
    assert_eq!(world.claim(10), ["f1"], "decided and applied");
}

/// A follow-up that another job already stands for is not queued twice.
pub fn a_duplicate_follow_up_is_not_an_error<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.add(note("other").key("k"));
    decide_with(&world, &lease, &[note("f1").key("k")]).unwrap();
    world.apply(&lease).unwrap();
    assert_eq!(world.get("a").last_error, None);
    assert_eq!(kind(world.store.get("f1")), ErrorKind::NotFound);
    assert_eq!(world.enqueue(note("f2").key("k")).outcome, EnqueueOutcome::Existing);
}
