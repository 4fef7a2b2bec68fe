//! The worker: claims jobs, runs them, decides and applies what came of it.
//!
//! ```text
//!  dispatch ──claims──► pool ──► runners (N threads) ──► finish ──settle──► store
//!     ▲  upkeep: heartbeats, dead owners, timeouts, cancels      │
//!     └───────────────── bell: "there is room", "look again" ◄───┘
//! ```
//!
//! - `dispatch` is the loop: it decides when to look and how much to claim; `stop`
//!   how to end; `upkeep` is what it does besides, `retention` how what is old goes;
//! - `pool` holds what is claimed and what runs; `execute` is one attempt, from
//!   payload to one step for the store, `prepare` what is refused before that;
//! - `finish` takes those steps to the store, as many as there are at a time;
//!   decides ride with the applies of the round before; `seal` sees to it that what
//!   is decided is durable in the stage;
//! - `runtimes` is what happens when what async handlers run with ends first;
//! - `pace` says how far to claim ahead, `trouble` how long to wait when the
//!   database fails, `wake` how one hears of work, `time` lets tests own time.

mod disk;
mod dispatch;
mod doubt;
mod execute;
mod finish;
mod hooks;
mod inbox;
mod keep;
mod pace;
mod pool;
mod postponed;
mod prepare;
mod report;
mod retention;
mod runtimes;
mod seal;
mod shutdown;
mod span;
mod stop;
mod time;
mod trouble;
mod upkeep;
mod wake;

use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

pub use report::{AttemptEnd, AttemptReport, WorkerEvent, WorkerSummary};
pub use retention::Retention;
pub use shutdown::Shutdown;
pub use time::{SystemTicks, Ticks};
pub use wake::Bell;

use crate::effects::Files;
use crate::error::{Error, Result};
use crate::handler::Registry;
use crate::liveness::{self, OwnerLock};
use crate::programs::{Link, Supervisor};
use crate::queue::Queue;

/// How a worker works.
///
/// ```
/// use std::time::Duration;
/// use jobq::WorkerOptions;
/// let options = WorkerOptions {
///     concurrency: 16,
///     types: Some(vec!["send_mail".to_owned()]),
///     grace: Some(Duration::from_secs(30)),
///     // However many workers there are, the service is asked by two at a time.
///     limits: [("send_mail".to_owned(), 2)].into(),
///     ..WorkerOptions::default()
/// };
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Jobs that run at the same time.
    pub concurrency: usize,
    /// Only these types; all that have a handler if `None`.
    pub types: Option<Vec<String>>,
    /// Stop when there is nothing left to do now.
    pub drain: bool,
    /// How long to go without looking when nothing wakes the worker.
    pub poll_interval: Duration,
    /// How long a silent owner keeps its jobs.
    pub lease: Duration,
    /// How long to wait for running jobs at shutdown; for ever if `None`.
    pub grace: Option<Duration>,
    /// Compare the disk with what completed jobs left, once, at the start and
    /// beside the work: differences are logged.
    pub reconcile: bool,
    /// How long finished jobs are kept.
    pub retention: Retention,
    /// Who sees to it that programs which handlers run end with their job. Without
    /// one, types that run programs are left to other workers.
    pub supervisor: Option<Supervisor>,
    /// How many jobs of a type may run at once, counted over all workers of the
    /// database: this one claims no more. Types that are not named have no limit.
    pub limits: BTreeMap<String, u32>,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            concurrency: 4,
            types: None,
            drain: false,
            poll_interval: Duration::from_secs(1),
            lease: liveness::LEASE,
            grace: None,
            reconcile: false,
            retention: Retention::default(),
            supervisor: None,
            limits: BTreeMap::new(),
        }
    }
}

/// A process that is busy may take this long from one thing to the next: with a
/// shorter lease its claims would run out before they begin.
pub const SHORTEST_LEASE: Duration = Duration::from_millis(100);

