//! Applying: completed with the disk, failed by conflict, or put off.

use std::sync::Arc;

use jobq::state::Status;
use jobq::store::{Application, ApplyReport, Decision, FileStamp, Lease, Store as _};

use super::Harness;
use super::draft::{create, note, put, remove};
use super::world::{Disk, World, conflict};

pub fn an_applied_job_is_completed_with_its_result<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.add(note("child").after("a"));
    let decision = Decision { result: Some(r#"{"n": 7}"#.to_owned()), effects: vec![put("x")], follow_ups: Vec::new() };
    world.store.decide(lease.clone(), decision).unwrap();
    world.clock.advance(5);
    assert_eq!(world.apply(&lease).unwrap(), Application::Completed);
    let job = world.get("a");
    assert_eq!((job.status, job.completed_at, job.locked_by), (Status::Completed, Some(world.now()), None));
    assert_eq!(job.result.unwrap().as_str(), r#"{"n": 7}"#);
    assert_eq!(job.last_error, None);
    assert_eq!(world.event_types("a"), ["queued", "claimed", "decided", "completed"]);
    world.claim_only("child");
}

pub fn a_conflict_fails_the_job_and_keeps_its_decision<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(create("a", "x", "1"), vec![put("x")]);
    world.add(note("child").after("a"));
    world.add(create("next", "x", "2"));
    let answer = world.store.apply(lease, Disk::in_conflict()).unwrap();
    let Application::Conflict(why) = answer else { panic!("{answer:?}") };
    assert!(why.starts_with("conflict: the file is another one") && why.contains("jobq retry"), "{why}");
    let job = world.get("a");
    assert_eq!((job.status, job.completed_at, job.attempts), (Status::Failed, Some(world.now()), 1));
    assert!(job.outcome.is_some(), "kept, for a retry to apply again");
    assert_eq!(job.last_error, Some(why), "with what to do about it");
    assert_eq!(world.event_types("a"), ["queued", "claimed", "decided", "failed"]);
    assert_eq!(world.take_over("w2").len(), 0);
    assert_eq!(world.status("child"), Status::Pending);
    world.claim_only("next");
}

/// What is already on disk is recorded as applied and not done a second time.
pub fn a_partial_conflict_leaves_only_the_rest_to_do<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(note("a"), vec![put("x"), put("y"), remove("z")]);
    let applied = vec![(1, FileStamp { mtime: 5, inode: 6 })];
    let half = Disk::that_says(ApplyReport::Conflict { failure: conflict(), applied });
    assert!(matches!(world.store.apply(lease, half).unwrap(), Application::Conflict(_)));
    assert_eq!(world.status("a"), Status::Failed);
    world.store.retry("a").unwrap();
    let lease = world.take_over("w2").remove(0).lease;
    let disk = Disk::obedient();
    assert_eq!(world.store.apply(lease, disk.clone()).unwrap(), Application::Completed);
    assert_eq!(disk.asked.lock().unwrap()[0].1, [put("x"), remove("z")]);
}

pub fn what_cannot_be_applied_now_is_left_to_whoever_comes<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(create("a", "x", "1"), vec![put("x")]);
    world.add(create("next", "x", "2"));
    world.add(note("child").after("a"));
    let due = world.now() + 2_000;
    let answer = world.store.apply(lease.clone(), Disk::full(2_000)).unwrap();
    assert_eq!(answer, Application::Deferred("disk_full: no room".to_owned()));
    let job = world.get("a");
    assert_eq!((job.status, job.locked_by, job.locked_at), (Status::Claimed, None, None));
    assert_eq!((job.run_at, job.attempts, job.token), (Some(due), 1, lease.token));
    assert_eq!(job.last_error.as_deref(), Some("disk_full: no room"));
    assert!(job.outcome.is_some());
    assert_eq!(world.store.leases().unwrap().len(), 0);
    assert_eq!(world.claim(10), [""; 0], "its path stays held and its waiters wait");

    world.clock.advance(1_999);
    assert_eq!(world.unchanged("taking over too early", || world.take_over("w2").len()), 0);
    world.clock.advance(1);
    let taken = world.take_over("w2").remove(0);
    assert_eq!((taken.lease.token, taken.job.attempts), (lease.token + 1, 1));
    assert_eq!(world.take_over("w3").len(), 0, "one at a time");
    assert_eq!(world.apply(&taken.lease).unwrap(), Application::Completed);
    let types = ["queued", "claimed", "decided", "rescheduled", "claimed", "completed"];
    assert_eq!(world.event_types("a"), types);
    assert_eq!(world.claim(10), ["next", "child"]);
}

