//! What attempts leave behind: checkpoints, progress, follow-up jobs, hooks.

use jobq::{Backoff, Event, EventQuery, Status};

use super::act::{Deed, act, put};
use super::child::Setup;
use super::harness::{Process, World, until};

#[test]
fn a_checkpoint_outlasts_its_worker_and_is_handed_to_the_next_attempt() {
    let world = World::new();
    let deeds = [Deed::NoteCheckpoint, Deed::Checkpoint(7), Deed::Checkpoint(42), Deed::AbortBefore(2)];
    let id = world.enqueue(act(deeds));
    let mut first = Process::start(&world.setup("first"));
    first.exit();
    assert_eq!(world.queue.get(&id).unwrap().checkpoint.unwrap().as_str(), "42");
    let mut second = Process::start(&world.setup("second"));
    world.completed(&id);
    second.stop();
    assert_eq!(world.log("checkpoint"), [format!("{id} None"), format!("{id} Some(42)")]);
}

#[test]
fn progress_is_written_once_a_second_and_the_last_is_never_lost() {
    let world = World::new();
    let mut deeds = Vec::new();
    for percent in 0..=120 {
        deeds.extend([Deed::Progress(percent), Deed::Pause(20)]);
    }
    deeds.push(Deed::Progress(99));
    let id = world.enqueue(act(deeds));
    let mut worker = Process::start(&world.setup("worker"));
    world.completed(&id);
    worker.stop();
    let told = progress(&world, &id);
    let percent = |event: &Event| event.data.as_ref().unwrap().parse::<serde_json::Value>().unwrap()["percent"].clone();
    assert_eq!(percent(told.last().unwrap()), 99);
    assert_eq!(world.queue.get(&id).unwrap().progress.unwrap().parse::<serde_json::Value>().unwrap()["percent"], 99);
    let times: Vec<i64> = told.iter().map(|event| event.at).collect();
    // The very last one may follow at once; it is its last chance.
    for pair in times[..times.len() - 1].windows(2) {
        assert!(pair[1] - pair[0] >= 990, "{times:?}");
    }
    assert!(told.len() >= 3, "in more than two seconds: {times:?}");
}

#[test]
fn progress_that_waits_is_written_though_the_handler_says_no_more() {
    let world = World::new();
    let go = world.outside("go");
    let id = world.enqueue(act([Deed::Progress(1), Deed::Progress(2), Deed::WaitFor(go.clone())]));
    let mut worker = Process::start(&Setup { poll_ms: 60_000, ..world.setup("worker") });
    until("the second is written", || progress(&world, &id).len() == 2);
    std::fs::write(&go, "").unwrap();
    world.completed(&id);
    worker.stop();
}

fn progress(world: &World, id: &str) -> Vec<Event> {
    let query = EventQuery { job_id: Some(id.to_owned()), after: 0, limit: 1_000 };
    let mut events = world.queue.events(&query).unwrap();
    events.retain(|event| event.event_type == "progress");
    events
}

#[test]
fn follow_ups_are_there_exactly_when_their_parent_has_completed() {
    let world = World::new();
    let next = |correlation: Option<&str>| {
        let correlation = correlation.map(str::to_owned);
        Deed::FollowUp { id: ulid::Ulid::generate().to_string(), content: "next".to_owned(), correlation }
    };
    let id_of = |deed: &Deed| match deed {
        Deed::FollowUp { id, .. } => id.clone(),
        _ => unreachable!(),
    };
    let (one, two) = (next(None), next(Some("another cause")));
    let ids = [id_of(&one), id_of(&two)];
    let missing = |world: &World| ids.iter().filter(|id| world.queue.get(id).is_err()).count();
    // Killed before it is decided, and again after: nothing is queued yet.
    let parent = act([put("a.txt", "a"), one, two, Deed::AbortBefore(2)]).correlation_id("a cause");
    let parent = world.enqueue(parent);
    Process::start(&world.setup("first")).exit();
    assert_eq!(missing(&world), 2);
    Process::start(&Setup { dies_when_decided: true, ..world.setup("second") }).exit();
    assert_eq!(world.queue.get(&parent).unwrap().status, Status::Claimed);
    assert_eq!(missing(&world), 2);
    let mut third = Process::start(&world.setup("third"));
    world.completed(&parent);
    assert_eq!(missing(&world), 0);
    for id in &ids {
        world.completed(id);
    }
    third.stop();
    let cause = |id: &str| world.queue.get(id).unwrap().correlation_id.unwrap();
    assert_eq!((cause(&ids[0]), cause(&ids[1])), ("a cause".to_owned(), "another cause".to_owned()));
    assert_eq!(world.runs(&parent), 2);
}

#[test]
fn a_parent_that_fails_queues_nothing() {
    let world = World::new();
    let id = ulid::Ulid::generate().to_string();
    let next = Deed::FollowUp { id: id.clone(), content: "next".to_owned(), correlation: None };
    let parent = world.enqueue(act([next, Deed::Permanent]));
    let mut worker = Process::start(&world.setup("worker"));
    assert_eq!(world.ended(&parent).status, Status::Failed);
    assert!(world.queue.get(&id).is_err());
    worker.stop();
}

#[test]
fn hooks_are_called_at_the_end_only_and_change_nothing() {
    let world = World::new();
    let short = Backoff { base_ms: 5, max_ms: 10 };
    let good = world.enqueue(act([Deed::RetryBefore(3), Deed::HooksFail]).backoff(short));
    let bad = world.enqueue(act([Deed::RetryBefore(9), Deed::HooksPanic]).backoff(short));
    let never = world.enqueue(act([Deed::Permanent, Deed::HooksFail]));
    let after = world.enqueue(act([put("a.txt", "a"), Deed::HooksPanic]));
    let mut worker = Process::start(&world.setup("worker"));
    assert_eq!(world.completed(&good).attempts, 3);
    assert_eq!(world.ended(&bad).status, Status::Failed);
    assert_eq!(world.ended(&never).status, Status::Failed);
    world.completed(&after);
    worker.stop();
    let mut succeeded = world.log("success");
    succeeded.sort();
    let mut expected = [format!("{after} 1"), format!("{good} 3")];
    expected.sort();
    assert_eq!(succeeded, expected);
    let mut failed = world.log("failure");
    failed.sort();
    let mut expected = [format!("{bad} 3 not_yet"), format!("{never} 1 never")];
    expected.sort();
    assert_eq!(failed, expected);
    let last = |id: &str| world.events(id).pop().unwrap();
    assert_eq!((last(&good), last(&bad), last(&never)), ("completed".into(), "failed".into(), "failed".into()));
}