/// Longer than this is for ever, and no clock can overflow with it.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Who is told what happens.
pub type Observer = dyn Fn(&WorkerEvent) + Send + Sync;

/// Runs jobs of a queue.
///
/// ```
/// use std::sync::Arc;
/// use jobq::{QueueOptions, Registry, Shutdown, Status, Worker, WorkerOptions, handlers::CreateFile};
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// let registry = Registry::builtin();
/// let queue = QueueOptions::in_folder(folder).create(true).types(registry.types()).open()?;
/// let queue = Arc::new(queue);
/// let job = queue.enqueue(CreateFile::text("out/hello.txt", "hello"))?;
///
/// let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
/// Worker::new(Arc::clone(&queue), registry, options)?.run(&Shutdown::new())?;
///
/// assert_eq!(queue.get(&job.id)?.status, Status::Completed);
/// assert_eq!(std::fs::read_to_string(folder.join("out/hello.txt")).unwrap(), "hello");
/// # Ok::<(), jobq::Error>(())
/// ```
pub struct Worker {
    queue: Arc<Queue>,
    registry: Registry,
    options: WorkerOptions,
    types: Vec<String>,
    observer: Arc<Observer>,
    ticks: Arc<dyn Ticks>,
    one_by_one: bool,
}

impl Worker {
    /// A worker for a queue that was opened with the registry's types.
    pub fn new(queue: Arc<Queue>, registry: Registry, mut options: WorkerOptions) -> Result<Self> {
        options.poll_interval = options.poll_interval.min(FOR_EVER);
        options.lease = options.lease.min(FOR_EVER);
        options.grace = options.grace.map(|grace| grace.min(FOR_EVER));
        if options.concurrency == 0 {
            return Err(Error::invalid("concurrency", "must be at least 1"));
        }
        if options.lease < SHORTEST_LEASE {
            return Err(Error::invalid("lease", format_args!("must be at least {SHORTEST_LEASE:?}")));
        }
        if let Some(name) = options.limits.iter().find(|(_, limit)| **limit == 0).map(|(name, _)| name) {
            return Err(Error::invalid(format!("limits.{name}"), "must be at least 1"));
        }
        let names = registry.names();
        if let Some(name) = names.iter().find(|name| !queue.types().knows(name)) {
            return Err(Error::invalid(
                "types",
                format_args!("the queue was opened without the type {name}; open it with the registry's types"),
            ));
        }
        let supervised = options.supervisor.is_some();
        let can_run = |name: &str| registry.get(name).is_some_and(|handler| supervised || !handler.runs_programs());
        let mut types: Vec<String> = match &options.types {
            None => names.iter().filter(|name| can_run(name)).cloned().collect(),
            Some(wanted) => wanted
                .iter()
                .map(|name| match registry.get(name) {
                    Some(_) if can_run(name) => Ok(name.clone()),
                    Some(_) => Err(Error::invalid(
                        "types",
                        format_args!("`{name}` runs programs, which needs WorkerOptions::supervisor"),
                    )),
                    None => {
                        let known = names.join(", ");
                        let why = format_args!("there is no handler for `{name}`; there are: {known}");
                        Err(Error::invalid("types", why))
                    }
                })
                .collect::<Result<_>>()?,
        };
        let mut seen = HashSet::new();
        types.retain(|name| seen.insert(name.clone()));
        let (observer, ticks): (Arc<Observer>, _) = (Arc::new(|_| {}), Arc::new(SystemTicks));
        Ok(Self { queue, registry, options, types, observer, ticks, one_by_one: false })
    }

    /// Tells someone what happens. Called from the worker's own threads: be quick.
    #[must_use]
    pub fn observed_by(mut self, observer: impl Fn(&WorkerEvent) + Send + Sync + 'static) -> Self {
        self.observer = Arc::new(observer);
        self
    }

