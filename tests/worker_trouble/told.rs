//! Jobs that are called off before their handler is called.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobq::*;
use serde::{Deserialize, Serialize};

use super::world::*;

payload!(Prompt, "prompt");
struct PromptHandler(Arc<AtomicUsize>);
impl Handler for PromptHandler {
    type Payload = Prompt;
    fn run(&self, _: &Context, _: Prompt) -> std::result::Result<Outcome<()>, HandlerError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Outcome::new(()))
    }
}

payload!(Witness, "witness");
struct WitnessHandler(Arc<AtomicUsize>);
impl Handler for WitnessHandler {
    type Payload = Witness;
    fn run(&self, ctx: &Context, _: Witness) -> std::result::Result<Outcome<()>, HandlerError> {
        while !ctx.is_cancelled() {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Outcome::new(()))
    }
}

/// What a handler does may have its price; nothing is paid for a job that the
/// worker knows to be cancelled.
#[test]
fn a_job_that_is_cancelled_before_it_begins_does_not_begin() {
    let folder = tempfile::tempdir().unwrap();
    let (paid, witnesses) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let registry = Registry::new().with(PromptHandler(Arc::clone(&paid))).with(WitnessHandler(Arc::clone(&witnesses)));
    let queue = open(folder.path(), &registry);
    let running: Vec<String> = (0..2).map(|n| queue.enqueue(Witness { n }).unwrap().id).collect();
    let shutdown = Shutdown::new();
    let (other, ended) = (open(folder.path(), &registry), Arc::new(Mutex::new(None)));
    let told = Arc::clone(&ended);
    let worker = Worker::new(Arc::clone(&queue), registry, WorkerOptions::default()).unwrap();
    let worker = worker.observed_by(move |event| match event {
        WorkerEvent::AttemptStarted { job_id, job_type, .. } if job_type == "prompt" => {
            other.cancel(job_id).unwrap();
            // The worker looks at all its jobs at once. When it has told the second of
            // these it has been through with all that were cancelled before the first.
            for (number, id) in running.iter().enumerate() {
                other.cancel(id).unwrap();
                until("a witness is told", || witnesses.load(Ordering::SeqCst) == number + 1);
            }
        }
        WorkerEvent::Attempt(report) if report.job_type == "prompt" => {
            *told.lock().unwrap() = Some(report.outcome);
        }
        _ => {}
    });
    let end = start(worker, shutdown.clone());
    let witness = Filter { status: Some(Status::Claimed), ..Filter::default() };
    until("the witnesses run", || queue.list(&witness).unwrap().len() == 2);
    let id = queue.enqueue(Prompt { n: 1 }).unwrap().id;
    let job = queue.wait(&id, Duration::from_secs(60)).unwrap().expect("it ends");
    shutdown.request();
    end.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
    assert_eq!((job.status, paid.load(Ordering::SeqCst)), (Status::Cancelled, 0));
    assert_eq!(*ended.lock().unwrap(), Some(worker::AttemptEnd::Cancelled));
}
