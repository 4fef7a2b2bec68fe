//! Everything that can be run now, by a real worker.

use std::sync::{Arc, Mutex, PoisonError};

use super::enqueued::jobs;
use super::{TestQueue, expect};
use crate::handler::Registry;
use crate::queue::Queue;
use crate::state::Status;
use crate::store::Filter;
use crate::worker::{AttemptReport, Retention, Shutdown, Worker, WorkerEvent, WorkerOptions, WorkerSummary};

/// With so many more attempts than jobs there is one that always queues another.
const MORE_ATTEMPTS: usize = 1_000;

/// What [`run_all`](TestQueue::run_all) did.
///
/// ```
/// use jobq::testing::TestQueue;
/// use jobq::{Registry, handlers::CreateFile, worker::AttemptEnd};
/// let queue = TestQueue::new(Registry::builtin());
/// queue.enqueue(CreateFile::text("a.txt", "a"))?;
/// let ran = queue.run_all();
/// assert_eq!((ran.completed, ran.failed), (1, 0));
/// assert_eq!(ran.attempts[0].outcome, AttemptEnd::Completed);
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// Jobs that completed.
    pub completed: u64,
    /// Jobs that failed for good.
    pub failed: u64,
    /// Attempts that failed and will be repeated when their time has come.
    pub rescheduled: u64,
    /// Attempts that ended otherwise: cancelled, or not applied yet.
    pub others: u64,
    /// Every attempt with its error, if it had one, in the order in which they ended.
    pub attempts: Vec<AttemptReport>,
}

impl TestQueue {
    /// Runs every job that can be run now, and what comes of it, until nothing is
    /// left to do at this time of the queue's clock. A job at a time: higher
    /// priority first, then as queued; the next is chosen when the one before has
    /// ended with all that it queued.
    ///
    /// The work is a real [`Worker`]'s, with a thread of its own in this process:
    /// payloads are checked, file effects decided and applied, hooks called. A
    /// handler that panics has failed its attempt; [`Ran::attempts`] has the words.
    /// Jobs of types that run programs stay where they are: those need a
    /// [`Supervisor`](crate::Supervisor).
    ///
    /// # Panics
    /// If the queue cannot be used, or the jobs never end because each queues another.
    #[expect(clippy::must_use_candidate, reason = "what it does is what it is called for")]
    #[track_caller]
    pub fn run_all(&self) -> Ran {
        run_all(self.queue(), self.registry.clone())
    }

    /// [`run_all`](TestQueue::run_all) for an async test, whose runtime goes on
    /// meanwhile. Async handlers need that.
    ///
    /// ```
    /// # use jobq::{Registry, handlers::CreateFile, testing::TestQueue};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// # runtime.block_on(async {
    /// let queue = TestQueue::new(Registry::builtin());
    /// queue.queue().enqueue_async(CreateFile::text("a.txt", "a")).await?;
    /// assert_eq!(queue.run_all_async().await.completed, 1);
    /// # Ok::<(), jobq::Error>(())
    /// # })?;
    /// # Ok::<(), jobq::Error>(())
    /// ```
    ///
    /// # Panics
    /// As `run_all`, and outside a runtime.
    #[cfg(feature = "tokio")]
    pub async fn run_all_async(&self) -> Ran {
        let (queue, registry) = (self.queue(), self.registry.clone());
        let ran = tokio::task::spawn_blocking(move || run_all(queue, registry)).await;
        ran.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => panic!("the jobs were not run: {error}"),
        })
    }
}

#[track_caller]
fn run_all(queue: Arc<Queue>, registry: Registry) -> Ran {
    // Nothing is pruned: a test that moves its clock by a year looks for its jobs all the same.
    let options = WorkerOptions { drain: true, retention: Retention::forever(), ..WorkerOptions::default() };
    let pending = Filter { status: Some(Status::Pending), ..Filter::default() };
    let most = MORE_ATTEMPTS + 10 * jobs(&queue, &pending).len();
    let shutdown = Shutdown::new();
    let attempts: Arc<Mutex<Vec<AttemptReport>>> = Arc::default();
    let observer = {
        let (shutdown, attempts) = (shutdown.clone(), Arc::clone(&attempts));
        move |event: &WorkerEvent| {
            if let WorkerEvent::Attempt(report) = event {
                let mut attempts = attempts.lock().unwrap_or_else(PoisonError::into_inner);
                attempts.push(report.clone());
                if attempts.len() == most {
                    shutdown.request();
                }
            }
        }
    };
    let worker = expect("a worker", Worker::new(queue, registry, options)).one_by_one().observed_by(observer);
    let WorkerSummary { completed, failed, rescheduled, others } = expect("the worker to work", worker.run(&shutdown));
    assert_eq!(shutdown.requests(), 0, "{most} attempts and still jobs to run; does each queue another?");
    let attempts = std::mem::take(&mut *attempts.lock().unwrap_or_else(PoisonError::into_inner));
    Ran { completed, failed, rescheduled, others, attempts }
}
