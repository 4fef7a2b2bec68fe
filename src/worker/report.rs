//! What a worker tells of itself.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::reconcile::Reconciled;
use crate::state::Status;
use crate::store::{Failure, Reclaimed};

/// Something that happened in a worker.
///
/// ```
/// use jobq::WorkerEvent;
/// fn log(event: &WorkerEvent) {
///     match event {
///         WorkerEvent::Attempt(report) => println!("{} {:?}", report.job_id, report.outcome),
///         WorkerEvent::ThreadLost { job_id, .. } => eprintln!("{job_id} does not stop"),
///         WorkerEvent::Trouble { error, retry_in } => eprintln!("{error}; again in {retry_in:?}"),
///         _ => {}
///     }
/// }
/// # fn observed(worker: jobq::Worker) -> jobq::Worker {
/// worker.observed_by(log)
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// It is ready.
    Started {
        /// Its name, as in `locked_by`.
        worker: String,
        /// What it runs.
        types: Vec<String>,
        /// How many jobs at the same time.
        concurrency: usize,
        /// The folder from which it runs programs.
        programs: PathBuf,
    },
    /// A job begins to run.
    AttemptStarted {
        /// The job.
        job_id: String,
        /// Its type.
        job_type: String,
        /// Which attempt.
        attempt: u32,
    },
    /// What a job will do is durable; none of it is visible yet.
    Decided {
        /// The job.
        job_id: String,
    },
    /// An attempt is over, and what came of it is durable, unless it is [`AttemptEnd::Unrecorded`].
    Attempt(AttemptReport),
    /// The disk has been compared with what completed jobs left.
    Reconciled(Reconciled),
    /// Jobs were taken back from workers that are gone.
    Reclaimed(Reclaimed),
    /// Jobs of types without a handler here. Reported once per type, and at most once a minute.
    UnknownType {
        /// One of the types.
        job_type: String,
        /// How many other types are new since the last report.
        others: usize,
    },
    /// A handler did not stop when it should have. Its job was given up, its
    /// thread replaced.
    ThreadLost {
        /// The job.
        job_id: String,
        /// Its type.
        job_type: String,
    },
    /// The database cannot be used at the moment.
    Trouble {
        /// Why.
        error: String,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// The database works again.
    TroubleOver,
    /// It was told to stop and waits for these jobs.
    Stopping {
        /// Their ids.
        waiting_for: Vec<String>,
    },
    /// It has stopped.
    Stopped(WorkerSummary),
}

/// One attempt, from beginning to end.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use jobq::worker::{AttemptEnd, WorkerEvent};
/// # use jobq::{Queue, Registry, Shutdown, Worker, WorkerOptions, handlers::CreateFile};
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = Arc::new(Queue::init(folder.path())?);
/// queue.enqueue(CreateFile::text("a.txt", "a"))?;
/// # let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
/// let attempts = Arc::new(Mutex::new(Vec::new()));
/// let seen = Arc::clone(&attempts);
/// let worker = Worker::new(queue, Registry::builtin(), options)?.observed_by(move |event| {
///     if let WorkerEvent::Attempt(report) = event {
///         seen.lock().unwrap().push(report.clone());
///     }
/// });
/// worker.run(&Shutdown::new())?;
/// let attempts = attempts.lock().unwrap();
///
/// assert_eq!((attempts[0].job_type.as_str(), attempts[0].attempt), ("create_file", 1));
/// assert_eq!(attempts[0].outcome, AttemptEnd::Completed);
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct AttemptReport {
    /// The job.
    pub job_id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub job_type: String,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// How often it was tried before this attempt.
    pub retries: u32,
    /// How long the handler took.
    #[serde(rename = "duration_ms", serialize_with = "millis")]
    pub duration: Duration,
    /// How it ended.
    pub outcome: AttemptEnd,
    /// Where the job is now; not known when it is someone else's.
    pub status: Option<Status>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The cause it belongs to.
    pub correlation_id: Option<String>,
}

fn millis<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((time.as_secs_f64() * 1e6).round() / 1e3)
}

/// How an attempt ended.
///
/// ```
/// use jobq::worker::AttemptEnd;
/// assert_eq!(serde_json::to_value(AttemptEnd::LeaseLost).unwrap(), "lease_lost");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// The job has completed.
    Completed,
    /// It failed and runs again.
    Rescheduled,
    /// It failed for good.
    Failed,
    /// It goes back and the attempt does not count.
    Released,
    /// It was cancelled.
    Cancelled,
    /// It was decided, but cannot be applied now. It is tried again.
    Deferred,
    /// It was no longer ours; nothing was changed.
    LeaseLost,
    /// What came of it could not be written down, mostly because the database is damaged there. The attempt counts,
    /// and this worker does not run the job again as if there had been none.
    Unrecorded,
}

/// What a worker did in all.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = std::sync::Arc::new(jobq::Queue::init(folder.path())?);
/// # let drain = || {
/// #     let options = jobq::WorkerOptions { drain: true, ..Default::default() };
/// #     jobq::Worker::new(queue.clone(), jobq::Registry::builtin(), options)?.run(&jobq::Shutdown::new())
/// # };
/// use jobq::{WorkerSummary, handlers::CreateFile};
/// queue.enqueue(CreateFile::text("a.txt", "a"))?;
/// assert_eq!(drain()?, WorkerSummary { completed: 1, ..WorkerSummary::default() });
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorkerSummary {
    /// Jobs that completed.
    pub completed: u64,
    /// Jobs that failed for good.
    pub failed: u64,
    /// Attempts that will be repeated.
    pub rescheduled: u64,
    /// Attempts that ended otherwise.
    pub others: u64,
}

impl WorkerSummary {
    pub(super) fn count(&mut self, end: AttemptEnd) {
        let which = match end {
            AttemptEnd::Completed => &mut self.completed,
            AttemptEnd::Failed => &mut self.failed,
            AttemptEnd::Rescheduled => &mut self.rescheduled,
            _ => &mut self.others,
        };
        *which += 1;
    }
}
