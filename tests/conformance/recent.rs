//! What has ended lately.

use jobq::state::Status;
use jobq::store::{RecentQuery, Store as _};

use super::Harness;
use super::draft::note;
use super::world::World;

fn ended<H: Harness>(world: &World<H>, since: i64) -> Vec<(String, Status, i64)> {
    let recent = world.store.recent(&RecentQuery { since, failures: 0 }).unwrap();
    assert!(recent.failures.is_empty(), "none were asked for");
    assert!(recent.ended.iter().all(|group| !group.at_least));
    let mut ended: Vec<_> = recent.ended.into_iter().map(|g| (g.job_type, g.status, g.jobs)).collect();
    ended.sort_by_key(|group| (group.0.clone(), group.1.as_str()));
    ended
}

fn failures<H: Harness>(world: &World<H>, failures: u32) -> Vec<String> {
    let recent = world.store.recent(&RecentQuery { since: i64::MAX, failures }).unwrap();
    assert!(recent.ended.is_empty(), "nothing has ended since the end of time");
    recent.failures.into_iter().map(|job| job.id).collect()
}

pub fn nothing_has_ended_in_an_empty_store<H: Harness>() {
    let world = World::<H>::new();
    world.running(note("claimed"));
    world.add(note("pending"));
    assert_eq!(ended(&world, 0), []);
    assert!(failures(&world, 10).is_empty());
}

pub fn what_ended_since_a_time_is_counted_by_type_and_end<H: Harness>() {
    let world = World::<H>::new();
    let before = world.running(note("before"));
    world.complete(&before);
    world.clock.advance(10);
    let since = world.now();
    for id in ["a", "b"] {
        let lease = world.running(note(id));
        world.complete(&lease);
    }
    world.clock.advance(5);
    let failed = world.running(note("failed").of_type("create"));
    world.fail(&failed);
    world.add(note("cancelled"));
    world.cancel("cancelled");
    world.add(note("pending"));
    let expected = [
        ("create".to_owned(), Status::Failed, 1),
        ("note".to_owned(), Status::Cancelled, 1),
        ("note".to_owned(), Status::Completed, 2),
    ];
    assert_eq!(ended(&world, since), expected);
    assert_eq!(ended(&world, since + 1).len(), 2, "what ended at that very time counts, what ended before does not");
}

pub fn failures_are_shown_in_the_order_in_which_they_failed<H: Harness>() {
    let world = World::<H>::new();
    let leases: Vec<_> = [note("first"), note("second").of_type("create"), note("third")]
        .into_iter()
        .map(|job| world.running(job))
        .collect();
    // The one that was queued first fails last.
    for lease in leases.iter().rev() {
        world.fail(lease);
        world.clock.advance(1);
    }
    assert_eq!(failures(&world, 10), ["first", "second", "third"]);
    assert_eq!(failures(&world, 2), ["first", "second"]);
    let recent = world.store.recent(&RecentQuery { since: 0, failures: 1 }).unwrap();
    assert_eq!(recent.failures[0].last_error, world.get("first").last_error);
    world.store.retry("first").unwrap();
    assert_eq!(failures(&world, 10), ["second", "third"]);
}
