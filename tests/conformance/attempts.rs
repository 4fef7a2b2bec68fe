//! Counting: attempts at claim time, tokens at every claim, and what gives an
//! attempt back.

use std::time::Duration;

use jobq::state::Status;
use jobq::store::{Beat, Completion, Decision, Ending, Failure, Progress, Pulse, Store as _};

use super::Harness;
use super::draft::{note, put};
use super::world::{Disk, World, failure};

pub fn every_claim_has_a_higher_token<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a").max_attempts(9));
    let mut tokens = Vec::new();
    let first = world.claim_only("a");
    world.release(&first);
    tokens.push(first.token);
    let second = world.claim_only("a");
    world.reschedule(&second, 0);
    tokens.push(second.token);
    let third = world.claim_only("a");
    world.reclaim_from("w1");
    tokens.push(third.token);
    let fourth = world.claim_only("a");
    world.fail(&fourth);
    tokens.push(fourth.token);
    world.store.retry("a").unwrap();
    let fifth = world.claim_only("a");
    world.decide(&fifth, vec![put("x")]).unwrap();
    world.reclaim_from("w1");
    tokens.push(fifth.token);
    tokens.push(world.take_over("w2").remove(0).lease.token);
    assert_eq!(tokens, [1, 2, 3, 4, 5, 6]);
}

pub fn a_release_gives_the_attempt_back<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a").max_attempts(1));
    assert_eq!(world.get("a").attempts, 1);
    world.release(&lease);
    let job = world.get("a");
    assert_eq!((job.status, job.attempts, job.token, job.last_error), (Status::Pending, 0, 1, None));
    assert_eq!((job.locked_by, job.locked_at), (None, None));
    let again = world.claim_only("a");
    assert_eq!(world.get("a").attempts, 1);
    world.complete(&again);
    assert_eq!(world.get("a").attempts, 1);
}

pub fn a_rescheduled_attempt_counts_until_they_are_used_up<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a").max_attempts(3));
    for attempt in 1..=2 {
        let lease = world.claim_only("a");
        assert_eq!(world.get("a").attempts, attempt);
        assert_eq!(world.reschedule(&lease, 0), Ending::Done);
        assert_eq!((world.status("a"), world.get("a").attempts), (Status::Pending, attempt));
    }
    let last = world.claim_only("a");
    assert_eq!(world.reschedule(&last, 0), Ending::Failed);
    let job = world.get("a");
    assert_eq!((job.status, job.attempts, job.completed_at), (Status::Failed, 3, Some(world.now())));
    assert_eq!(job.last_error.as_deref(), Some("handler_error: it broke"));
}

pub fn one_attempt_means_one<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a").max_attempts(1));
    assert_eq!(world.reschedule(&lease, 0), Ending::Failed);
    assert_eq!(world.event_types("a"), ["queued", "claimed", "failed"]);
}

pub fn a_permanent_failure_does_not_wait_for_the_attempts<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a").max_attempts(5));
    world.fail(&lease);
    let job = world.get("a");
    assert_eq!((job.status, job.attempts), (Status::Failed, 1));
    assert_eq!((job.locked_by, job.completed_at), (None, Some(world.now())));
    assert_eq!(world.claim(10), [""; 0]);
}

pub fn taking_over_counts_no_attempt<H: Harness>() {
    let world = World::<H>::new();
    world.decided(note("a").max_attempts(1), vec![put("x")]);
    for round in 1..=4 {
        world.reclaim_from(&format!("w{round}"));
        let taken = world.take_over(&format!("w{}", round + 1)).remove(0);
        assert_eq!((taken.job.attempts, taken.lease.token), (1, 1 + round));
        assert_eq!(taken.job.locked_by, Some(format!("w{}", round + 1)));
    }
    let job = world.get("a");
    assert_eq!((job.status, job.attempts), (Status::Claimed, 1), "crashes never exhaust what is decided");
}

