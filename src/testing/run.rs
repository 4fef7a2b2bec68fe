//! Everything that can be run now, by a real worker.

use std::sync::Arc;
#[cfg(feature = "tokio")]
use std::{
    panic::Location,
    pin::Pin,
    sync::Weak,
    task::{Context, Poll, ready},
};

use super::TestQueue;
#[cfg(feature = "tokio")]
use super::at_work::{AtWork, asleep};
#[cfg(feature = "tokio")]
use super::clocks::Clocks;
use super::turns::Turn;
use super::watch::Watch;
use super::within::{self, Watched};
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
    /// A hook has no timeout, and is waited for like a handler. Jobs of types that run programs stay where they are: those need a
    /// [`Supervisor`](crate::Supervisor).
    ///
    /// In an async test, `run_all_async` does the same and lets the runtime go on. Of
    /// runs at the same time one works after the other.
    ///
    /// ```
    /// # use jobq::{NewJob, Registry, handlers::CreateFile, testing::TestQueue};
    /// let queue = TestQueue::new(Registry::builtin());
    /// let first = queue.enqueue(CreateFile::text("a.txt", "first"))?;
    /// queue.enqueue(NewJob::of(&CreateFile::text("b.txt", "second")).after(&first.id))?;
    /// assert_eq!(queue.run_all().completed, 2);
    /// assert!(queue.root().join("b.txt").exists());
    /// # Ok::<(), jobq::Error>(())
    /// ```
    ///
    /// # Panics
    /// - If the worker cannot use the queue and ten seconds later still cannot. Most often a transaction of the test is open.
    /// - If an async handler waits for a runtime that runs nothing for ten seconds. Most often its only thread waits here.
    /// - If there are more than 10,000 attempts, because jobs queue each other for ever or one is always due again.
    /// - If a handler or a hook calls this for the queue that it is run by. What it queues is run anyway.
    #[track_caller]
    pub fn run_all(&self) -> Ran {
        // Not in a closure, which would be taken for the caller.
        match self.run_here() {
            Ok(ran) => ran,
            Err(why) => panic!("{why}"),
        }
    }

    /// [`run_all`](TestQueue::run_all) for an async test, whose runtime goes on
    /// meanwhile. Async handlers need that. Dropped before its end, as by a timeout, it
    /// stops: the job that runs is told to, and goes back. The next run waits for that.
    /// A handler that blocks and does not heed it may still be at it when the next run
    /// begins; what it returns then does not count.
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
    #[track_caller]
    pub fn run_all_async(&self) -> impl Future<Output = Ran> + Send + use<'_> {
        RunAll { run: Box::pin(self.run_beside()), asked_at: Location::caller() }
    }

    #[cfg(feature = "tokio")]
    async fn run_beside(&self) -> Result<Ran, String> {
        let (shutdown, run) = (Shutdown::new(), self.run());
        let (at_work, rest) = (self.clocks.hold(), AtWork::here());
        let _stop =
            StopWhenDropped { shutdown: shutdown.clone(), rest: rest.as_ref().map_or_else(Weak::new, Arc::downgrade) };
        let (end, ended) = tokio::sync::oneshot::channel();
        let work = move || {
            let ran = run.and_then(|run| run.all(&shutdown));
            // Nobody may want it any more.
            let _ = end.send(ran);
            // Last: the runtime must not be taken for idle before it has the answer.
            drop((at_work, rest));
        };
        // A thread of its own: the test may have all others of its runtime busy.
        let thread = std::thread::Builder::new().name("jobq-run-all".to_owned());
        drop(thread.spawn(work).map_err(|error| format!("a test needs a thread for the worker: {error}"))?);
        ended.await.map_err(|error| format!("a test needs the worker to work; it panicked: {error}"))?
    }

    #[cfg(feature = "tokio")]
    fn run_here(&self) -> Result<Ran, String> {
        let run = self.run()?;
        // In a call of async code it is the run that holds the clock, because only that knows when a handler waits.
        let _at_work = self.clocks.hold();
        asleep(|| run.all(&Shutdown::new()))
    }

    #[cfg(not(feature = "tokio"))]
    fn run_here(&self) -> Result<Ran, String> {
        self.run()?.all(&Shutdown::new())
    }

    /// The next run, unless this is within one.
    fn run(&self) -> Result<Run, String> {
        if let Some(why) = within::refused(&self.queue) {
            return Err(why);
        }
        Ok(Run {
            queue: self.queue(),
            registry: self.registry.clone(),
            turn: self.turns.next(),
            #[cfg(feature = "tokio")]
            clocks: Arc::clone(&self.clocks),
        })
    }
}

/// A run that is awaited. Not an async block: the place of a panic would be in here, and not where that is.
#[cfg(feature = "tokio")]
struct RunAll<'q> {
    run: Pin<Box<dyn Future<Output = Result<Ran, String>> + Send + 'q>>,
    asked_at: &'static Location<'static>,
}

#[cfg(feature = "tokio")]
impl Future for RunAll<'_> {
    type Output = Ran;

    // Called by the `.await` of the test, or by what is around it, such as a timeout.
    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ran> {
        match ready!(self.run.as_mut().poll(cx)) {
            Ok(ran) => Poll::Ready(ran),
            Err(why) if Location::caller().file() == self.asked_at.file() => panic!("{why}"),
            Err(why) => panic!("{why} (in the run of {})", self.asked_at),
        }
    }
}

/// Whoever does not wait for the end of a run does not want the rest of it.
#[cfg(feature = "tokio")]
struct StopWhenDropped {
    shutdown: Shutdown,
    /// What is left to do then, if it has not ended: the job that runs is given back, and must not come to its end
    /// because the clock leaps meanwhile, whatever it waits for. Paused until then.
    rest: Weak<AtWork>,
}

#[cfg(feature = "tokio")]
impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        if let Some(rest) = self.rest.upgrade() {
            rest.resume();
        }
        // Told twice, it does not wait for what runs.
        self.shutdown.request();
        self.shutdown.request();
    }
}

/// What it takes to run everything.
struct Run {
    queue: Arc<Queue>,
    registry: Registry,
    turn: Turn,
    #[cfg(feature = "tokio")]
    clocks: Arc<Clocks>,
}

impl Run {
    /// The error is what the test is told.
    fn all(self, shutdown: &Shutdown) -> Result<Ran, String> {
        self.turn.wait();
        if shutdown.requests() > 0 {
            // Dropped before it began.
            return Ok(Ran::default());
        }
        let needs = |what: &'static str| move |error| format!("a test needs {what}: {error}");
        // Nothing is pruned: a test that moves its clock by a year looks for its jobs all the same.
        let options = WorkerOptions { drain: true, retention: Retention::forever(), ..WorkerOptions::default() };
        let watch = Watch::of(Arc::clone(&self.queue), shutdown.clone());
        #[cfg(feature = "tokio")]
        let watch = watch.with_clocks(self.clocks);
        let registry = self.registry.each(|handler| Arc::new(Watched { handler, run: watch.clone() }));
        let worker = Worker::new(self.queue, registry, options).map_err(needs("a worker"))?;
        let worker = worker.one_by_one().observed_by({
            let watch = watch.clone();
            move |event: &WorkerEvent| watch.hear(event)
        });
        let summary = worker.run(shutdown).map_err(needs("the worker to work"))?;
        let WorkerSummary { completed, failed, rescheduled, others } = summary;
        Ok(Ran { completed, failed, rescheduled, others, attempts: watch.outcome()? })
    }
}
