//! Everything that can be run now, by a real worker.

use std::sync::{Arc, Mutex, PoisonError};

use super::TestQueue;
use super::endless::Ancestry;
#[cfg(feature = "tokio")]
use super::probe::Probe;
use crate::handler::Registry;
use crate::queue::Queue;
use crate::worker::{AttemptReport, Retention, Shutdown, Worker, WorkerEvent, WorkerOptions, WorkerSummary};

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
    /// ended with all that it queued, and its hook has returned.
    ///
    /// The work is a real [`Worker`]'s, with a thread of its own in this process:
    /// payloads are checked, file effects decided and applied, hooks called. A
    /// handler that panics has failed its attempt; [`Ran::attempts`] has the words.
    /// Jobs of types that run programs stay where they are: those need a
    /// [`Supervisor`](crate::Supervisor).
    ///
    /// In an async test, `run_all_async` does the same and lets the runtime go on.
    ///
    /// # Panics
    /// If the queue cannot be used, if an async handler waits for a runtime that runs
    /// nothing for ten seconds (its only thread is the one that waits here), or if the jobs never end because each
    /// queues another (see [`generations`](TestQueue::generations)).
    #[track_caller]
    pub fn run_all(&self) -> Ran {
        self.await_dropped();
        // Not in a closure, which would be taken for the caller.
        match self.run().all(&Shutdown::new()) {
            Ok(ran) => ran,
            Err(why) => panic!("{why}"),
        }
    }

    /// [`run_all`](TestQueue::run_all) for an async test, whose runtime goes on
    /// meanwhile. Async handlers need that. Dropped before its end, as by a timeout, it
    /// stops: the job that runs is told to, and goes back. The next run waits for that.
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
    /// As `run_all`.
    #[cfg(feature = "tokio")]
    pub async fn run_all_async(&self) -> Ran {
        let (run, stop) = (self.run(), StopWhenDropped(Shutdown::new()));
        let shutdown = stop.0.clone();
        let before = lock(&self.dropped).take();
        let (end, ended) = tokio::sync::oneshot::channel();
        // A thread of its own: the test may have all others of its runtime busy.
        let thread = std::thread::Builder::new().name("jobq-run-all".to_owned());
        let started = thread.spawn(move || {
            if let Some(before) = before {
                let _ = before.join();
            }
            let ran = run.all(&shutdown);
            // Nobody may want it any more.
            let _ = end.send(ran);
        });
        *lock(&self.dropped) = Some(super::expect("a thread for the worker", started));
        match ended.await {
            Ok(Ok(ran)) => ran,
            Ok(Err(why)) => panic!("{why}"),
            Err(error) => panic!("a test needs the worker to work; it panicked: {error}"),
        }
    }

    /// A run that was dropped half-way may still have its job.
    fn await_dropped(&self) {
        if let Some(before) = lock(&self.dropped).take() {
            let _ = before.join();
        }
    }

    fn run(&self) -> Run {
        Run { queue: self.queue(), registry: self.registry.clone(), generations: self.generations }
    }
}

/// Whoever does not wait for the end of a run does not want the rest of it.
#[cfg(feature = "tokio")]
struct StopWhenDropped(Shutdown);

#[cfg(feature = "tokio")]
impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        // Told twice, it does not wait for what runs.
        self.0.request();
        self.0.request();
    }
}

/// What it takes to run everything.
struct Run {
    queue: Arc<Queue>,
    registry: Registry,
    generations: usize,
}

/// What was heard while it ran.
struct Heard {
    ancestry: Ancestry,
    attempts: Vec<AttemptReport>,
    #[cfg(feature = "tokio")]
    probe: Option<Probe>,
    /// Why it was stopped.
    hopeless: Option<String>,
}

impl Heard {
    /// Says so if it makes no sense to go on.
    fn hear(&mut self, event: &WorkerEvent) -> Option<String> {
        // What cannot be read now is no reason to stop.
        match event {
            WorkerEvent::AttemptStarted { job_id, .. } => {
                let _ = self.ancestry.begins(job_id);
                None
            }
            WorkerEvent::Attempt(report) => {
                self.attempts.push(report.clone());
                self.ancestry.ended(report).unwrap_or_default()
            }
            _ => None,
        }
    }
}

/// What one run has to say, and the way to end it before its time.
#[derive(Clone)]
struct Watch {
    heard: Arc<Mutex<Heard>>,
    shutdown: Shutdown,
    #[cfg(feature = "tokio")]
    registry: Registry,
}

impl Watch {
    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, event: &WorkerEvent) {
        self.probe(event);
        let why = self.heard().hear(event);
        if let Some(why) = why {
            self.give_up(why);
        }
    }

    fn give_up(&self, why: String) {
        self.heard().hopeless.get_or_insert(why);
        // Told twice, it does not wait for what runs.
        self.shutdown.request();
        self.shutdown.request();
    }

    #[cfg(feature = "tokio")]
    fn probe(&self, event: &WorkerEvent) {
        match event {
            WorkerEvent::AttemptStarted { job_id, job_type, .. } => {
                let why = format!(
                    "`{job_type}` {job_id} waits for its runtime, which runs nothing; if its only thread waits in \
                     `run_all`, use `run_all_async`, or a runtime of several threads"
                );
                let watch = self.clone();
                let probe = |runtime| Probe::of(runtime, move || watch.give_up(why));
                self.heard().probe = self.registry.runtime(job_type).map(probe);
            }
            WorkerEvent::Attempt(_) => self.heard().probe = None,
            _ => {}
        }
    }

    #[cfg(not(feature = "tokio"))]
    #[allow(clippy::unused_self, reason = "handlers need no runtime")]
    fn probe(&self, _: &WorkerEvent) {}
}

impl Run {
    /// The error is what the test is told.
    fn all(self, shutdown: &Shutdown) -> Result<Ran, String> {
        let needs = |what: &'static str| move |error| format!("a test needs {what}: {error}");
        // Nothing is pruned: a test that moves its clock by a year looks for its jobs all the same.
        let options = WorkerOptions { drain: true, retention: Retention::forever(), ..WorkerOptions::default() };
        let ancestry =
            Ancestry::of(Arc::clone(&self.queue), self.generations).map_err(needs("the queue to be read"))?;
        let heard = Heard {
            ancestry,
            attempts: Vec::new(),
            #[cfg(feature = "tokio")]
            probe: None,
            hopeless: None,
        };
        let watch = Watch {
            heard: Arc::new(Mutex::new(heard)),
            shutdown: shutdown.clone(),
            #[cfg(feature = "tokio")]
            registry: self.registry.clone(),
        };
        let worker = Worker::new(self.queue, self.registry, options).map_err(needs("a worker"))?;
        let worker = worker.one_by_one().observed_by({
            let watch = watch.clone();
            move |event: &WorkerEvent| watch.hear(event)
        });
        let summary = worker.run(shutdown).map_err(needs("the worker to work"))?;
        let WorkerSummary { completed, failed, rescheduled, others } = summary;
        let mut heard = watch.heard();
        let attempts = std::mem::take(&mut heard.attempts);
        heard.hopeless.take().map_or(Ok(Ran { completed, failed, rescheduled, others, attempts }), Err)
    }
}

pub(super) type Dropped = Mutex<Option<std::thread::JoinHandle<()>>>;

fn lock(dropped: &Dropped) -> std::sync::MutexGuard<'_, Option<std::thread::JoinHandle<()>>> {
    dropped.lock().unwrap_or_else(PoisonError::into_inner)
}
