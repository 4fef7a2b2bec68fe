//! Taking jobs back from owners that died or went silent.

use std::collections::HashSet;

use jobq::state::{Gate, Status};
use jobq::store::{Beat, DeadOwner, LapsedLease, Lease, Reclaim, Reclaimed, Started, Store as _};

use super::Harness;
use super::draft::{note, put};
use super::world::World;

fn dead<H: Harness>(world: &World<H>, worker: &str, started: &[&Lease]) -> Reclaimed {
    let started: HashSet<_> = started.iter().map(|lease| (lease.seq, lease.token)).collect();
    let dead = vec![DeadOwner { locked_by: worker.to_owned(), started: Some(started) }];
    world.store.reclaim(Reclaim { dead, lapsed: Vec::new() }).unwrap()
}

fn lapsed<H: Harness>(world: &World<H>, lease: &Lease, heartbeat: i64, started: Started) -> Reclaimed {
    let lapsed = vec![LapsedLease { lease: lease.clone(), heartbeat, started }];
    world.store.reclaim(Reclaim { dead: Vec::new(), lapsed }).unwrap()
}

fn pending(ids: &[&str]) -> Reclaimed {
    Reclaimed { pending: ids.iter().map(|&id| id.to_owned()).collect(), ..Reclaimed::default() }
}

pub fn started_jobs_keep_their_attempt_and_others_get_it_back<H: Harness>() {
    let world = World::<H>::new();
    let started = world.running(note("started"));
    world.running(note("ahead"));
    assert_eq!(dead(&world, "w1", &[&started]), pending(&["started", "ahead"]));
    let (ran, did_not) = (world.get("started"), world.get("ahead"));
    assert_eq!((ran.status, ran.gate, ran.attempts), (Status::Pending, Some(Gate::Ready), 1));
    assert_eq!(ran.last_error.as_deref(), Some("worker_lost: worker w1 was lost"));
    assert_eq!((did_not.status, did_not.attempts, did_not.last_error), (Status::Pending, 0, None));
    assert_eq!((ran.locked_by, ran.locked_at, ran.token), (None, None, 1));
    for id in ["started", "ahead"] {
        assert_eq!(world.event_types(id), ["queued", "claimed", "worker_lost", "reclaimed"]);
    }
    assert_eq!(world.store.leases().unwrap().len(), 0);
}

pub fn a_slot_of_an_older_claim_does_not_count_as_started<H: Harness>() {
    let world = World::<H>::new();
    let old = world.running(note("a"));
    world.release(&old);
    world.claim_only("a");
    dead(&world, "w1", &[&old]);
    assert_eq!(world.get("a").attempts, 0);
}

pub fn a_job_that_keeps_losing_its_worker_fails<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("poison").max_attempts(2).holds(&["lane:x"]));
    world.add(note("child").after("poison"));
    world.add(note("next").holds(&["lane:x"]));
    let first = world.claim_only("poison");
    assert_eq!(dead(&world, "w1", &[&first]), pending(&["poison"]));
    let second = world.claim_only("poison");
    let answer = dead(&world, "w1", &[&second]);
    assert_eq!(answer, Reclaimed { failed: vec!["poison".to_owned()], ..Reclaimed::default() });
    let job = world.get("poison");
    assert_eq!((job.status, job.attempts, job.completed_at), (Status::Failed, 2, Some(world.now())));
    assert!(job.last_error.unwrap().starts_with("worker_lost: "));
    let types = ["queued", "claimed", "worker_lost", "reclaimed", "claimed", "worker_lost", "failed"];
    assert_eq!(world.event_types("poison"), types);
    assert_eq!(world.gate("child"), Some(Gate::Waiting), "blocked until someone decides");
    world.claim_only("next");
}

/// Jobs claimed ahead sat beside the poison and must not suffer for it.
pub fn neighbours_of_a_poison_job_lose_nothing<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("poison").max_attempts(9));
    world.add(note("neighbour").max_attempts(1));
    for _ in 0..5 {
        let claims = world.claim_as("w1", 10);
        assert_eq!(claims.len(), 2);
        assert_eq!(dead(&world, "w1", &[&claims[0].lease]).failed, [""; 0]);
    }
    assert_eq!((world.get("poison").attempts, world.get("neighbour").attempts), (5, 0));
}

