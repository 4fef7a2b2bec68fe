//! The six questions.

use jobq::clock::{Clock as _, SystemClock, rfc3339};
use jobq::state::{Gate, Status};
use jobq::store::{Completion, Decision, Failure, Store as _};

use super::Harness;
use super::draft::{create, note, put};
use super::world::{Disk, World};

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

pub fn the_oldest_pending_job_of_each_type_is_named<H: Harness>() {
    let world = World::<H>::new();
    let start = world.now();
    world.running(note("claimed"));
    world.clock.advance(1_000);
    world.add(note("delayed").run_at(world.now() + 60_000));
    world.clock.advance(1_000);
    world.add(note("ready"));
    world.add(create("file", "x", "y"));
    world.clock.advance(500);
    let stats = world.store.stats().unwrap();
    let oldest: Vec<_> = stats.oldest_pending.into_iter().map(|o| (o.job_type, o.id, o.gate, o.age_ms)).collect();
    let expected = [
        ("create".to_owned(), "file".to_owned(), Some(Gate::Ready), 500),
        ("note".to_owned(), "delayed".to_owned(), Some(Gate::Delayed), 1_500),
    ];
    assert_eq!(oldest, expected);
    let claimed = stats.outstanding.iter().find(|group| group.status == Status::Claimed).unwrap();
    assert_eq!((claimed.oldest_id.as_str(), claimed.age_ms), ("claimed", 2_500));
    assert_eq!(claimed.oldest.as_deref(), Some(rfc3339(start).as_str()));
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
    assert_eq!((group.p50_ms, group.p95_ms), (300, 500));
}

pub fn times_are_those_of_the_newest_jobs<H: Harness>() {
    const NEWEST: i64 = 2_000;
    let world = World::<H>::new();
    let run = |ids: std::ops::Range<i64>, waits: i64, takes: i64| {
        world.store.enqueue(ids.clone().map(|n| note(&format!("n{n}")).build()).collect()).unwrap();
        world.clock.advance(waits);
        let claims = world.claim_as("w1", 10_000);
        assert_eq!(claims.len(), ids.count());
        world.clock.advance(takes);
        for claim in claims {
            world.complete(&claim.lease);
        }
    };
    run(0..50, 70_000, 90_000);
    run(50..150, 20, 50);
    run(150..50 + NEWEST, 10, 5);
    let stats = world.store.stats().unwrap();
    let (took, waited) = (&stats.durations[0], &stats.latencies[0]);
    assert_eq!((took.jobs, took.p50_ms, took.p95_ms, took.max_ms), (NEWEST, 5, 5, 50));
    assert_eq!((waited.jobs, waited.p50_ms, waited.p95_ms, waited.max_ms), (NEWEST, 10, 10, 20));
}

fn waited<H: Harness>(world: &World<H>) -> Vec<(i64, i64)> {
    world.store.stats().unwrap().latencies.iter().map(|group| (group.jobs, group.max_ms)).collect()
}

pub fn a_wait_begins_when_the_job_is_queued_or_due<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("at once"));
    world.clock.advance(40);
    let lease = world.claim_only("at once");
    world.complete(&lease);
    assert_eq!(waited(&world), [(1, 40)]);
    world.add(note("put off").run_at(world.now() + 60_000));
    world.clock.advance(60_050);
    let lease = world.claim_only("put off");
    world.complete(&lease);
    assert_eq!(waited(&world), [(2, 50)]);
}

pub fn a_claim_that_was_given_back_does_not_end_the_wait<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.clock.advance(30);
    world.release(&lease);
    world.clock.advance(30);
    let lease = world.claim_only("a");
    world.complete(&lease);
    assert_eq!(waited(&world), [(1, 60)]);
}

pub fn a_wait_that_is_not_known_is_left_out<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("tried twice"));
    world.reschedule(&lease, 5_000);
    world.clock.advance(9_000);
    let lease = world.claim_only("tried twice");
    world.complete(&lease);
    assert_eq!(waited(&world), []);
    assert_eq!(world.store.stats().unwrap().durations[0].jobs, 1);
}

