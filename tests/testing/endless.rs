//! A run ends even if its jobs never do.

use jobq::testing::TestQueue;
use jobq::{Context, Handler, HandlerError, NewJob, Outcome, Payload, Registry};
use serde::{Deserialize, Serialize};

use super::message;

#[derive(Serialize, Deserialize)]
struct Again {}

impl Payload for Again {
    const TYPE: &'static str = "again";
    type Output = ();
}

struct ForEver;

impl Handler for ForEver {
    type Payload = Again;

    fn run(&self, _: &Context, next: Again) -> Result<Outcome, HandlerError> {
        Ok(Outcome::done().follow_up(NewJob::of(&next).no_key()))
    }
}

#[test]
fn jobs_that_always_queue_another_end_the_run_after_10_000_attempts() {
    let queue = TestQueue::new(Registry::new().with(ForEver));
    queue.enqueue(Again {}).unwrap();
    let told = message(|| drop(queue.run_all()));
    assert!(told.contains("10000 attempts") && told.contains("`again`"), "{told}");
}
