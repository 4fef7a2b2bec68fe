//! What an operator does to jobs that are there.

use super::Queue;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::liveness;
use crate::state::Status;
use crate::store::{AcceptedPath, Cancellation, PruneRequest, Reclaimed, Store as _};

impl Queue {
    /// Calls a job off, and what waits on it. One that is running is asked to stop,
    /// unless its process is gone: then it ends here.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// use jobq::{NewJob, Status};
    /// let first = queue.enqueue(NewJob::raw("build", "{}"))?.id;
    /// let second = queue.enqueue(NewJob::raw("publish", "{}").after(&first))?.id;
    /// queue.cancel(&first)?;
    /// assert_eq!(queue.get(&second)?.status, Status::Cancelled);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn cancel(&self, id: &str) -> Result<Cancellation> {
        liveness::take_back(&self.store, &self.owners_folder(), id)?;
        self.store.cancel(id)
    }

    /// Brings a failed or cancelled job back. One that had decided what to do is
    /// not run again: that is applied, at once.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// use jobq::{NewJob, Status};
    /// let id = queue.enqueue(NewJob::raw("send_mail", "{}"))?.id;
    /// queue.cancel(&id)?;
    /// assert_eq!(queue.retry(&id)?.status, Status::Pending);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn retry(&self, id: &str) -> Result<Job> {
        self.retry_on(id, Vec::new())
    }

    /// The same for a decided job that failed by a conflict: applied on top of
    /// what is there now, whatever it is.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = std::sync::Arc::new(jobq::Queue::init(folder.path())?);
    /// # let drain = || {
    /// #     let options = jobq::WorkerOptions { drain: true, ..Default::default() };
    /// #     jobq::Worker::new(queue.clone(), jobq::Registry::builtin(), options)?.run(&jobq::Shutdown::new())
    /// # };
    /// use jobq::{Status, handlers::CreateFile};
    /// let id = queue.enqueue(CreateFile::text("a.txt", "a"))?.id;
    /// drain()?;
    /// // Only what failed by a conflict can be brought to its end so.
    /// assert!(queue.retry_accepting_disk(&id).unwrap_err().is_wrong_state());
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn retry_accepting_disk(&self, id: &str) -> Result<Job> {
        let mut accepted = Vec::new();
        let files = self.files()?;
        for effect in self.store.planned(id)? {
            let (precondition, observed) = files.look(&effect.path)?.into_precondition();
            accepted.push(AcceptedPath { path: effect.path, precondition, observed });
        }
        // Retried as any other, it would look as if a conflict had been settled.
        if accepted.is_empty() && matches!(self.store.get(id)?.status, Status::Failed | Status::Cancelled) {
            let text =
                "has decided nothing about the disk that could be in conflict with it; retry it without --accept-disk";
            return Err(Error::wrong_state(format!("job {id} {text}")));
        }
        self.retry_on(id, accepted)
    }

    fn retry_on(&self, id: &str, accepted: Vec<AcceptedPath>) -> Result<Job> {
        let job = self.store.retry_on(id, accepted)?;
        if job.status != Status::Claimed {
            return Ok(job);
        }
        self.roll_forward()?;
        self.store.get(id)
    }

    /// Deletes a bounded number of old finished jobs; call it until it says 0.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// use std::time::{Duration, SystemTime};
    /// use jobq::{NewJob, PruneRequest, clock::millis};
    /// let id = queue.enqueue(NewJob::raw("send_mail", "{}"))?.id;
    /// queue.cancel(&id)?;
    /// let tomorrow = millis(SystemTime::now() + Duration::from_secs(86_400));
    /// let old = PruneRequest { job_type: None, ended_before: tomorrow, failed: false, forget: false };
    /// let mut gone = 0;
    /// loop {
    ///     match queue.prune(old.clone())? {
    ///         0 => break,
    ///         some => gone += some,
    ///     }
    /// }
    /// assert_eq!(gone, 1);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn prune(&self, request: PruneRequest) -> Result<u64> {
        self.store.prune(request)
    }

    /// Ends the pause of a type that a handler has asked for, before its time.
    /// False if there was none.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// assert!(!queue.resume("send_mail")?, "it was not paused");
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn resume(&self, job_type: &str) -> Result<bool> {
        self.store.resume(job_type)
    }

    /// Takes back what dead processes had claimed.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// let taken_back = queue.reclaim()?;
    /// assert!(taken_back.pending.is_empty(), "nobody has died");
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn reclaim(&self) -> Result<Reclaimed> {
        liveness::sweep(&self.store, &self.owners_folder())
    }
}
