//! Types that are paused, and types of which only so many may run at once:
//! several workers on one database, which hear of each other by the disk alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jobq::{EventQuery, NewJob, Status, Worker, WorkerOptions};

use super::act::{Deed, act, put};
use super::child::Setup;
use super::harness::{Process, World, until};

/// So long between polls that they cannot help.
const NO_POLL: u64 = 600_000;
const HOUR_MS: u64 = 3_600_000;

fn at_most(limit: u32) -> BTreeMap<String, u32> {
    BTreeMap::from([("act".to_owned(), limit)])
}

/// The most jobs that were between their first and their last line in the log at one time.
fn most_at_once(world: &World) -> usize {
    let text = std::fs::read_to_string(world.outside("log")).unwrap();
    let (mut now, mut most) = (0_usize, 0);
    for line in text.lines() {
        match line.split(' ').next() {
            Some("run") => now += 1,
            Some("note") => now -= 1,
            _ => {}
        }
        most = most.max(now);
    }
    most
}

#[test]
fn workers_share_a_limit_and_wake_when_there_is_room() {
    for limit in [1, 2] {
        let world = World::new();
        let names = ["a", "b", "c"];
        let mut workers = names.map(|name| {
            let setup = Setup { concurrency: 3, poll_ms: NO_POLL, limits: at_most(limit), ..world.setup(name) };
            Process::start(&setup)
        });
        for worker in &mut workers {
            worker.hear("started");
        }
        // Short and long ones; some with files, whose run is over before they are.
        let deeds = |n: u64| match n % 4 {
            0 => vec![Deed::Note],
            1 => vec![put(&format!("{n}.txt"), "x"), Deed::Note],
            _ => vec![Deed::Pause(n % 7), Deed::Note],
        };
        let jobs = world.queue.enqueue_many((0..80).map(|n| act(deeds(n)))).unwrap();
        for job in &jobs {
            assert_eq!(world.completed(&job.id).attempts, 1);
        }
        for worker in &mut workers {
            worker.stop();
        }
        let most = most_at_once(&world);
        assert!(most <= limit as usize, "{most} at once, and {limit} may be");
    }
}

#[test]
fn a_worker_that_drains_comes_to_the_end_of_what_is_limited() {
    let world = World::new();
    let jobs = world.queue.enqueue_many((0..40).map(|_| act([Deed::Note]))).unwrap();
    let setup = Setup { concurrency: 4, drain: true, poll_ms: NO_POLL, limits: at_most(1), ..world.setup("worker") };
    assert!(Process::start(&setup).exit().success());
    for job in jobs {
        assert_eq!(world.queue.get(&job.id).unwrap().status, Status::Completed);
    }
    assert_eq!(most_at_once(&world), 1);
}

