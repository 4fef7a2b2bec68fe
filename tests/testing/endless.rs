//! Jobs that never end, and many that do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use jobq::testing::TestQueue;
use jobq::{Context, Handler, HandlerError, NewJob, Outcome, Payload, Registry};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
enum Spread {
    /// So many others, all at once.
    Out(u32),
    /// One more, so many times.
    On(u32),
    /// Two like it, for ever.
    Double {},
    /// Comes back at once.
    Back {},
}

impl Payload for Spread {
    const TYPE: &'static str = "spread";
    type Output = ();
}

fn job(payload: &Spread) -> NewJob {
    NewJob::of(payload).no_key().max_attempts(u32::MAX)
}

struct Spreader;

impl Handler for Spreader {
    type Payload = Spread;

    fn run(&self, _: &Context, payload: Spread) -> Result<Outcome, HandlerError> {
        let next = match payload {
            Spread::Out(number) => (0..number).map(|_| job(&Spread::Out(0))).collect(),
            Spread::On(0) => Vec::new(),
            Spread::On(more) => vec![job(&Spread::On(more - 1))],
            Spread::Double {} => vec![job(&Spread::Double {}), job(&Spread::Double {})],
            Spread::Back {} => return Err(HandlerError::retry("again").after(Duration::ZERO)),
        };
        Ok(next.into_iter().fold(Outcome::done(), Outcome::follow_up))
    }
}

fn queue(first: &Spread) -> TestQueue {
    let queue = TestQueue::new(Registry::new().with(Spreader));
    queue.enqueue(job(first)).unwrap();
    queue
}

fn message(queue: &TestQueue) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| queue.run_all())).expect_err("it should have told");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn many_that_one_job_has_queued_are_no_loop() {
    assert_eq!(queue(&Spread::Out(3000)).run_all().completed, 3001);
}

#[test]
fn a_job_that_always_queues_another_is_told_of() {
    let told = message(&queue(&Spread::On(u32::MAX)));
    assert!(told.contains("`spread`") && told.contains("TestQueue::generations"), "{told}");
}

#[test]
fn how_many_may_follow_one_another_is_for_the_test_to_say() {
    assert_eq!(queue(&Spread::On(9)).generations(9).run_all().completed, 10);
    let told = message(&queue(&Spread::On(10)).generations(9));
    assert!(told.contains("after 9 generations"), "{told}");
}

#[test]
fn jobs_that_become_ever_more_are_told_of() {
    let told = message(&queue(&Spread::Double {}).generations(20));
    assert!(told.contains("2000 attempts"), "{told}");
}

#[test]
fn a_job_that_comes_back_for_ever_is_told_of() {
    let told = message(&queue(&Spread::Back {}));
    assert!(told.contains("1000 times"), "{told}");
}

/// It says nothing of how often one job may be tried.
#[test]
fn few_generations_are_not_few_attempts() {
    let again = |times: u32| {
        let queue = TestQueue::new(Registry::new().with(Spreader));
        queue.enqueue(job(&Spread::Back {}).max_attempts(times)).unwrap();
        queue
    };
    for most in [0, 1] {
        assert_eq!(queue(&Spread::Out(0)).generations(most).run_all().completed, 1);
        let ran = again(3).generations(most).run_all();
        assert_eq!((ran.rescheduled, ran.failed), (2, 1));
    }
    assert!(message(&queue(&Spread::Out(1)).generations(0)).contains("after 0 generations"));
    assert_eq!(again(1_100).generations(1_100).run_all().failed, 1, "a larger bound is one for both");
}
