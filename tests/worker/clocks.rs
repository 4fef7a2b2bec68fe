//! Wall clocks that jump, in every state a job can be in.

use std::sync::Arc;
use std::time::Duration;

use jobq::clock::ManualClock;
use jobq::{Backoff, Queue, Status};

use super::act::{Deed, act, act_on, put};
use super::child::Setup;
use super::harness::{Process, World, until};
use super::inside::{Inside, queue_with_clock};

const HOUR: i64 = 3_600_000;
const TEN_YEARS: i64 = 10 * 366 * 24 * HOUR;

#[test]
fn a_clock_that_jumps_an_hour_ahead_changes_nothing() {
    jump(HOUR);
}

#[test]
fn a_clock_that_jumps_an_hour_back_changes_nothing() {
    jump(-HOUR);
}

#[test]
fn a_clock_that_jumps_ten_years_ahead_changes_nothing() {
    jump(TEN_YEARS);
}

#[test]
fn a_clock_that_jumps_ten_years_back_changes_nothing() {
    jump(-TEN_YEARS);
}

fn jump(by: i64) {
    let world = World::new();
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let queue = queue_with_clock(&world, &clock, Duration::from_secs(30));
    let add = |job: jobq::NewJob| queue.enqueue(job).unwrap().id;
    let decided = add(act([put("decided.txt", "a")]));
    Process::start(&Setup { dies_when_decided: true, ..world.setup("dies") }).exit();
    let go = world.outside("go");
    let wait = || Deed::WaitFor(go.clone());
    // Long enough that this clock, which stands still, does not bring it back by itself.
    let slow = Backoff { base_ms: 60_000, max_ms: 60_000 };
    let running = add(act([wait()]));
    let backoff = add(act([Deed::RetryBefore(2)]).backoff(slow));
    let delayed = add(act([]).delay(Duration::from_secs(1_800)));
    let mut workers = ["one", "two"].map(|name| {
        let setup = Setup { poll_ms: 20, lease_ms: 60_000, concurrency: 2, ..world.setup(name) };
        Inside::start(&setup, &queue, None)
    });
    until("the first attempt has failed", || queue.get(&backoff).unwrap().run_at.is_some());
    until("the long job runs", || world.runs(&running) == 1);
    let held = add(act_on("held.txt", [wait()]));
    let behind = add(act_on("held.txt", [put("held.txt", "behind")]));
    until("a job waits behind another", || world.runs(&held) == 1);
    clock.advance(by);
    let pending = add(act([]));
    assert_eq!(ended(&queue, &pending), (Status::Completed, 1));
    assert_eq!(ended(&queue, &backoff), (Status::Completed, 2), "a wait longer than the longest is over");
    assert_eq!(ended(&queue, &decided), (Status::Completed, 1));
    if by < 0 {
        // Asked for at a time of the clock, and that time has not come.
        assert_eq!(queue.get(&delayed).unwrap().status, Status::Pending);
        clock.advance(-by + HOUR);
    }
    assert_eq!(ended(&queue, &delayed), (Status::Completed, 1));
    std::fs::write(&go, "").unwrap();
    for id in [&running, &held, &behind] {
        assert_eq!(ended(&queue, id), (Status::Completed, 1), "no lease was taken from a worker that lives");
        assert_eq!(world.runs(id), 1);
    }
    for worker in &mut workers {
        worker.stop();
        assert!(!worker.heard.iter().any(|line| line.starts_with("lease_lost")));
    }
    assert_eq!((world.read("held.txt").unwrap(), world.read("decided.txt").unwrap()), ("behind".into(), "a".into()));
    assert_eq!((world.staged(), world.lock_files()), (Vec::new(), Vec::new()));
}

fn ended(queue: &Queue, id: &str) -> (Status, u32) {
    let job = queue.wait(id, super::harness::PATIENCE).unwrap();
    let job = job.unwrap_or_else(|| panic!("job {id} is stuck: {:?}", queue.get(id)));
    (job.status, job.attempts)
}
