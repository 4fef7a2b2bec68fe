//! A job as it is kept.

use serde::{Serialize, Serializer};

use crate::clock::{Millis, rfc3339};
use crate::error::{Error, Result};
use crate::json::{self, JsonText};
use crate::payload::Payload;
use crate::retry::Backoff;
use crate::state::{Gate, Status};

/// A job as the database has it. Serialises with the names of the columns.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::handlers::CreateFile;
/// let id = queue.enqueue(CreateFile::text("a.txt", "a"))?.id;
/// let job = queue.get(&id)?;
/// assert_eq!((job.status.as_str(), job.attempts, job.max_attempts), ("pending", 0, 3));
/// assert_eq!(job.payload::<CreateFile>()?.path, "a.txt");
/// assert_eq!(serde_json::to_value(&job).unwrap()["type"], "create_file");
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Job {
    /// Order of acceptance.
    pub seq: i64,
    /// The job's name.
    pub id: String,
    /// What kind of work.
    #[serde(rename = "type")]
    pub job_type: String,
    /// Where it is in its life.
    pub status: Status,
    /// Why it is not running yet, while pending.
    pub gate: Option<Gate>,
    /// Higher runs first.
    pub priority: i32,
    /// Runs so far, counted at the claim.
    pub attempts: u32,
    /// Runs before it fails.
    pub max_attempts: u32,
    /// The fencing token of the newest claim.
    pub token: i64,
    /// Someone asked a claimed job to stop.
    pub cancel_requested: bool,
    /// Signs of life since the claim.
    pub heartbeat: i64,
    /// When it was queued.
    #[serde(serialize_with = "time")]
    pub created_at: Millis,
    /// Not before this time.
    #[serde(serialize_with = "maybe_time")]
    pub run_at: Option<Millis>,
    /// When the current claim was made.
    #[serde(serialize_with = "maybe_time")]
    pub locked_at: Option<Millis>,
    /// The newest sign of life.
    #[serde(serialize_with = "maybe_time")]
    pub heartbeat_at: Option<Millis>,
    /// When it was last claimed.
    #[serde(serialize_with = "maybe_time")]
    pub claimed_at: Option<Millis>,
    /// When it was completed, failed or cancelled.
    #[serde(serialize_with = "maybe_time")]
    pub completed_at: Option<Millis>,
    /// How long one attempt may take, in milliseconds.
    pub timeout: Option<i64>,
    /// Backoff after the first failure, in milliseconds.
    pub backoff_base: Option<i64>,
    /// Longest backoff, in milliseconds.
    pub backoff_max: Option<i64>,
    /// Who has it.
    pub locked_by: Option<String>,
    /// The job it still waits for.
    pub waiting_on: Option<String>,
    /// What makes it the same as another job.
    pub idempotency_key: Option<String>,
    /// The cause it belongs to.
    pub correlation_id: Option<String>,
    /// sha256 of the payload's bytes.
    pub payload_hash: Option<String>,
    /// The keys it has while unfinished.
    pub holds: Option<JsonText>,
    /// The newest error.
    pub last_error: Option<String>,
    /// As last reported by the handler.
    pub progress: Option<JsonText>,
    /// What the handler left for its next attempt.
    pub checkpoint: Option<JsonText>,
    /// What the completed job left.
    pub result: Option<JsonText>,
    /// What a decided job will do.
    pub outcome: Option<JsonText>,
    /// The input, as it was given.
    pub payload: JsonText,
    /// For a pending job that cannot run yet: the reason, for people.
    pub blocked: Option<String>,
}

impl Job {
    /// The payload, typed.
    pub fn payload<P: Payload>(&self) -> Result<P> {
        json::parse(self.payload.as_str())
            .map_err(|e| Error::invalid("payload", e).context(format_args!("job {}", self.id)))
    }

    /// The retry policy this job was queued with.
    #[must_use]
    pub fn backoff(&self) -> Backoff {
        let or = |value: Option<i64>, default| value.and_then(|v| u64::try_from(v).ok()).unwrap_or(default);
        let default = Backoff::default();
        Backoff { base_ms: or(self.backoff_base, default.base_ms), max_ms: or(self.backoff_max, default.max_ms) }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn time<S: Serializer>(time: &Millis, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*time))
}

#[expect(clippy::ref_option, reason = "serde hands over references")]
fn maybe_time<S: Serializer>(time: &Option<Millis>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(rfc3339).serialize(serializer)
}
