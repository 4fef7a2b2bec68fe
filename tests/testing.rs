//! `jobq::testing`: what application tests rely on.

#[cfg(feature = "tokio")]
#[path = "testing/async_tests.rs"]
mod async_tests;
#[path = "testing/clock.rs"]
mod clock;
#[path = "testing/endless.rs"]
mod endless;
#[path = "testing/hooks.rs"]
mod hooks;
#[path = "testing/locked.rs"]
mod locked;
#[path = "testing/messages.rs"]
mod messages;
#[path = "testing/overlap.rs"]
mod overlap;
#[cfg(feature = "tokio")]
#[path = "testing/paused.rs"]
mod paused;
#[cfg(feature = "tokio")]
#[path = "testing/runtimes.rs"]
mod runtimes;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobq::handlers::CreateFile;
use jobq::testing::TestQueue;
use jobq::worker::AttemptEnd;
use jobq::{Context, Handler, HandlerError, NewJob, Outcome, Payload, Registry, Status};
use serde::{Deserialize, Serialize};

/// A job that tells when it ran, and then does as it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Say {
    word: String,
    #[serde(default)]
    then: Vec<Then>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Then {
    Fail,
    Panic,
    Pause,
    Queue { word: String, priority: i32 },
}

impl Payload for Say {
    const TYPE: &'static str = "say";
    type Output = ();
}

fn say(word: &str, then: &[Then]) -> Say {
    Say { word: word.to_owned(), then: then.to_vec() }
}

struct Speaker(Arc<Mutex<Vec<String>>>);

impl Handler for Speaker {
    type Payload = Say;

    fn run(&self, _: &Context, job: Say) -> Result<Outcome, HandlerError> {
        self.0.lock().unwrap().push(job.word.clone());
        let mut outcome = Outcome::done();
        for then in job.then {
            match then {
                Then::Fail => return Err(HandlerError::retry("not today")),
                Then::Panic => panic!("the handler's own words"),
                Then::Pause => return Err(HandlerError::retry("busy").pausing_type(Duration::from_secs(60))),
                Then::Queue { word, priority } => {
                    outcome = outcome.follow_up(NewJob::of(&say(&word, &[])).priority(priority));
                }
            }
        }
        Ok(outcome)
    }
}

struct World {
    queue: TestQueue,
    said: Arc<Mutex<Vec<String>>>,
}

fn world() -> World {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let queue = TestQueue::new(Registry::builtin().with(Speaker(Arc::clone(&said))));
    World { queue, said }
}

impl World {
    fn said(&self) -> Vec<String> {
        std::mem::take(&mut self.said.lock().unwrap())
    }
}

fn message(of: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(of)).expect_err("it should have failed");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn what_a_job_queues_runs_before_what_is_less_urgent() {
    // Often: with jobs that are claimed ahead the order depends on how long things take.
    for _ in 0..5 {
        let world = world();
        let urgent = |word: &str| Then::Queue { word: word.to_owned(), priority: 5 };
        let calm = Then::Queue { word: "calm".to_owned(), priority: 0 };
        world.queue.enqueue(say("a", &[urgent("b"), calm])).unwrap();
        for word in ["c", "d", "e", "f", "g"] {
            world.queue.enqueue(say(word, &[urgent(&format!("after {word}"))])).unwrap();
        }
        let ran = world.queue.run_all();
        let expected =
            ["a", "b", "c", "after c", "d", "after d", "e", "after e", "f", "after f", "g", "after g", "calm"];
        assert_eq!(world.said(), expected);
        assert_eq!((ran.completed, ran.attempts.len()), (13, 13));
    }
}

#[test]
fn files_are_put_in_place_and_go_with_the_queue() {
    let World { queue, .. } = world();
    queue.enqueue(CreateFile::text("out/a.txt", "hello")).unwrap();
    queue.run_all();
    let root = queue.root().to_owned();
    assert_eq!(std::fs::read_to_string(root.join("out/a.txt")).unwrap(), "hello");
    drop(queue);
    assert!(!root.exists());
}