pub fn putting_off_never_exhausts_a_job<H: Harness>() {
    let world = World::<H>::new();
    let mut lease = world.decided(note("a").max_attempts(1), vec![put("x")]);
    for round in 0..20 {
        assert!(matches!(world.store.apply(lease, Disk::full(50)).unwrap(), Application::Deferred(_)), "{round}");
        world.clock.advance(30_000);
        lease = world.take_over("w1").remove(0).lease;
    }
    assert_eq!(world.apply(&lease).unwrap(), Application::Completed);
}

/// What is missing may be so for days: neither the disk nor the events should
/// be filled by asking every second.
pub fn each_time_a_job_is_put_off_for_longer<H: Harness>() {
    let world = World::<H>::new();
    let first = world.running(note("a"));
    // A wait of an attempt is no wait of an apply.
    world.reschedule(&first, 20_000);
    world.clock.advance(20_000);
    let mut lease = world.claim_only("a");
    world.decide(&lease, vec![put("x")]).unwrap();
    let put_off = |lease: Lease, asked, wait| {
        assert!(matches!(world.store.apply(lease, Disk::full(asked)).unwrap(), Application::Deferred(_)));
        assert_eq!(world.get("a").run_at, Some(world.now() + wait));
        world.clock.advance(wait - 1);
        assert_eq!(world.take_over("w1").len(), 0, "too early");
        world.clock.advance(1);
        world.take_over("w1").remove(0).lease
    };
    for wait in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
        lease = put_off(lease, 1_000, wait);
    }
    lease = put_off(lease, 45_000, 45_000);
    lease = put_off(lease, 1_000, 30_000);
    // Whoever retries a job has seen to what was wrong.
    assert!(matches!(world.store.apply(lease, Disk::in_conflict()).unwrap(), Application::Conflict(_)));
    world.store.retry("a").unwrap();
    lease = world.take_over("w1").remove(0).lease;
    lease = put_off(lease, 1_000, 1_000);
    assert_eq!(world.apply(&lease).unwrap(), Application::Completed);
}

pub fn a_wait_beyond_the_longest_backoff_is_over<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(note("a").backoff_max(30_000), vec![put("x")]);
    world.store.apply(lease, Disk::full(1_000)).unwrap();
    world.clock.advance(-29_000);
    assert_eq!(world.take_over("w2").len(), 0);
    world.clock.advance(-1);
    assert_eq!(world.take_over("w2").len(), 1, "the clock was set back");
}

pub fn taking_over_goes_by_limit_and_order<H: Harness>() {
    let world = World::<H>::new();
    let ids = ["a", "b", "c"];
    for id in ids {
        world.decided(note(id), vec![put(id)]);
    }
    assert_eq!(world.unchanged("taking over from the living", || world.take_over("w2").len()), 0);
    world.reclaim_from("w1");
    let two = world.store.take_over(super::world::owner("w2"), 2).unwrap();
    assert_eq!(two.iter().map(|c| c.lease.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let rest = world.take_over("w3");
    assert_eq!(rest.iter().map(|c| c.lease.id.as_str()).collect::<Vec<_>>(), ["c"]);
    let leases = world.store.leases().unwrap();
    let owners: Vec<_> = leases.iter().map(|l| l.owner.as_ref().unwrap().locked_by.as_str()).collect();
    assert_eq!(owners, ["w2", "w2", "w3"]);
}

pub fn a_job_can_complete_without_any_effect<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(note("a"), Vec::new());
    let disk = Disk::obedient();
    assert_eq!(world.store.apply(lease.clone(), disk.clone()).unwrap(), Application::Completed);
    let asked: Vec<(Lease, Vec<_>)> = disk.asked.lock().unwrap().clone();
    assert!(asked.iter().all(|(by, effects)| *by == lease && effects.is_empty()));
}

/// The answer got lost: the second apply must not touch the disk again.
pub fn a_repeated_apply_touches_nothing<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(note("a"), vec![put("x")]);
    world.apply(&lease).unwrap();
    let disk: Arc<Disk> = Disk::in_conflict();
    let again = world.unchanged("applying again", || world.store.apply(lease, disk.clone()).unwrap());
    assert_eq!(again, Application::Completed);
    assert_eq!(disk.asked.lock().unwrap().len(), 0);
}
