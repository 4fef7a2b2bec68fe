//! Deleting old finished jobs, and nothing that is still needed.

use jobq::state::Status;
use jobq::store::{EndedAt, PruneEvents, PruneRequest, Store as _};
use jobq::{EnqueueOutcome, ErrorKind};

use super::Harness;
use super::draft::{create, delete, note, put};
use super::world::{Disk, World, kind};

/// Everything that ended before now, until there is nothing left to delete.
fn prune<H: Harness>(world: &World<H>, failed: bool) -> Vec<u64> {
    let request = PruneRequest { ended_before: world.now(), failed, forget: false, job_type: None };
    let mut rounds = Vec::new();
    loop {
        rounds.push(world.store.prune(request.clone()).unwrap());
        if rounds.last() == Some(&0) {
            return rounds;
        }
    }
}

pub fn finished_jobs_go_with_their_events<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("completed"));
    world.complete(&lease);
    world.add(note("cancelled"));
    world.cancel("cancelled");
    world.add(note("pending"));
    world.clock.advance(1);
    assert_eq!(prune(&world, false), [2, 0]);
    for id in ["completed", "cancelled"] {
        assert_eq!(kind(world.store.get(id)), ErrorKind::NotFound);
        assert_eq!(kind(world.store.resolve(id)), ErrorKind::NotFound);
        assert_eq!(world.events(id).len(), 0);
        assert_eq!(kind(world.store.retry(id)), ErrorKind::NotFound);
    }
    assert_eq!(world.event_types("pending"), ["queued"]);
}

pub fn only_what_ended_before_the_given_time_goes<H: Harness>() {
    let world = World::<H>::new();
    for id in ["old", "new"] {
        world.add(note(id));
        world.cancel(id);
        world.clock.advance(1_000);
    }
    let until = |ended_before| PruneRequest { ended_before, failed: true, forget: true, job_type: None };
    let new_ended = world.get("new").completed_at.unwrap();
    assert_eq!(world.store.prune(until(new_ended - 1_000)).unwrap(), 0);
    assert_eq!(world.store.prune(until(new_ended)).unwrap(), 1);
    assert_eq!(kind(world.store.get("old")), ErrorKind::NotFound);
    assert_eq!(world.status("new"), Status::Cancelled);
}

pub fn only_the_type_that_is_named_goes<H: Harness>() {
    let world = World::<H>::new();
    for job in [note("note"), create("file", "x", "y")] {
        let id = world.add(job);
        world.cancel(&id);
    }
    world.clock.advance(1);
    let job_type = Some(world.get("file").job_type);
    let request = PruneRequest { ended_before: world.now(), failed: false, forget: false, job_type };
    assert_eq!(world.store.prune(request).unwrap(), 1);
    assert_eq!(kind(world.store.get("file")), ErrorKind::NotFound);
    assert_eq!(world.status("note"), Status::Cancelled);
}

pub fn failed_jobs_stay_unless_asked_for<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("failed"));
    world.fail(&lease);
    let lease = world.decided(note("conflict"), vec![put("x")]);
    world.store.apply(lease, Disk::in_conflict()).unwrap();
    world.clock.advance(1);
    world.unchanged("a prune without failed ones", || assert_eq!(prune(&world, false), [0]));
    assert_eq!(prune(&world, true), [2, 0]);
    assert_eq!(kind(world.store.get("failed")), ErrorKind::NotFound);
}

pub fn unfinished_jobs_never_go<H: Harness>() {
    let world = World::<H>::new();
    world.decided(note("decided"), vec![put("x")]);
    world.decided(note("unowned"), vec![put("y")]);
    world.reclaim_from("w1");
    world.running(note("running"));
    let back = world.running(note("backoff"));
    world.reschedule(&back, 1_000);
    world.add(note("delayed").run_at(world.now() + 1));
    world.add(note("ready"));
    world.clock.advance(1_000_000);
    world.unchanged("a prune of unfinished jobs", || assert_eq!(prune(&world, true), [0]));
}

pub fn a_job_that_is_waited_on_stays<H: Harness>() {
    let world = World::<H>::new();
    let parent = world.running(note("parent"));
    world.add(note("child").after("parent"));
    world.fail(&parent);
    world.clock.advance(1);
    assert_eq!(prune(&world, true), [0]);
    world.cancel("child");
    world.clock.advance(1);
    assert_eq!(prune(&world, true), [1, 1, 0], "the waiter first, then what it waited on");
    assert_eq!(kind(world.store.get("parent")), ErrorKind::NotFound);
}

pub fn a_completed_parent_may_go_before_its_child<H: Harness>() {
    let world = World::<H>::new();
    let parent = world.running(note("parent"));
    world.add(note("child").after("parent"));
    world.complete(&parent);
    world.clock.advance(1);
    assert_eq!(prune(&world, false), [1, 0]);
    world.claim_only("child");
}

