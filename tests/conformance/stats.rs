//! The six questions.

use jobq::clock::{Clock as _, SystemClock, rfc3339};
use jobq::state::{Gate, Status};
use jobq::store::Store as _;

use super::Harness;
use super::draft::{note, put};
use super::world::World;

pub fn an_empty_store_has_nothing_to_say<H: Harness>() {
    let stats = World::<H>::new().store.stats().unwrap();
    assert_eq!((stats.outstanding.len(), stats.failed.len(), stats.stuck.len()), (0, 0, 0));
    assert_eq!((stats.durations.len(), stats.duplicates, stats.last_hour.len()), (0, 0, 0));
}

pub fn what_work_is_outstanding<H: Harness>() {
    let world = World::<H>::new();
    let start = world.now();
    world.running(note("claimed"));
    world.add(note("old"));
    world.clock.advance(1_000);
    world.add(note("new"));
    world.add(note("delayed").run_at(world.now() + 1).of_type("create"));
    world.add(note("gone"));
    world.cancel("gone");
    let mut outstanding: Vec<_> = world
        .store
        .stats()
        .unwrap()
        .outstanding
        .into_iter()
        .map(|group| (group.job_type, group.status, group.gate, group.jobs, group.oldest.unwrap()))
        .collect();
    outstanding.sort_by_key(|group| (group.0.clone(), group.1.as_str()));
    let expected = [
        ("create".to_owned(), Status::Pending, Some(Gate::Delayed), 1, rfc3339(start + 1_000)),
        ("note".to_owned(), Status::Claimed, None, 1, rfc3339(start)),
        ("note".to_owned(), Status::Pending, Some(Gate::Ready), 2, rfc3339(start)),
    ];
    assert_eq!(outstanding, expected);
}

pub fn what_failed_and_why<H: Harness>() {
    let world = World::<H>::new();
    for (id, why) in [("first", "one"), ("second", "two")] {
        let lease = world.running(note(id));
        world.store.fail(lease, jobq::store::Failure::new("code", why)).unwrap();
        world.clock.advance(1);
    }
    let failed = world.store.stats().unwrap().failed;
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].job_type.as_str(), failed[0].jobs, failed[0].newest.as_str()), ("note", 2, "second"));
    assert_eq!(failed[0].last_error.as_deref(), Some("code: two"));
    world.store.retry("first").unwrap();
    assert_eq!(world.store.stats().unwrap().failed[0].jobs, 1);
}

pub fn how_long_jobs_take<H: Harness>() {
    let world = World::<H>::new();
    for (id, took) in [("a", 100), ("b", 300), ("c", 500)] {
        world.add(note(id));
        world.clock.advance(77);
        let lease = world.claim_only(id);
        world.clock.advance(took);
        world.complete(&lease);
    }
    let failed = world.running(note("failed"));
    world.clock.advance(9_999);
    world.fail(&failed);
    let durations = world.store.stats().unwrap().durations;
    assert_eq!(durations.len(), 1);
    let group = &durations[0];
    assert_eq!((group.job_type.as_str(), group.jobs), ("note", 3));
    assert_eq!((group.min_ms, group.avg_ms, group.max_ms), (100, 300, 500));
}

pub fn there_are_no_duplicates<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a").key("k"));
    world.complete(&lease);
    world.add(note("b").key("k"));
    world.enqueue(note("c").key("k"));
    assert_eq!(world.store.stats().unwrap().duplicates, 0);
}

/// These two questions are about the present, so the clock starts there.
pub fn what_is_stuck<H: Harness>() {
    let world = World::<H>::at(SystemClock.now() - 600_000);
    let silent = world.now();
    world.running(note("silent"));
    let lively = world.running(note("lively"));
    world.clock.advance(599_000);
    let beat = jobq::store::Beat { lease: lively, progress: None, checkpoint: None };
    world.store.heartbeat(vec![beat]).unwrap();
    let stuck = world.store.stats().unwrap().stuck;
    assert_eq!(stuck.len(), 1);
    assert_eq!((stuck[0].id.as_str(), stuck[0].locked_by.as_deref()), ("silent", Some("w1")));
    assert_eq!(stuck[0].last_sign_of_life.as_deref(), Some(rfc3339(silent).as_str()));
}

pub fn what_ran_in_the_last_hour<H: Harness>() {
    let world = World::<H>::at(SystemClock.now() - 2 * 3_600_000);
    let old = world.running(note("old"));
    world.complete(&old);
    world.clock.advance(2 * 3_600_000 - 60_000);
    for id in ["a", "b"] {
        let lease = world.running(note(id));
        world.complete(&lease);
    }
    let failed = world.running(note("failed").of_type("create"));
    world.fail(&failed);
    world.decided(note("unfinished"), vec![put("x")]);
    let mut recent: Vec<_> = world
        .store
        .stats()
        .unwrap()
        .last_hour
        .into_iter()
        .map(|group| (group.job_type, group.status, group.jobs))
        .collect();
    recent.sort_by_key(|group| group.0.clone());
    assert_eq!(recent, [("create".to_owned(), Status::Failed, 1), ("note".to_owned(), Status::Completed, 2)]);
}