pub fn a_retried_job_has_waited_since_then<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.fail(&lease);
    world.clock.advance(1_000_000);
    world.store.retry("a").unwrap();
    world.clock.advance(25);
    let lease = world.claim_only("a");
    world.complete(&lease);
    assert_eq!(waited(&world), [(1, 25)]);
}

/// What was decided has run; that it is applied later, by someone else, is no wait.
pub fn taking_over_does_not_end_the_wait_again<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a"));
    world.clock.advance(35);
    let lease = world.claim_only("a");
    world.decide(&lease, vec![put("x")]).unwrap();
    world.clock.advance(7_000);
    world.reclaim_from("w1");
    let taken = world.take_over("w2");
    world.clock.advance(5);
    world.apply(&taken[0].lease).unwrap();
    assert_eq!(waited(&world), [(1, 35)]);
}

pub fn what_waits_on_a_failed_job<H: Harness>() {
    let world = World::<H>::new();
    for parent in ["completed", "failed", "lonely"] {
        let lease = world.running(note(parent));
        if parent != "lonely" {
            world.add(note(&format!("{parent} child")).after(parent));
            world.add(note(&format!("{parent} child, called off")).after(parent));
            world.cancel(&format!("{parent} child, called off"));
        }
        if parent == "completed" {
            world.complete(&lease);
            let child = world.claim_only("completed child");
            world.complete(&child);
        } else {
            world.fail(&lease);
        }
    }
    let blocked: Vec<_> = world.store.stats().unwrap().blocked.into_iter().map(|b| (b.id, b.jobs)).collect();
    assert_eq!(blocked, [("failed".to_owned(), 1)]);
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

fn costs<H: Harness>(world: &World<H>) -> Vec<(String, i64, bool, f64)> {
    let costs = world.store.stats().unwrap().costs;
    costs.into_iter().map(|cost| (cost.job_type, cost.jobs, cost.at_least, cost.total_cost_usd)).collect()
}

pub fn what_jobs_cost_is_what_their_results_say<H: Harness>() {
    let world = World::<H>::new();
    let complete = |id: &str, result: Option<&str>| {
        let lease = world.running(note(id));
        let completion = Completion { lease, result: result.map(str::to_owned), follow_ups: Vec::new() };
        world.store.complete(vec![completion]).unwrap().remove(0).unwrap();
        world.clock.advance(1);
    };
    complete("free", None);
    complete("odd", Some(r#"{"total_cost_usd":"much"}"#));
    assert_eq!(costs(&world), [], "nobody spoke of a cost");
    complete("one", Some(r#"{"total_cost_usd":0.1,"usage":{"total_cost_usd":100}}"#));
    complete("two", Some(r#"{"total_cost_usd":0.2}"#));
    assert_eq!(costs(&world), [("note".to_owned(), 2, false, 0.3)]);
    let lease = world.running(note("failed"));
    let failure = Failure::new("bad_answer", "paid for, too").leaving(r#"{"total_cost_usd":3}"#);
    world.store.fail(lease, failure).unwrap();
    assert_eq!(costs(&world), [("note".to_owned(), 3, false, 3.3)]);
    let called_off = world.add(note("cancelled"));
    world.cancel(&called_off);
    let lease = world.running(create("file", "x", "y"));
    world.complete(&lease);
    complete("a number", Some("7"));
    assert_eq!(costs(&world), [("note".to_owned(), 3, false, 3.3)], "the newest that failed still says so");
    world.store.retry("failed").unwrap();
    assert_eq!(costs(&world), [], "a type is known by its newest jobs");
}

pub fn what_could_not_be_applied_was_paid_for<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    let result = Some(r#"{"total_cost_usd":0.5}"#.to_owned());
    let decision = Decision { result, effects: vec![put("x")], ..Decision::default() };
    world.store.decide(lease.clone(), decision).unwrap();
    world.store.apply(lease, Disk::in_conflict()).unwrap();
    assert_eq!((world.status("a"), costs(&world)), (Status::Failed, vec![("note".to_owned(), 1, false, 0.5)]));
}
