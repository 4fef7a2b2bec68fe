//! For the tests of applications: a queue of their own, everything in it run
//! now, and a clock that they move. Cargo feature `testing`.
//!
//! ```
//! use std::time::Duration;
//! use jobq::testing::TestQueue;
//! use jobq::{NewJob, Queue, Registry, handlers::CreateFile};
//!
//! // What is to be tested: a part of the application.
//! fn sign_up(queue: &Queue, name: &str) -> jobq::Result<()> {
//!     queue.enqueue(CreateFile::text(format!("welcome/{name}.txt"), "hello"))?;
//!     let later = CreateFile::text(format!("remind/{name}.txt"), "still there?");
//!     queue.enqueue(NewJob::of(&later).delay(Duration::from_secs(86_400)))?;
//!     Ok(())
//! }
//!
//! // In a test of its own:
//! let queue = TestQueue::new(Registry::builtin());
//! sign_up(&queue, "ada")?;
//! queue.assert_enqueued(&CreateFile::text("welcome/ada.txt", "hello"));
//!
//! assert_eq!(queue.run_all().completed, 1);
//! assert!(queue.root().join("welcome/ada.txt").exists());
//!
//! queue.advance(Duration::from_secs(86_400));
//! assert_eq!(queue.run_all().completed, 1);
//! queue.refute_enqueued::<CreateFile>();
//! # Ok::<(), jobq::Error>(())
//! ```
//!
//! In an async test it is `queue.run_all_async().await` (cargo feature `tokio`, too),
//! because async handlers need the runtime that `run_all` would block. tokio's clock
//! may be paused (`start_paused`): it stands still while jobs are run and while calls
//! such as `enqueue_async` are at work, so a timeout around them does not elapse, and it
//! leaps ahead where an async handler sleeps. It is not the queue's clock.
//!
//! The queue is a real one, in a temporary folder that goes with it: a database
//! in memory has no log and no second connection, and jobs that write files need
//! a disk. So it costs a few syncs; a `TMPDIR` in memory makes them free.

#[cfg(feature = "tokio")]
mod at_work;
#[cfg(feature = "tokio")]
mod clocks;
mod enqueued;
#[cfg(feature = "tokio")]
mod probe;
mod queue_clock;
mod run;
mod turns;
mod watch;
#[cfg(feature = "tokio")]
mod watched_future;
mod within;

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use self::queue_clock::QueueClock;
pub use self::run::Ran;
#[cfg(feature = "tokio")]
pub(crate) use self::{at_work::asleep, at_work::at_work, watched_future::watched};
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::handler::Registry;
use crate::queue::{Queue, QueueOptions};
use crate::store::{Limits, Store as _};

/// A queue for one test, with the handlers that [`run_all`](TestQueue::run_all)
/// runs. It is a [`Queue`] wherever one is borrowed; its folder goes with it.
///
/// Its methods panic where an application's code would return an error: in a
/// test that is the message one wants.
///
/// A test hangs if a handler or hook waits for the thread that the test blocks, for another run of the same
/// queue, or for a paused clock of tokio that the run keeps still. A handler ends at its timeout; a hook has none.
///
/// ```
/// use jobq::testing::TestQueue;
/// use jobq::{Registry, Status, handlers::CreateFile};
/// let queue = TestQueue::new(Registry::builtin());
/// let job = queue.enqueue(CreateFile::text("hello.txt", "hello"))?;
/// queue.run_all();
/// assert_eq!(queue.get(&job.id)?.status, Status::Completed);
/// # Ok::<(), jobq::Error>(())
/// ```
pub struct TestQueue {
    // Before its folder: it has files open there.
    queue: Arc<Queue>,
    registry: Registry,
    clock: Arc<QueueClock>,
    turns: turns::Turns,
    #[cfg(feature = "tokio")]
    clocks: Arc<clocks::Clocks>,
    _folder: TempDir,
}

impl TestQueue {
    /// An empty queue whose clock stands still at the present; the application's own
    /// `SystemTime::now()` goes on. Jobs of types without a handler can be queued and
    /// stay where they are.
    ///
    /// ```
    /// # use jobq::{NewJob, Registry, testing::TestQueue};
    /// let queue = TestQueue::new(Registry::builtin());
    /// queue.enqueue(NewJob::raw("send_mail", "{}"))?;
    /// assert_eq!(queue.run_all().completed, 0, "`send_mail` is none of the built-in types");
    /// # Ok::<(), jobq::Error>(())
    /// ```
    ///
    /// # Panics
    /// If no temporary folder can be made.
    #[must_use]
    #[track_caller]
    pub fn new(registry: Registry) -> Self {
        let folder = expect("a temporary folder for the queue", tempfile::tempdir());
        let clock = Arc::new(QueueClock::at(SystemClock.now()));
        let options = QueueOptions::in_folder(folder.path()).create(true).types(registry.types());
        let queue = expect("a queue in a temporary folder", options.clock(Arc::clone(&clock) as _).open());
        Self {
            queue: Arc::new(queue),
            registry,
            clock,
            turns: turns::Turns::default(),
            #[cfg(feature = "tokio")]
            clocks: Arc::default(),
            _folder: folder,
        }
    }