    /// Time as a test wants it.
    #[must_use]
    pub fn ticks(mut self, ticks: Arc<dyn Ticks>) -> Self {
        self.ticks = ticks;
        self
    }

    /// Claims a job only when the one before is at its end, durably, with all that
    /// comes of it: so the order does not depend on how long anything takes.
    #[cfg(feature = "testing")]
    #[must_use]
    pub(crate) fn one_by_one(mut self) -> Self {
        self.options.concurrency = 1;
        self.one_by_one = true;
        self
    }

    /// Runs until told to stop, or until there is nothing left to do if it is to
    /// drain. What it has claimed is finished or given back when this returns.
    pub fn run(self, shutdown: &Shutdown) -> Result<WorkerSummary> {
        self.queue.store().expect_own_folder()?;
        let lock = OwnerLock::acquire(&self.queue.owners_folder())?;
        if let Err(error) = lock.promise(self.options.lease) {
            tracing::warn!(%error, "cannot note the lease; workers with a shorter one may judge by theirs");
        }
        let files = Files::open(self.queue.root(), self.queue.state_folder(), &lock.owner().locked_by)?;
        let mut files = files.protecting(self.queue.database())?;
        files.policy = Arc::clone(&self.queue.policy);
        let words = &mut Arc::make_mut(&mut files.policy).command_words;
        words.extend(self.registry.types().command_words());
        words.sort();
        words.dedup();
        let link = |supervisor: Supervisor| {
            Ok::<_, Error>(Arc::new(Link::new(supervisor.path().to_owned(), lock.share()?, self.options.lease)))
        };
        let programs = self.options.supervisor.clone().map(link).transpose()?;
        let bell = Arc::new(Bell::default());
        let shared = Arc::new(Shared {
            pool: pool::Pool::new(Arc::clone(&bell), self.options.lease),
            finished: inbox::Inbox::default(),
            shutting_down: Arc::new(AtomicBool::new(false)),
            pace: Mutex::default(),
            lost_threads: AtomicUsize::new(0),
            ended_runtime: OnceLock::new(),
            room: AtomicU8::new(Room::Unknown as u8),
            doubt: Mutex::default(),
            files: Arc::new(files),
            programs,
            queue: self.queue,
            registry: self.registry,
            observer: self.observer,
            ticks: self.ticks,
            lock,
            bell,
            one_by_one: self.one_by_one,
        });
        #[cfg(feature = "tokio")]
        let _watches = shared.watch_runtimes(&self.types);
        dispatch::Dispatcher::new(shared, self.options, self.types, shutdown.clone()).run()
    }
}

/// What the threads of one worker share.
struct Shared {
    queue: Arc<Queue>,
    registry: Registry,
    files: Arc<Files>,
    programs: Option<Arc<Link>>,
    lock: OwnerLock,
    pool: pool::Pool,
    finished: inbox::Inbox,
    bell: Arc<Bell>,
    shutting_down: Arc<AtomicBool>,
    pace: Mutex<pace::Pace>,
    /// Threads whose handlers were given up and have not come back.
    lost_threads: AtomicUsize,
    /// The type of a handler whose runtime has ended.
    ended_runtime: OnceLock<String>,
    room: AtomicU8,
    doubt: Mutex<doubt::Doubt>,
    observer: Arc<Observer>,
    ticks: Arc<dyn Ticks>,
    one_by_one: bool,
}

/// What jobs found out about room on the disk since the dispatcher last asked.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Room {
    Unknown,
    Full,
    Found,
}

impl Shared {
    /// Whether what is run now can be recorded.
    fn doubt(&self) -> MutexGuard<'_, doubt::Doubt> {
        self.doubt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An observer that panics has missed something; the worker goes on.
    fn tell(&self, event: &WorkerEvent) {
        let told = catch_unwind(AssertUnwindSafe(|| (self.observer)(event)));
        if let Err(panic) = told {
            execute::forget(panic);
            tracing::error!("the worker's observer panicked");
        }
    }
}
