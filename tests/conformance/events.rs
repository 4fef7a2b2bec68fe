//! The history of a job: every change once, in order, without gaps.

use jobq::Event;
use jobq::store::{Beat, EventQuery, Progress, Store as _};

use super::Harness;
use super::draft::{note, put};
use super::world::{Disk, World};

fn told(events: &[Event]) -> Vec<(i64, u32, &str)> {
    events.iter().map(|e| (e.seq, e.attempt, e.event_type.as_str())).collect()
}

pub fn a_job_that_goes_through_everything<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a").max_attempts(2));
    world.release(&lease);
    let lease = world.claim_only("a");
    let progress = Some(Progress { percent: 1, message: None });
    world.store.heartbeat(vec![Beat { lease: lease.clone(), progress, checkpoint: None }]).unwrap();
    world.reschedule(&lease, 0);
    world.claim_only("a");
    world.reclaim_from("w1");
    let lease = world.claim_only("a");
    world.reschedule(&lease, 0);
    world.store.retry("a").unwrap();
    world.cancel("a");
    world.store.retry("a").unwrap();
    let lease = world.claim_only("a");
    world.decide(&lease, vec![put("x")]).unwrap();
    world.store.apply(lease, Disk::in_conflict()).unwrap();
    world.store.retry("a").unwrap();
    let lease = world.take_over("w2").remove(0).lease;
    world.store.apply(lease, Disk::full(0)).unwrap();
    let lease = world.take_over("w3").remove(0).lease;
    world.apply(&lease).unwrap();

    let expected = [
        (1, 0, "queued"),
        (2, 1, "claimed"),
        (3, 1, "released"),
        (4, 1, "claimed"),
        (5, 1, "progress"),
        (6, 1, "rescheduled"),
        (7, 2, "claimed"),
        (8, 2, "worker_lost"),
        (9, 2, "reclaimed"),
        (10, 3, "claimed"),
        (11, 3, "failed"),
        (12, 0, "retried"),
        (13, 0, "cancelled"),
        (14, 0, "retried"),
        (15, 1, "claimed"),
        (16, 1, "decided"),
        (17, 1, "failed"),
        (18, 1, "retried"),
        (19, 1, "claimed"),
        (20, 1, "rescheduled"),
        (21, 1, "claimed"),
        (22, 1, "completed"),
    ];
    assert_eq!(told(&world.events("a")), expected);
}

pub fn events_say_when_and_what<H: Harness>() {
    let world = World::<H>::new();
    let queued_at = world.now();
    world.add(note("a").max_attempts(2));
    world.clock.advance(10);
    let lease = world.claim_as("w9", 1).remove(0).lease;
    world.clock.advance(10);
    world.reschedule(&lease, 1_000);
    world.clock.advance(1_000);
    let lease = world.claim_as("w9", 1).remove(0).lease;
    world.fail(&lease);
    let events = world.events("a");
    let times: Vec<_> = events.iter().map(|e| e.at - queued_at).collect();
    assert_eq!(times, [0, 10, 20, 1_020, 1_020]);
    let data = |number: usize| -> serde_json::Value { events[number].data.as_ref().unwrap().parse().unwrap() };
    assert!(events[0].data.is_none());
    assert_eq!(data(1), serde_json::json!({ "worker": "w9" }));
    let due = jobq::clock::rfc3339(queued_at + 1_020);
    let rescheduled = serde_json::json!({ "code": "handler_error", "message": "it broke", "run_at": due });
    assert_eq!(data(2), rescheduled);
    assert_eq!(data(4), serde_json::json!({ "code": "handler_error", "message": "it broke" }));
}

pub fn events_can_be_followed_from_any_point<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a"));
    world.add(note("b"));
    world.claim(10);
    let all = world.store.events(&EventQuery { limit: 100, ..EventQuery::default() }).unwrap();
    let ids: Vec<_> = all.iter().map(|e| e.id).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    let jobs: Vec<_> = all.iter().map(|e| (e.job_id.as_str(), e.event_type.as_str())).collect();
    assert_eq!(jobs, [("a", "queued"), ("b", "queued"), ("a", "claimed"), ("b", "claimed")]);

    let mut followed = Vec::new();
    let mut after = 0;
    loop {
        let page = world.store.events(&EventQuery { job_id: None, after, limit: 1 }).unwrap();
        let Some(event) = page.last() else { break };
        assert_eq!(page.len(), 1);
        after = event.id;
        followed.push(after);
    }
    assert_eq!(followed, ids);
    let of_b = EventQuery { job_id: Some("b".to_owned()), after: ids[1], limit: 100 };
    let rest = world.store.events(&of_b).unwrap();
    assert_eq!(told(&rest), [(2, 1, "claimed")]);
    world.cancel("a");
    let nothing_yet = EventQuery { after: ids[3], limit: 100, ..EventQuery::default() };
    assert_eq!(world.store.events(&nothing_yet).unwrap().len(), 0, "a request is not an end");
}

/// An event and what it tells are one: a refused verb leaves neither.
pub fn a_refused_verb_leaves_no_event<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.complete(&lease);
    assert!(world.store.retry("a").is_err());
    assert!(world.store.cancel("a").is_err());
    assert!(world.store.release(lease).is_err());
    assert_eq!(told(&world.events("a")), [(1, 0, "queued"), (2, 1, "claimed"), (3, 1, "completed")]);
}
