//! What goes into the verbs of a job's life and what comes out.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Millis;
use crate::job::Job;
use crate::json::JsonText;
use crate::new_job::Unique;
use crate::retry::Backoff;
use crate::state::Status;

/// A job that has passed every check that needs no database.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnqueueJob {
    /// Its name.
    pub id: String,
    /// Whether the caller chose the name.
    pub id_given: bool,
    /// What kind of work.
    pub job_type: String,
    /// The input, as given.
    pub payload: String,
    /// sha256 of those bytes.
    pub payload_hash: String,
    /// Whether this process knows the type and has validated the payload.
    pub admitted: bool,
    /// What makes it a duplicate.
    pub dedup: Dedup,
    /// Against which jobs.
    pub unique: Unique,
    /// The keys it holds while unfinished.
    pub holds: Vec<String>,
    /// Higher runs first.
    pub priority: i32,
    /// Not before this time.
    pub run_at: Option<Millis>,
    /// Runs before it fails.
    pub max_attempts: u32,
    /// How long one attempt may take, in milliseconds.
    pub timeout: Millis,
    /// The wait between attempts.
    pub backoff: Backoff,
    /// The job it waits for.
    pub waiting_on: Option<String>,
    /// The cause it belongs to.
    pub correlation_id: Option<String>,
}

/// When a new job is the same as one that is already there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dedup {
    /// Never.
    None,
    /// When type and key are the same.
    Key(String),
    /// When the newest unfinished job on these holds has the same type and payload.
    NewestHolder(Vec<String>),
}

/// The answer to an enqueue: never a silent nothing.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::{EnqueueOutcome, NewJob};
/// let job = |payload: &str| NewJob::raw("invoice", payload).key("number 7");
/// let first = queue.enqueue(job(r#"{"text":"a"}"#))?;
/// assert_eq!(first.outcome, EnqueueOutcome::Inserted);
/// let other = queue.enqueue(job(r#"{"text":"b"}"#))?;
/// assert_eq!((other.outcome, other.id == first.id), (EnqueueOutcome::Existing, true));
/// assert!(!other.same_payload, "what was asked for now is not what is queued");
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Enqueued {
    /// The job that stands for the request.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub job_type: String,
    /// Its status now.
    pub status: Status,
    /// Whether it is new.
    pub outcome: EnqueueOutcome,
    /// Whether its payload means the same as the one handed in.
    pub same_payload: bool,
}

/// Whether an enqueue made a job or found one.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::{EnqueueOutcome, NewJob};
/// let enqueued = queue.enqueue(NewJob::raw("send_mail", "{}"))?;
/// match enqueued.outcome {
///     EnqueueOutcome::Inserted => println!("{} is queued", enqueued.id),
///     EnqueueOutcome::Existing => println!("{} was there already", enqueued.id),
/// }
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnqueueOutcome {
    /// A new job.
    Inserted,
    /// The same job was already there.
    Existing,
}

/// A process that claims, and how to find out whether it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Readable and unique: host, pid, random part.
    pub locked_by: String,
    /// The machine.
    pub machine_id: String,
    /// The machine's current boot.
    pub boot_id: String,
    /// The process.
    pub pid: u32,
    /// The name of the file it keeps locked.
    pub lock_file: String,
}

/// What to claim.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Who claims.
    pub owner: Owner,
    /// The types to look at.
    pub types: Vec<String>,
    /// How many at most.
    pub limit: u32,
    /// How many of a type may run at once, in all processes together.
    pub limits: Limits,
}

/// How many jobs of a type may run at once; types that are not named have no limit.
pub type Limits = BTreeMap<String, u32>;

/// The right to work on a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The job.
    pub id: String,
    /// Its place in the order of acceptance.
    pub seq: i64,
    /// The claim's number.
    pub token: i64,
}

/// A job and the right to work on it.
#[derive(Clone, Debug)]
pub struct ClaimedJob {
    /// The right.
    pub lease: Lease,
    /// The job as it is now.
    pub job: Job,
}

/// A sign of life.
#[derive(Clone, Debug)]
pub struct Beat {
    /// Whose.
    pub lease: Lease,
    /// News for people; writes an event.
    pub progress: Option<Progress>,
    /// JSON for the next attempt to find.
    pub checkpoint: Option<String>,
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// 0 to 100.
    pub percent: u8,
    /// In words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The answer to a sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulse {
    /// Go on.
    Alive,
    /// Stop at the next safe point.
    CancelRequested,
    /// The job is no longer yours; stop, nothing you write will count.
    Lost,
}