pub fn a_completion_keeps_its_result<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.clock.advance(40);
    let completion = jobq::store::Completion { lease, result: Some(r#"{"n": 1}"#.to_owned()), follow_ups: vec![] };
    assert_eq!(world.store.complete(vec![completion]).unwrap().remove(0).unwrap(), Ending::Done);
    let job = world.get("a");
    assert_eq!((job.status, job.completed_at), (Status::Completed, Some(world.now())));
    assert_eq!((job.locked_by, job.locked_at, job.gate), (None, None, None));
    assert_eq!(job.result.unwrap().as_str(), r#"{"n": 1}"#);
}

fn leaving(result: &str) -> Failure {
    Failure::new("bad_answer", "this is no JSON").leaving(result)
}

fn result<H: Harness>(world: &World<H>, id: &str) -> Option<String> {
    world.get(id).result.map(|text| text.as_str().to_owned())
}

pub fn a_failed_attempt_may_leave_a_result<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a").max_attempts(4));
    let reschedule = |failure: Failure| {
        let lease = world.claim_only("a");
        world.store.reschedule(lease, failure, Duration::ZERO).unwrap()
    };
    assert_eq!(reschedule(leaving("1")), Ending::Done);
    assert_eq!((world.status("a"), result(&world, "a")), (Status::Pending, Some("1".to_owned())));
    assert_eq!(reschedule(failure()), Ending::Done);
    assert_eq!(result(&world, "a").unwrap(), "1", "who has nothing to leave takes nothing away");
    assert_eq!(reschedule(leaving("3")), Ending::Done);
    assert_eq!(reschedule(failure()), Ending::Failed);
    assert_eq!((world.status("a"), result(&world, "a")), (Status::Failed, Some("3".to_owned())));
    world.store.retry("a").unwrap();
    let lease = world.claim_only("a");
    world.store.fail(lease, leaving("5")).unwrap();
    assert_eq!((world.status("a"), result(&world, "a")), (Status::Failed, Some("5".to_owned())));
    let lease = world.running(note("b").max_attempts(1));
    assert_eq!(world.store.reschedule(lease, leaving("7"), Duration::ZERO).unwrap(), Ending::Failed);
    assert_eq!(result(&world, "b").unwrap(), "7");
    assert!(world.events("b").iter().all(|event| event.data.as_ref().is_none_or(|data| !data.as_str().contains('7'))));
}

pub fn a_result_is_that_of_the_attempt_that_completed<H: Harness>() {
    for (way, left) in [("complete", None), ("complete", Some("2")), ("apply", None), ("apply", Some("2"))] {
        let world = World::<H>::new();
        let lease = world.running(note("a"));
        world.store.reschedule(lease, leaving("1"), Duration::ZERO).unwrap();
        let lease = world.claim_only("a");
        let left = left.map(str::to_owned);
        if way == "complete" {
            let completion = Completion { lease, result: left.clone(), follow_ups: Vec::new() };
            world.store.complete(vec![completion]).unwrap().remove(0).unwrap();
        } else {
            let decision = Decision { result: left.clone(), effects: vec![put("x")], ..Decision::default() };
            world.store.decide(lease.clone(), decision).unwrap();
            assert_eq!(result(&world, "a").unwrap(), "1");
            world.apply(&lease).unwrap();
        }
        assert_eq!((world.status("a"), result(&world, "a")), (Status::Completed, left), "{way}");
    }
}

pub fn a_heartbeat_counts_and_carries_news<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.clock.advance(30);
    let quiet = Beat { lease: lease.clone(), progress: None, checkpoint: None };
    assert_eq!(world.store.heartbeat(vec![quiet.clone(), quiet]).unwrap(), [Pulse::Alive, Pulse::Alive]);
    let job = world.get("a");
    assert_eq!((job.heartbeat, job.heartbeat_at), (2, Some(world.now())));
    assert_eq!(world.event_types("a"), ["queued", "claimed"], "a sign of life is not news");

    let progress = Some(Progress { percent: 40, message: Some("half".to_owned()) });
    let news = Beat { lease: lease.clone(), progress, checkpoint: Some(r#"{"at":7}"#.to_owned()) };
    assert_eq!(world.store.heartbeat(vec![news]).unwrap(), [Pulse::Alive]);
    let job = world.get("a");
    assert_eq!(job.heartbeat, 3);
    assert_eq!(job.progress.unwrap().as_str(), r#"{"percent":40,"message":"half"}"#);
    let event = world.events("a").pop().unwrap();
    assert_eq!((event.event_type.as_str(), event.attempt, event.seq), ("progress", 1, 3));
    assert_eq!(event.data.unwrap().as_str(), r#"{"percent":40,"message":"half"}"#);

    world.reschedule(&lease, 0);
    let again = world.claim_as("w1", 1).remove(0).job;
    assert_eq!(again.checkpoint.unwrap().as_str(), r#"{"at":7}"#, "for the next attempt to find");
    assert_eq!(again.heartbeat, 0, "signs of life are counted from the claim on");
}

pub fn each_heartbeat_is_answered_for_itself<H: Harness>() {
    let world = World::<H>::new();
    let lost = world.running(note("lost"));
    world.release(&lost);
    world.cancel("lost");
    let stopping = world.running(note("stopping"));
    world.cancel("stopping");
    let fine = world.running(note("fine"));
    let decided = world.decided(note("decided"), vec![put("x")]);
    let beat = |lease| Beat { lease, progress: None, checkpoint: None };
    let answers = world.store.heartbeat([lost, stopping, fine, decided].map(beat).to_vec()).unwrap();
    assert_eq!(answers, [Pulse::Lost, Pulse::CancelRequested, Pulse::Alive, Pulse::Alive]);
    assert_eq!(world.get("stopping").heartbeat, 1, "who is asked to stop is still alive");
    assert_eq!(world.store.heartbeat(Vec::new()).unwrap(), []);
}

pub fn a_deferred_apply_counts_no_attempt<H: Harness>() {
    let world = World::<H>::new();
    let mut lease = world.decided(note("a").max_attempts(1), vec![put("x")]);
    for _ in 0..5 {
        world.store.apply(lease, Disk::full(0)).unwrap();
        lease = world.take_over("w1").remove(0).lease;
        assert_eq!(world.get("a").attempts, 1);
    }
    world.apply(&lease).unwrap();
    assert_eq!((world.status("a"), world.get("a").attempts), (Status::Completed, 1));
}
