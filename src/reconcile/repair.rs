//! Putting back what a job left: an explicit act of the operator.

use serde::Serialize;

use super::{Actual, Difference, Finding};
use crate::error::Result;
use crate::handlers::{CreateFile, DeleteFile};
use crate::json::sha256_hex;
use crate::new_job::NewJob;
use crate::payload::Payload as _;
use crate::queue::Queue;
use crate::store::{RepairJob, Requeued, Store as _};

/// What can be done about a difference.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// queue.commit(|tx| tx.write("a.txt", "a"))?;
/// std::fs::remove_file(folder.path().join("a.txt")).unwrap();
/// let mut repairs = Vec::new();
/// queue.reconcile(&jobq::ReconcileOptions::default(), |difference, _| {
///     repairs.extend(difference.map(|difference| queue.repair(difference)));
///     true
/// })?;
/// // What a commit wrote is in no payload, so nobody can write it again.
/// let repair = repairs.remove(0)?;
/// assert!(repair.job_id.is_none() && repair.reason.is_some());
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// The path that is to be as it was.
    pub path: String,
    /// The job that will see to it; `None` if nothing can be done.
    pub job_id: Option<String>,
    /// Why nothing can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Queue {
    /// Queues a job that makes a path again what it was left as, if that is still
    /// known: a file is written over, or removed. What a job's payload does not
    /// hold (a commit's contents, an answer of Claude) is known no more.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = std::sync::Arc::new(jobq::Queue::init(folder.path())?);
    /// # let drain = || {
    /// #     let options = jobq::WorkerOptions { drain: true, ..Default::default() };
    /// #     jobq::Worker::new(queue.clone(), jobq::Registry::builtin(), options)?.run(&jobq::Shutdown::new())
    /// # };
    /// use jobq::{ReconcileOptions, handlers::CreateFile};
    /// queue.enqueue(CreateFile::text("a.txt", "a"))?;
    /// drain()?;
    /// std::fs::remove_file(folder.path().join("a.txt")).unwrap();
    /// let mut found = Vec::new();
    /// queue.reconcile(&ReconcileOptions::default(), |difference, _| {
    ///     found.extend(difference.cloned());
    ///     true
    /// })?;
    /// let repair = queue.repair(&found[0])?;
    /// assert!(repair.job_id.is_some());
    /// drain()?;
    /// assert!(folder.path().join("a.txt").exists());
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn repair(&self, difference: &Difference) -> Result<Repair> {
        let path = difference.path.clone();
        let unable = |reason: &str| Ok(Repair { path: path.clone(), job_id: None, reason: Some(reason.to_owned()) });
        if let Some(job) = &difference.in_flight {
            return unable(&format!("job {job} is at work on it"));
        }
        // Where nothing should be, too, only a file is removed.
        if difference.finding == Finding::NotAFile
            || (difference.finding == Finding::Present && !matches!(difference.actual, Actual::Content(_)))
        {
            return unable("something that is no regular file, or cannot be read, is in the way; remove it first");
        }
        let job: NewJob = match &difference.expected {
            None => DeleteFile::at(&path).into(),
            Some(sha256) => match self.content_of(&difference.job_id, sha256)? {
                Some(job) => job,
                None => return unable("its content is not kept; queue what made it again"),
            },
        };
        let job = match self.prepare(job) {
            // Jobs may have been allowed to change this path when it was written.
            Err(error) if error.is_invalid() => return unable(error.message()),
            job => job?,
        };
        let left_by = difference.job_id.clone();
        match self.store().repair(RepairJob { job, path: path.clone(), left_by })? {
            Requeued::Queued(queued) => Ok(Repair { path, job_id: Some(queued.id), reason: None }),
            Requeued::Overtaken { by: Some(job) } => unable(&format!("job {job} has come after what was found")),
            Requeued::Overtaken { by: None } => unable("nothing is known of it any more"),
        }
    }

    /// The file as its job was asked to make it, if the job is still there.
    fn content_of(&self, job_id: &str, sha256: &str) -> Result<Option<NewJob>> {
        let job = match self.get(job_id) {
            Ok(job) => job,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        if job.job_type != CreateFile::TYPE {
            return Ok(None);
        }
        let mut payload: CreateFile = job.payload()?;
        payload.overwrite = true;
        let same = payload.clone().into_content().is_ok_and(|bytes| sha256_hex(&bytes) == sha256);
        Ok(same.then(|| payload.into()))
    }
}