#[test]
fn time_passes_when_the_test_says_so() {
    let world = world();
    let start = world.queue.now();
    world.queue.enqueue(NewJob::of(&say("later", &[])).delay(Duration::from_secs(3600))).unwrap();
    assert_eq!(world.queue.run_all().attempts.len(), 0);
    world.queue.advance(Duration::from_secs(3599));
    assert_eq!(world.queue.run_all().attempts.len(), 0);
    world.queue.advance(Duration::from_secs(1));
    assert_eq!(world.queue.run_all().completed, 1);
    assert_eq!((world.said(), world.queue.now()), (vec!["later".to_owned()], start + 3_600_000));
}

#[test]
fn time_ends_where_it_cannot_pass_any_more() {
    let world = world();
    world.queue.advance(Duration::MAX);
    assert_eq!(world.queue.now(), i64::MAX);
}

#[test]
fn a_job_that_fails_runs_again_after_its_backoff_until_it_has_failed_for_good() {
    let world = world();
    let id = world.queue.enqueue(say("no", &[Then::Fail])).unwrap().id;
    for _ in 0..2 {
        let ran = world.queue.run_all();
        assert_eq!((ran.rescheduled, ran.failed), (1, 0));
        assert_eq!(ran.attempts[0].error.as_ref().unwrap().message, "not today");
        assert_eq!(world.queue.run_all().attempts.len(), 0, "its time has not come");
        assert!(world.queue.advance_to_next().unwrap() > Duration::ZERO);
    }
    let ran = world.queue.run_all();
    assert_eq!((ran.rescheduled, ran.failed), (0, 1));
    assert_eq!(world.queue.get(&id).unwrap().status, Status::Failed);
    assert_eq!(world.queue.advance_to_next(), None);
}

#[test]
fn the_wait_after_a_failure_doubles_up_to_the_longest() {
    let world = world();
    let job = NewJob::of(&say("no", &[Then::Fail])).max_attempts(7);
    world.queue.enqueue(job.backoff(jobq::Backoff { base_ms: 1_000, max_ms: 8_000 })).unwrap();
    for longest in [1_000, 2_000, 4_000, 8_000, 8_000, 8_000] {
        assert_eq!(world.queue.run_all().rescheduled, 1);
        // Up to half of it is left out, by chance.
        let waited = world.queue.advance_to_next().unwrap();
        let (most, least) = (Duration::from_millis(longest), Duration::from_millis(longest / 2));
        assert!((least..=most).contains(&waited), "{waited:?} of {most:?}");
    }
    assert_eq!(world.queue.run_all().failed, 1);
}

#[test]
fn a_paused_type_goes_on_when_the_pause_is_over() {
    let world = world();
    world.queue.enqueue(say("wait", &[Then::Pause])).unwrap();
    world.queue.enqueue(say("next", &[])).unwrap();
    world.queue.run_all();
    assert_eq!(world.said(), ["wait"]);
    world.queue.advance(Duration::from_secs(60));
    world.queue.run_all();
    assert_eq!(world.said(), ["wait"], "the first is paused again before the second");
    world.queue.cancel(&world.queue.assert_enqueued(&say("wait", &[Then::Pause])).id).unwrap();
    world.queue.advance_to_next();
    assert_eq!(world.queue.run_all().completed, 1);
}

#[test]
fn a_panic_is_a_failed_attempt_that_tells_its_words() {
    let world = world();
    world.queue.enqueue(NewJob::of(&say("ouch", &[Then::Panic])).max_attempts(1)).unwrap();
    let ran = world.queue.run_all();
    assert_eq!((ran.failed, ran.attempts[0].outcome), (1, AttemptEnd::Failed));
    assert!(ran.attempts[0].error.as_ref().unwrap().message.contains("the handler's own words"));
}

#[test]
fn nothing_is_pruned_however_far_the_clock_moves() {
    let world = world();
    let id = world.queue.enqueue(say("a", &[])).unwrap().id;
    world.queue.run_all();
    world.queue.advance(Duration::from_secs(400 * 86_400));
    world.queue.run_all();
    assert_eq!(world.queue.get(&id).unwrap().status, Status::Completed);
}

#[test]
fn queues_of_different_tests_have_nothing_to_do_with_each_other() {
    let (one, other) = (world(), world());
    one.queue.enqueue(say("one", &[])).unwrap();
    other.queue.refute_enqueued::<Say>();
    assert_eq!((other.queue.run_all().completed, one.queue.run_all().completed), (0, 1));
}
