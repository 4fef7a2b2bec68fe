//! The queue's clock, which stands still, and the application's, which does not.

use std::time::{Duration, SystemTime};

use jobq::clock::millis;
use jobq::testing::TestQueue;
use jobq::{Context, Handler, HandlerError, NewJob, Outcome, Payload, Registry};
use serde::{Deserialize, Serialize};

use super::{World, say, world};

const DAY: Duration = Duration::from_secs(86_400);

/// Until then some time has passed since the queue was made.
fn later(queue: &TestQueue) -> SystemTime {
    loop {
        let now = SystemTime::now();
        if millis(now) > queue.now() + 2 {
            return now;
        }
    }
}

#[test]
fn a_job_for_the_present_runs_at_once() {
    let World { queue, .. } = world();
    let now = later(&queue);
    let job = queue.enqueue(NewJob::of(&say("now", &[])).run_at(now)).unwrap();
    assert_eq!(queue.get(&job.id).unwrap().run_at, Some(millis(now)), "as it was asked for");
    assert_eq!(queue.run_all().completed, 1);
}

#[test]
fn a_job_for_tomorrow_runs_a_day_later() {
    let World { queue, .. } = world();
    let tomorrow = later(&queue) + DAY;
    let job = queue.enqueue(NewJob::of(&say("tomorrow", &[])).run_at(tomorrow)).unwrap();
    assert_eq!(queue.get(&job.id).unwrap().run_at, Some(millis(tomorrow)));
    queue.advance(Duration::from_secs(86_400 - 600));
    assert_eq!(queue.run_all().completed, 0);
    queue.advance(Duration::from_secs(600));
    assert_eq!(queue.run_all().completed, 1);
}

/// Asks for itself again, so many seconds later.
#[derive(Serialize, Deserialize)]
struct Again {
    after: Vec<u64>,
}

impl Payload for Again {
    const TYPE: &'static str = "again";
    type Output = ();
}

struct Asking;

impl Handler for Asking {
    type Payload = Again;

    fn run(&self, _: &Context, mut job: Again) -> Result<Outcome, HandlerError> {
        let Some(after) = job.after.pop() else { return Ok(Outcome::done()) };
        let at = SystemTime::now() + Duration::from_secs(after);
        Ok(Outcome::done().follow_up(NewJob::of(&job).run_at(at)))
    }
}

#[test]
fn so_does_one_that_a_job_asks_for() {
    let queue = TestQueue::new(Registry::new().with(Asking));
    later(&queue);
    queue.enqueue(Again { after: vec![86_400, 0] }).unwrap();
    assert_eq!(queue.run_all().completed, 2, "the second is for the present");
    queue.advance(DAY);
    assert_eq!(queue.run_all().completed, 1);
}

/// Real time is nothing to them, however much of it passes.
#[test]
fn delays_are_as_long_as_they_are() {
    let World { queue, .. } = world();
    let delayed = |word: &str| NewJob::of(&say(word, &[])).delay(DAY);
    queue.enqueue(delayed("a")).unwrap();
    later(&queue);
    queue.enqueue(delayed("b")).unwrap();
    queue.advance(Duration::from_millis(86_399_999));
    assert_eq!((queue.run_all().completed, queue.advance_to_next()), (0, Some(Duration::from_millis(1))));
    assert_eq!((queue.run_all().completed, queue.advance_to_next()), (2, None));
}

#[test]
fn the_next_job_is_as_far_as_the_clock_goes() {
    let World { queue, .. } = world();
    let now = later(&queue);
    queue.enqueue(NewJob::of(&say("tomorrow", &[])).run_at(now + DAY)).unwrap();
    let before = queue.system_time();
    let waited = queue.advance_to_next().unwrap();
    assert_eq!((before + waited, millis(now + DAY)), (queue.system_time(), queue.now()));
    assert_eq!(queue.run_all().completed, 1);
}
