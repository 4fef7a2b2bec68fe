//! What whoever commits is told.

use serde::{Deserialize, Serialize};

use crate::handlers::{CommittedJob, WrittenFiles};
use crate::job::Job;
use crate::state::Status;
use crate::store::Enqueued;

/// The answer to a commit: it is durable.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// let commit = queue.commit(|tx| {
///     tx.write("a.txt", "a")?;
///     tx.enqueue(jobq::NewJob::raw("send_mail", "{}"))
/// })?;
/// assert!(commit.applied && commit.reason.is_none(), "the file is in place");
/// assert_eq!(queue.get(&commit.id)?.job_type, "write_files");
/// assert_eq!(queue.get(&commit.jobs[0].id)?.job_type, "send_mail");
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Accepted {
    /// The commit's id, which is also that of its `write_files` job.
    pub id: String,
    /// Where that job is in its life.
    pub status: Status,
    /// Whether the files are in place. If not, they will be when that is
    /// possible; nothing more needs to be done for it.
    pub applied: bool,
    /// Why they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The commit's jobs, in the order they were given.
    pub jobs: Vec<CommittedJob>,
    /// The same commit had been accepted before.
    #[serde(skip)]
    pub existing: bool,
}

/// A commit as it has just been answered.
pub(super) fn accepted(id: &str, jobs: Vec<Enqueued>) -> Accepted {
    let job = |Enqueued { id, job_type, outcome, .. }| CommittedJob { id, job_type, outcome };
    Accepted {
        id: id.to_owned(),
        status: Status::Completed,
        applied: true,
        reason: None,
        jobs: jobs.into_iter().map(job).collect(),
        existing: false,
    }
}

/// A commit as its job tells it.
pub(super) fn described(job: &Job) -> Accepted {
    #[derive(Deserialize)]
    struct Decided {
        result: WrittenFiles,
    }
    let decided = job.outcome.as_ref().and_then(|text| text.parse::<Decided>().ok());
    let reason = match (job.status, &job.locked_by) {
        (Status::Completed, _) => None,
        (Status::Claimed, Some(owner)) => Some(format!("{owner} is at it")),
        _ => Some(job.last_error.clone().unwrap_or_else(|| format!("its job is {}", job.status))),
    };
    Accepted {
        id: job.id.clone(),
        status: job.status,
        applied: job.status == Status::Completed,
        reason,
        jobs: decided.map(|decided| decided.result.jobs).unwrap_or_default(),
        existing: true,
    }
}