pub fn without_readable_slots_a_reclaim_never_fails_a_job<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a").max_attempts(1));
    for attempt in 1..=4 {
        world.claim_only("a");
        assert_eq!(world.reclaim_from("w1"), pending(&["a"]));
        assert_eq!((world.status("a"), world.get("a").attempts), (Status::Pending, attempt), "kept, and no more");
    }
    let lease = world.claim_only("a");
    assert_eq!(lapsed(&world, &lease, 0, Started::Unknown), pending(&["a"]));
}

pub fn only_the_dead_owner_loses_its_jobs<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a"));
    world.add(note("b"));
    world.claim_as("w1", 1);
    let alive = world.claim_as("w2", 1).remove(0).lease;
    assert_eq!(world.reclaim_from("w1"), pending(&["a"]));
    assert_eq!(world.status("b"), Status::Claimed);
    world.complete(&alive);
}

pub fn a_second_reclaim_finds_nothing<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.decided(note("b"), vec![put("x")]);
    world.reclaim_from("w1");
    world.unchanged("reclaiming again", || {
        assert_eq!(world.reclaim_from("w1"), Reclaimed::default());
        assert_eq!(lapsed(&world, &lease, 0, Started::Yes), Reclaimed::default());
        assert_eq!(world.reclaim_from("nobody"), Reclaimed::default());
        assert_eq!(world.store.reclaim(Reclaim::default()).unwrap(), Reclaimed::default());
    });
}

pub fn a_cancel_that_waited_for_a_dead_owner_is_carried_out<H: Harness>() {
    let world = World::<H>::new();
    world.running(note("a"));
    world.add(note("child").after("a"));
    world.cancel("a");
    let answer = world.reclaim_from("w1");
    assert_eq!(answer, Reclaimed { cancelled: vec!["a".to_owned()], ..Reclaimed::default() });
    assert_eq!((world.status("a"), world.status("child")), (Status::Cancelled, Status::Cancelled));
    assert_eq!(world.event_types("a"), ["queued", "claimed", "worker_lost", "cancelled"]);
}

pub fn a_decided_job_is_freed_for_anyone_to_apply<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(note("a").max_attempts(1), vec![put("x")]);
    let answer = dead(&world, "w1", &[&lease]);
    assert_eq!(answer, Reclaimed { unowned: vec!["a".to_owned()], ..Reclaimed::default() });
    let job = world.get("a");
    assert_eq!((job.status, job.locked_by, job.attempts), (Status::Claimed, None, 1));
    assert_eq!(world.event_types("a"), ["queued", "claimed", "decided", "worker_lost", "reclaimed"]);
    let taken = world.take_over("w2").remove(0).lease;
    world.apply(&taken).unwrap();
    assert_eq!(world.status("a"), Status::Completed);
}

pub fn a_silent_lease_is_taken_only_if_it_has_not_stirred<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    let beat = Beat { lease: lease.clone(), progress: None, checkpoint: None };
    world.store.heartbeat(vec![beat]).unwrap();
    let other = Lease { token: lease.token + 1, ..lease.clone() };
    world.unchanged("a verdict on something else", || {
        assert_eq!(lapsed(&world, &lease, 0, Started::Yes), Reclaimed::default(), "it has beaten since");
        assert_eq!(lapsed(&world, &other, 1, Started::Yes), Reclaimed::default(), "that is another claim");
    });
    assert_eq!(lapsed(&world, &lease, 1, Started::No), pending(&["a"]));
    assert_eq!(world.get("a").attempts, 0);
}

pub fn a_silent_owner_of_a_poison_job_fails_it_too<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a").max_attempts(1));
    assert_eq!(lapsed(&world, &lease, 0, Started::Yes).failed, ["a"]);
    assert_eq!(world.status("a"), Status::Failed);
}

pub fn the_dead_and_the_silent_in_one_go<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a"));
    world.add(note("b"));
    world.claim_as("w1", 1);
    let silent = world.claim_as("w2", 1).remove(0).lease;
    let request = Reclaim {
        dead: vec![DeadOwner { locked_by: "w1".to_owned(), started: None }],
        lapsed: vec![LapsedLease { lease: silent, heartbeat: 0, started: Started::Yes }],
    };
    assert_eq!(world.store.reclaim(request).unwrap(), pending(&["a", "b"]));
}
