//! `write_files`: what a commit does to files. Such jobs are made by
//! [`Queue::commit`](crate::Queue::commit) alone, claimed and decided from the
//! start: no handler ever runs for them.

use serde::{Deserialize, Serialize};

use crate::{Error, Payload, Result};

/// What a commit does to files, and which jobs wait on it. The contents are not
/// here: until they are in place they are only in the stage.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::handlers::WriteFiles;
/// let id = queue.commit(|tx| {
///     tx.write("a.txt", "hello")?;
///     tx.enqueue(jobq::NewJob::raw("send_mail", "{}"))
/// })?.id;
///
/// let payload = queue.get(&id)?.payload::<WriteFiles>()?;
/// assert_eq!(payload.files[0].path, "a.txt");
/// assert!(queue.enqueue(payload).unwrap_err().is_invalid(), "only a commit makes them");
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFiles {
    /// The files, in the order they were given.
    pub files: Vec<CommittedFile>,
    /// sha256 over what was asked of the jobs that wait on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs_sha256: Option<String>,
}

/// One file of a commit.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::handlers::WriteFiles;
/// let id = queue.commit(|tx| {
///     tx.write("a.txt", "hello")?;
///     tx.enqueue(jobq::NewJob::raw("send_mail", "{}"))
/// })?.id;
///
/// let file = queue.get(&id)?.payload::<WriteFiles>()?.files.remove(0);
/// assert_eq!((file.path.as_str(), file.size), ("a.txt", Some(5)));
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommittedFile {
    /// Below the root.
    pub path: String,
    /// sha256 of the new content; none if the file goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The size of the new content in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// What a completed commit leaves.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::handlers::WriteFiles;
/// let id = queue.commit(|tx| {
///     tx.write("a.txt", "hello")?;
///     tx.enqueue(jobq::NewJob::raw("send_mail", "{}"))
/// })?.id;
///
/// let written = queue.result::<WriteFiles>(&id)?.unwrap();
/// assert_eq!((written.files, written.jobs.len()), (1, 1));
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFiles {
    /// How many files were written or removed.
    pub files: usize,
    /// The jobs that were queued with them.
    pub jobs: Vec<CommittedJob>,
}

/// One job of a commit, as it was answered.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// let commit = queue.commit(|tx| tx.enqueue(jobq::NewJob::raw("send_mail", "{}")))?;
/// assert_eq!(commit.jobs[0].job_type, "send_mail");
/// assert_eq!(commit.jobs[0].outcome, jobq::EnqueueOutcome::Inserted);
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedJob {
    /// The job that stands for the request.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub job_type: String,
    /// `inserted`, or `existing` if its key was taken.
    pub outcome: crate::EnqueueOutcome,
}

impl Payload for WriteFiles {
    const TYPE: &'static str = "write_files";
    type Output = WrittenFiles;

    fn validate(&self) -> Result<()> {
        Err(Error::invalid(
            "type",
            "write_files jobs are made by a commit (`jobq commit`); their contents are in no payload",
        ))
    }
}
