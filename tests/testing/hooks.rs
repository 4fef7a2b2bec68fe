//! Hooks are part of what `run_all` runs.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use jobq::testing::TestQueue;
use jobq::{Context, Ended, Handler, HandlerError, NewJob, Outcome, Payload, Queue, Registry, Status};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Step {
    name: String,
    /// What its hook queues.
    then: Option<String>,
    fails: bool,
}

impl Payload for Step {
    const TYPE: &'static str = "step";
    type Output = ();
}

fn step(name: &str, then: Option<&str>) -> Step {
    Step { name: name.to_owned(), then: then.map(str::to_owned), fails: false }
}

#[derive(Clone, Default)]
struct Steps {
    log: Arc<Mutex<Vec<String>>>,
    queue: Arc<Mutex<Weak<Queue>>>,
}

impl Steps {
    fn note(&self, what: String) {
        self.log.lock().unwrap().push(what);
    }

    fn hook(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
        let job: Step = ended.job.payload()?;
        // Slow, as one that calls a service is: whoever does not wait for it is ahead of it.
        std::thread::sleep(Duration::from_millis(20));
        if let (Some(then), Some(queue)) = (&job.then, self.queue.lock().unwrap().upgrade()) {
            for next in then.split(' ') {
                queue.enqueue(NewJob::of(&step(next, None)).priority(5))?;
            }
        }
        self.note(format!("hook of {}", job.name));
        Ok(())
    }
}

impl Handler for Steps {
    type Payload = Step;

    fn run(&self, _: &Context, job: Step) -> Result<Outcome, HandlerError> {
        self.note(job.name);
        if job.fails { Err(HandlerError::permanent("no")) } else { Ok(Outcome::done()) }
    }

    fn on_success(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
        self.hook(ended)
    }

    fn on_failure(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
        self.hook(ended)
    }
}

fn world() -> (TestQueue, Steps) {
    let steps = Steps::default();
    let queue = TestQueue::new(Registry::new().with(steps.clone()));
    *steps.queue.lock().unwrap() = Arc::downgrade(&queue.queue());
    (queue, steps)
}

#[test]
fn what_a_hook_queues_is_run_and_in_its_place() {
    let (queue, steps) = world();
    queue.enqueue(step("a", Some("b"))).unwrap();
    queue.enqueue(step("c", Some("d"))).unwrap();
    assert_eq!(queue.run_all().completed, 4);
    let expected = ["a", "hook of a", "b", "hook of b", "c", "hook of c", "d", "hook of d"];
    assert_eq!(*steps.log.lock().unwrap(), expected);
}

#[test]
fn a_hook_of_a_failed_job_is_waited_for_too() {
    let (queue, steps) = world();
    let id = queue.enqueue(Step { fails: true, ..step("a", Some("b")) }).unwrap().id;
    let ran = queue.run_all();
    assert_eq!((ran.failed, ran.completed), (1, 1));
    assert_eq!(queue.get(&id).unwrap().status, Status::Failed);
    assert_eq!(*steps.log.lock().unwrap(), ["a", "hook of a", "b", "hook of b"]);
}

#[test]
fn a_hook_that_panics_ends_nothing_else() {
    struct Panicking;
    impl Handler for Panicking {
        type Payload = Step;
        fn run(&self, _: &Context, _: Step) -> Result<Outcome, HandlerError> {
            Ok(Outcome::done())
        }
        fn on_success(&self, _: &Ended<'_>) -> Result<(), HandlerError> {
            panic!("the hook's own words")
        }
    }
    let queue = TestQueue::new(Registry::new().with(Panicking));
    queue.enqueue(step("a", None)).unwrap();
    queue.enqueue(step("b", None)).unwrap();
    assert_eq!(queue.run_all().completed, 2);
}