pub fn a_pruned_job_frees_its_id_and_its_key<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a").given().key("k"));
    world.complete(&lease);
    world.clock.advance(1);
    prune(&world, false);
    let answer = world.enqueue(note("a").given().key("k").always().payload("{}"));
    assert_eq!(answer.outcome, EnqueueOutcome::Inserted);
    assert_eq!(world.event_types("a"), ["queued"]);
}

/// That the later job is gone does not undo what it did.
pub fn pruning_does_not_open_the_door_to_an_overtaken_retry<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(create("a", "x", "1"));
    world.fail(&lease);
    let later = world.running(delete("b", "x"));
    world.complete(&later);
    world.clock.advance(1);
    assert_eq!(prune(&world, false), [1, 0]);
    assert_eq!(kind(world.store.retry("a")), ErrorKind::WrongState);
}

pub fn a_large_table_goes_in_bounded_steps<H: Harness>() {
    let world = World::<H>::new();
    let jobs = (0..2_500).map(|n| note(&format!("n{n}")).build()).collect();
    world.store.enqueue(jobs).unwrap();
    let waiting_on_nothing = world.claim_as("w1", 2_500);
    assert_eq!(waiting_on_nothing.len(), 2_500);
    for claim in waiting_on_nothing.chunks(500) {
        let completion = |c: &jobq::store::ClaimedJob| jobq::store::Completion {
            lease: c.lease.clone(),
            result: None,
            follow_ups: Vec::new(),
        };
        world.store.complete(claim.iter().map(completion).collect()).unwrap();
    }
    world.clock.advance(1);
    let rounds = prune(&world, false);
    assert_eq!((rounds.iter().sum::<u64>(), rounds.len() > 2), (2_500, true), "{rounds:?}");
}

pub fn large_jobs_go_fewer_at_a_time<H: Harness>() {
    let world = World::<H>::new();
    for n in 0..4 {
        let text = format!("{{\"text\":\"{}\"}}", "x".repeat(3 << 20));
        world.add(note(&format!("n{n}")).payload(&text));
        world.cancel(&format!("n{n}"));
    }
    world.clock.advance(1);
    assert_eq!(prune(&world, false), [1, 1, 1, 1, 0]);
}

pub fn events_can_go_before_their_jobs<H: Harness>() {
    let world = World::<H>::new();
    let completed = |id: &str| {
        let lease = world.running(note(id));
        world.complete(&lease);
        world.clock.advance(1_000);
    };
    completed("first");
    let horizon = world.now();
    completed("second");
    let failed = world.running(note("failed"));
    world.fail(&failed);
    world.add(note("pending"));
    let events = |ended_before, after| {
        let job_type = world.get("first").job_type;
        let request = PruneEvents { job_type, status: Status::Completed, ended_before, after };
        world.store.prune_events(request).unwrap()
    };
    let place = events(horizon, EndedAt::default()).unwrap();
    assert_eq!(events(horizon, place), None);
    assert_eq!((world.events("first").len(), world.events("second").len()), (0, 3));
    assert_eq!(world.status("first"), Status::Completed);
    let place = events(i64::MAX, place).unwrap();
    assert_eq!(events(i64::MAX, place), None);
    assert_eq!((world.events("second").len(), world.events("failed").len()), (0, 3));
    assert_eq!(world.event_types("pending"), ["queued"]);
    assert_eq!(prune(&world, true).iter().sum::<u64>(), 2, "the failed one has just ended");
}

/// Of two that ended in one millisecond neither is missed.
pub fn events_go_in_bounded_steps<H: Harness>() {
    let world = World::<H>::new();
    world.store.enqueue((0..1_500).map(|n| note(&format!("n{n}")).build()).collect()).unwrap();
    for n in 0..1_500 {
        world.cancel(&format!("n{n}"));
    }
    world.clock.advance(1);
    let (mut after, mut steps) = (EndedAt::default(), 0);
    let job_type = world.get("n0").job_type;
    loop {
        let (status, job_type) = (Status::Cancelled, job_type.clone());
        let request = PruneEvents { job_type, status, ended_before: world.now(), after };
        let Some(place) = world.store.prune_events(request).unwrap() else { break };
        assert!(place > after);
        (after, steps) = (place, steps + 1);
    }
    assert!(steps > 1, "{steps}");
    assert!((0..1_500).all(|n| world.events(&format!("n{n}")).is_empty()));
}

/// What the former bearer of an id has done is still known.
pub fn an_id_that_is_free_again_may_decide_on_the_same_path<H: Harness>() {
    let world = World::<H>::new();
    for _ in 0..3 {
        let lease = world.decided(note("a").given(), vec![put("x"), put("y")]);
        assert_eq!(world.store.planned("a").unwrap().len(), 2);
        world.apply(&lease).unwrap();
        world.clock.advance(1);
        assert_eq!(prune(&world, false), [1, 0]);
    }
}