    /// The queue, for code that keeps one.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use jobq::{Queue, Registry, handlers::CreateFile, testing::TestQueue};
    /// struct Notes { queue: Arc<Queue> }
    /// # impl Notes {
    /// #     fn add(&self) -> jobq::Result<()> {
    /// #         self.queue.enqueue(CreateFile::text("note.txt", "a")).map(drop)
    /// #     }
    /// # }
    ///
    /// let queue = TestQueue::new(Registry::builtin());
    /// let notes = Notes { queue: queue.queue() };
    /// notes.add()?;
    /// queue.assert_enqueued(&CreateFile::text("note.txt", "a"));
    /// # Ok::<(), jobq::Error>(())
    /// ```
    #[must_use]
    pub fn queue(&self) -> Arc<Queue> {
        Arc::clone(&self.queue)
    }

    /// The time of the queue, which passes only when a test says so. What takes
    /// real time (a handler, its timeout) is not measured by it.
    ///
    /// A time that an application takes from the system's clock is later than this by what
    /// the test has taken so far. The queue's clock catches up with it, so that a job with
    /// `run_at(SystemTime::now())` is due at once, and one for a day later after
    /// [`advance`](TestQueue::advance) by a day.
    ///
    /// ```
    /// # use jobq::{Registry, handlers::CreateFile, testing::TestQueue};
    /// let queue = TestQueue::new(Registry::builtin());
    /// let job = queue.enqueue(CreateFile::text("a.txt", "a"))?;
    /// assert_eq!(queue.get(&job.id)?.created_at, queue.now());
    /// # Ok::<(), jobq::Error>(())
    /// ```
    #[must_use]
    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    /// The same, to reckon from: for code that is told the time, or for a
    /// [`run_at`](crate::NewJob::run_at) after the clock was moved, of which
    /// `SystemTime::now()` knows nothing. From then on the queue's clock catches up with nothing.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use jobq::{NewJob, Registry, handlers::CreateFile, testing::TestQueue};
    /// let (queue, hour) = (TestQueue::new(Registry::builtin()), Duration::from_secs(3600));
    /// queue.advance(24 * hour);
    /// queue.enqueue(NewJob::of(&CreateFile::text("a.txt", "a")).run_at(queue.system_time() + hour))?;
    /// assert_eq!(queue.run_all().completed, 0);
    /// queue.advance(hour);
    /// assert_eq!(queue.run_all().completed, 1);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    #[must_use]
    pub fn system_time(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(u64::try_from(self.clock.to_reckon_by()).unwrap_or(0))
    }

    /// Lets time pass: jobs with a delay or a time and jobs that wait for their next
    /// attempt fall due, pauses of types end. They run with the next
    /// [`run_all`](TestQueue::run_all). The system's clock stays where it is, and what
    /// the application reads there: see [`system_time`](TestQueue::system_time).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use jobq::{NewJob, Registry, handlers::CreateFile, testing::TestQueue};
    /// let queue = TestQueue::new(Registry::builtin());
    /// queue.enqueue(NewJob::of(&CreateFile::text("a.txt", "a")).delay(Duration::from_secs(3600)))?;
    /// queue.advance(Duration::from_secs(3599));
    /// assert_eq!(queue.run_all().completed, 0);
    /// queue.advance(Duration::from_secs(1));
    /// assert_eq!(queue.run_all().completed, 1);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn advance(&self, by: Duration) {
        self.clock.advance(Millis::try_from(by.as_millis()).unwrap_or(Millis::MAX));
    }

    /// Lets time pass until the next job falls due or the next pause ends, and says
    /// how long that was; `None` if nothing waits for its time. A backoff is up to
    /// half shorter than its policy says, by chance, so this is how a test gets past
    /// one exactly.
    ///
    /// ```
    /// use std::time::Duration;
    /// use jobq::testing::TestQueue;
    /// use jobq::{NewJob, Registry, handlers::CreateFile};
    /// let queue = TestQueue::new(Registry::builtin());
    /// queue.enqueue(NewJob::of(&CreateFile::text("a", "a")).delay(Duration::from_secs(60)))?;
    /// assert_eq!(queue.run_all().completed, 0);
    /// assert_eq!(queue.advance_to_next(), Some(Duration::from_secs(60)));
    /// assert_eq!(queue.run_all().completed, 1);
    /// assert_eq!(queue.advance_to_next(), None);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the queue cannot be read.
    #[track_caller]
    pub fn advance_to_next(&self) -> Option<Duration> {
        let outlook = self.queue.store().outlook(&self.registry.names(), &Limits::new());
        let next = expect("the queue to be read", outlook).next_at?;
        let before = self.now();
        self.clock.advance(next.saturating_sub(before).max(0));
        Some(Duration::from_millis(u64::try_from(self.now().saturating_sub(before)).unwrap_or(0)))
    }
}

impl Deref for TestQueue {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        &self.queue
    }
}

#[track_caller]
fn expect<T, E: std::fmt::Display>(what: &str, outcome: Result<T, E>) -> T {
    // Not in a closure, which would be taken for the caller.
    match outcome {
        Ok(value) => value,
        Err(error) => panic!("a test needs {what}: {error}"),
    }
}