/// The longest that a type can be paused at a time.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(7 * 86_400);

/// Why an attempt failed, and what it leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// A word for programs: `invalid_input`, `job_timeout`, `handler_error` …
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// Anything more, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
    /// JSON for the `result` column; what is there stays if there is none.
    #[serde(skip)]
    pub result: Option<Arc<JsonText>>,
    /// For how long no job of this type is claimed; [`LONGEST_PAUSE`] at most.
    #[serde(skip)]
    pub pause: Option<Duration>,
}

impl Failure {
    /// A failure without details.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), details: None, result: None, pause: None }
    }

    /// The same, with something for programs.
    #[must_use]
    pub fn with_details(mut self, details: serde_json::Value) -> Self {
        self.details = Some(details);
        self
    }

    /// The same, leaving this JSON as the job's result.
    #[must_use]
    pub fn leaving(mut self, result: impl Into<String>) -> Self {
        self.result = Some(Arc::new(JsonText(result.into())));
        self
    }

    /// The same, pausing the job's type for that long. When the job is rescheduled with
    /// it, the attempt does not count.
    #[must_use]
    pub fn pausing_type(mut self, pause: Duration) -> Self {
        self.pause = Some(pause.min(LONGEST_PAUSE));
        self
    }

    /// As the `last_error` column has it.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}: {}", self.code, self.message)
    }
}

/// Whether a job had been started by the owner that lost it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// The attempt counts; with attempts used up the job fails.
    Yes,
    /// The attempt is given back.
    No,
    /// The attempt counts, but this alone never fails the job.
    Unknown,
}

/// What to take back.
#[derive(Clone, Debug, Default)]
pub struct Reclaim {
    /// Owners that are dead.
    pub dead: Vec<DeadOwner>,
    /// Leases of silent owners.
    pub lapsed: Vec<LapsedLease>,
}

/// A dead owner, and which of its jobs it had started (`None`: not known).
#[derive(Clone, Debug)]
pub struct DeadOwner {
    /// Who.
    pub locked_by: String,
    /// (seq, token) of what it had started.
    pub started: Option<HashSet<(i64, i64)>>,
}

/// A lease whose heartbeat has stood still for a whole lease.
#[derive(Clone, Debug)]
pub struct LapsedLease {
    /// Which.
    pub lease: Lease,
    /// The count that stood still; if it has moved, the lease is not taken.
    pub heartbeat: i64,
    /// Whether the job had been started.
    pub started: Started,
}

/// What a reclaim did, by job id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reclaimed {
    /// Back to pending.
    pub pending: Vec<String>,
    /// Failed: lost its worker too often.
    pub failed: Vec<String>,
    /// Ended, because a cancel was waiting.
    pub cancelled: Vec<String>,
    /// Decided and now free for anyone to apply.
    pub unowned: Vec<String>,
    /// Not taken back, because their rows are damaged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
}

/// A lease that someone has.
#[derive(Clone, Debug)]
pub struct HeldLease {
    /// Which.
    pub lease: Lease,
    /// Its signs of life so far.
    pub heartbeat: i64,
    /// The job is decided: it only has to be applied.
    pub decided: bool,
    /// The owner's name.
    pub locked_by: String,
    /// The owner, if it is on record.
    pub owner: Option<Owner>,
}

/// What a cancel did.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::{NewJob, store::CancelOutcome};
/// let first = queue.enqueue(NewJob::raw("build", "{}"))?.id;
/// let second = queue.enqueue(NewJob::raw("publish", "{}").after(&first))?.id;
/// let cancellation = queue.cancel(&first)?;
/// assert_eq!(cancellation.outcome, CancelOutcome::Cancelled);
/// assert_eq!(cancellation.cancelled_waiters, [second]);
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cancellation {
    /// The job named.
    pub id: String,
    /// What became of it.
    pub outcome: CancelOutcome,
    /// Jobs that waited on it, cancelled too.
    pub cancelled_waiters: Vec<String>,
}

/// What became of a job that was to be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelOutcome {
    /// It was pending and is cancelled.
    Cancelled,
    /// It is running and will stop at its next safe point.
    Requested,
    /// It had been cancelled before.
    AlreadyCancelled,
    /// It had failed and stays so; what waited on it is cancelled.
    WaitersOnly,
}