#[test]
fn the_place_of_a_dead_worker_is_free_again() {
    let world = World::new();
    let stuck = world.enqueue(act([Deed::WaitFor(world.outside("never"))]).max_attempts(1));
    let mut dies = Process::start(&Setup { limits: at_most(1), ..world.setup("dies") });
    dies.hear("running");
    let next = world.enqueue(act([]));
    let mut other = Process::start(&Setup { limits: at_most(1), poll_ms: 20, ..world.setup("other") });
    other.hear("started");
    // It runs what has no limit, and would run the other one, too, if it could.
    let file = world.enqueue(NewJob::raw("create_file", r#"{"path":"a.txt","content":"a"}"#));
    world.completed(&file);
    assert_eq!(world.runs(&next), 0);
    dies.kill();
    world.completed(&next);
    assert_eq!(world.ended(&stuck).status, Status::Failed);
    other.stop();
}

#[test]
fn a_pause_holds_for_all_workers_and_a_drain_does_not_wait_for_it() {
    let world = World::new();
    let limited = world.enqueue(act([Deed::PauseTypeOnce(HOUR_MS)]).max_attempts(1));
    let mut one = Process::start(&Setup { poll_ms: NO_POLL, ..world.setup("one") });
    until("the type is paused", || world.events(&limited).iter().any(|event| event == "rescheduled"));
    assert_eq!(world.queue.get(&limited).unwrap().attempts, 0, "what is told to wait does not count");
    let waits = world.enqueue(act([]).priority(9));
    let file = |name: &str| NewJob::raw("create_file", format!(r#"{{"path":"{name}.txt","content":""}}"#));
    // The worker that asked for it, and then one that comes later, go on with what is not paused.
    world.completed(&world.enqueue(file("one")));
    one.stop();
    let other = world.enqueue(file("two"));
    assert!(Process::start(&Setup { drain: true, ..world.setup("two") }).exit().success());
    assert_eq!(world.queue.get(&other).unwrap().status, Status::Completed);
    assert_eq!(world.runs(&waits), 0);
    let blocked = world.queue.get(&waits).unwrap().blocked.unwrap();
    assert!(blocked.starts_with("paused until ") && blocked.ends_with(": wait: the service says so"), "{blocked}");
}

#[test]
fn workers_wake_when_a_pause_is_over() {
    const PAUSE_MS: u64 = 300;
    let world = World::new();
    let mut workers = ["one", "two"].map(|name| {
        let mut worker = Process::start(&Setup { poll_ms: NO_POLL, ..world.setup(name) });
        worker.hear("started");
        worker
    });
    let limited = world.enqueue(act([Deed::PauseTypeOnce(PAUSE_MS)]));
    until("the type is paused", || !world.events(&limited).iter().all(|event| event != "rescheduled"));
    let other = world.enqueue(act([]));
    world.completed(&limited);
    world.completed(&other);
    let events = world.queue.events(&EventQuery { job_id: Some(limited), after: 0, limit: 100 }).unwrap();
    let at = |name: &str| events.iter().rfind(|event| event.event_type == name).unwrap().at;
    assert!(at("claimed") - at("rescheduled") >= i64::try_from(PAUSE_MS).unwrap(), "not before it was over");
    for worker in &mut workers {
        worker.stop();
    }
}

/// For a service that does not say how long it wants to be left alone.
#[test]
fn pauses_by_the_backoff_grow_although_no_attempt_counts() {
    let world = World::new();
    let backoff = jobq::Backoff { base_ms: 8, max_ms: 32 };
    let id = world.enqueue(act([Deed::PauseTypeByBackoff(4)]).max_attempts(1).backoff(backoff));
    let mut worker = Process::start(&world.setup("worker"));
    assert_eq!(world.completed(&id).attempts, 1);
    worker.stop();
    let log = std::fs::read_to_string(world.outside("log")).unwrap();
    let pauses = log.lines().filter_map(|line| line.strip_prefix("pause ")?.rsplit_once(' ')?.1.parse::<u64>().ok());
    for (pause, millis) in pauses.zip([8, 16, 32, 32]) {
        assert!((millis * 500..=millis * 1_000).contains(&pause), "{pause} µs instead of {millis} ms\n{log}");
    }
}

#[test]
fn a_limit_is_at_least_one() {
    let world = World::new();
    let setup = world.setup("none");
    let types = setup.registry().types();
    let queue = jobq::QueueOptions::in_folder(world.root()).types(types).open().unwrap();
    let options = WorkerOptions { limits: at_most(0), ..setup.options() };
    let refused = Worker::new(Arc::new(queue), setup.registry(), options).err().unwrap();
    assert_eq!(refused.to_string(), "limits.act: must be at least 1");
}

#[test]
fn what_a_failed_attempt_leaves_is_kept_until_a_later_one_has_more() {
    let world = World::new();
    let mut worker = Process::start(&world.setup("worker"));
    let answer = serde_json::json!({ "answer": "no JSON" });
    let left = |id: &str| world.queue.get(id).unwrap().result.map(|text| text.parse::<serde_json::Value>().unwrap());
    let failed = world.enqueue(act([Deed::LeaveBefore(9, answer.clone())]).max_attempts(1));
    assert_eq!(world.ended(&failed).status, Status::Failed);
    assert_eq!(left(&failed), Some(answer.clone()));
    assert!(
        world.queue.result::<super::act::Act>(&failed).unwrap().is_none(),
        "it has no result as one that completed"
    );
    let go = world.outside("go");
    let again = world.enqueue(act([Deed::LeaveBefore(2, answer.clone()), Deed::WaitFor(go.clone())]));
    until("the second attempt runs", || world.runs(&again) == 2);
    assert_eq!(left(&again), Some(answer));
    std::fs::write(&go, "").unwrap();
    world.completed(&again);
    assert_eq!(left(&again), None, "the attempt that completed left nothing");
    worker.stop();
}

#[test]
fn what_a_handler_says_when_its_time_is_over_is_heard() {
    let world = World::new();
    let id = world.enqueue(act([Deed::UntilToldThenComplain]).timeout(Duration::from_millis(50)).max_attempts(1));
    let mut worker = Process::start(&world.setup("worker"));
    until("it has complained", || world.events(&id).iter().any(|event| event == "rescheduled"));
    let job = world.queue.get(&id).unwrap();
    worker.stop();
    assert!(job.last_error.unwrap().starts_with("job_timeout: "));
    assert_eq!(job.result.unwrap().as_str(), "\"half an answer\"");
    assert_eq!(world.queue.stats().unwrap().paused.len(), 1);
}
