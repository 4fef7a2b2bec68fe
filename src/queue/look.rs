//! What there is to see. Nothing here changes anything.

use std::time::{Duration, Instant};

use super::Queue;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::liveness;
use crate::payload::Payload;
use crate::state::Status;
use crate::store::{Event, EventQuery, Filter, HeldLease, Recent, RecentQuery, Stats, Store as _, Stuck};

impl Queue {
    /// One job.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// let id = queue.enqueue(jobq::NewJob::raw("send_mail", "{}"))?.id;
    /// assert_eq!(queue.get(&id)?.job_type, "send_mail");
    /// assert!(queue.get("no such job").unwrap_err().is_not_found());
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn get(&self, id: &str) -> Result<Job> {
        self.store.get(id)
    }

    /// The id that starts with this, if there is exactly one.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// let id = queue.enqueue(jobq::NewJob::raw("send_mail", "{}"))?.id;
    /// assert_eq!(queue.resolve(&id[..20])?, id);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn resolve(&self, prefix: &str) -> Result<String> {
        self.store.resolve(prefix)
    }

    /// What a completed job left; `None` while it has not completed.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = std::sync::Arc::new(jobq::Queue::init(folder.path())?);
    /// # let drain = || {
    /// #     let options = jobq::WorkerOptions { drain: true, ..Default::default() };
    /// #     jobq::Worker::new(queue.clone(), jobq::Registry::builtin(), options)?.run(&jobq::Shutdown::new())
    /// # };
    /// use jobq::handlers::CreateFile;
    /// let id = queue.enqueue(CreateFile::text("a.txt", "hello"))?.id;
    /// assert!(queue.result::<CreateFile>(&id)?.is_none());
    /// drain()?; // a worker runs what there is
    /// assert_eq!(queue.result::<CreateFile>(&id)?.unwrap().size, 5);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn result<P: Payload>(&self, id: &str) -> Result<Option<P::Output>> {
        let job = self.store.get(id)?;
        if job.job_type != P::TYPE {
            return Err(Error::invalid("type", format_args!("job {id} is a {}, not a {}", job.job_type, P::TYPE)));
        }
        match (job.status, job.result) {
            (Status::Completed, Some(text)) => text.parse().map(Some),
            // Nothing was left: that is a result too, if the type says so.
            (Status::Completed, None) => crate::JsonText("null".to_owned()).parse().map(Some),
            _ => Ok(None),
        }
    }

    /// Jobs, newest first. To page on, pass the last `seq` seen as `before`.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// use jobq::{Filter, NewJob, Status};
    /// queue.enqueue(NewJob::raw("send_mail", "{}"))?;
    /// let pending = Filter { status: Some(Status::Pending), ..Filter::default() };
    /// let page = queue.list(&pending)?;
    /// assert_eq!(page.len(), 1);
    /// let next = queue.list(&Filter { before: Some(page[0].seq), ..pending })?;
    /// assert!(next.is_empty());
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn list(&self, filter: &Filter) -> Result<Vec<Job>> {
        self.store.list(filter)
    }

    /// Waits until a job has completed, failed or been cancelled. `None` when
    /// the time ran out first.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = std::sync::Arc::new(jobq::Queue::init(folder.path())?);
    /// # let drain = || {
    /// #     let options = jobq::WorkerOptions { drain: true, ..Default::default() };
    /// #     jobq::Worker::new(queue.clone(), jobq::Registry::builtin(), options)?.run(&jobq::Shutdown::new())
    /// # };
    /// use std::time::Duration;
    /// use jobq::{Status, handlers::CreateFile};
    /// let id = queue.enqueue(CreateFile::text("a.txt", "a"))?.id;
    /// assert!(queue.wait(&id, Duration::ZERO)?.is_none());
    /// drain()?; // usually another process
    /// assert_eq!(queue.wait(&id, Duration::from_secs(10))?.unwrap().status, Status::Completed);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn wait(&self, id: &str, timeout: Duration) -> Result<Option<Job>> {
        let deadline = Instant::now().checked_add(timeout);
        let mut pause = Duration::from_millis(1);
        loop {
            let job = self.store.get(id)?;
            if job.status.is_finished() {
                return Ok(Some(job));
            }
            // Nobody would bring the job to its end in a database that only this process sees.
            self.still_there()?;
            let left = deadline.map_or(Duration::MAX, |d| d.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(None);
            }
            sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Events, oldest first.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// use jobq::{EventQuery, NewJob};
    /// let id = queue.enqueue(NewJob::raw("send_mail", "{}"))?.id;
    /// queue.cancel(&id)?;
    /// let events = queue.events(&EventQuery { job_id: Some(id), limit: 100, ..EventQuery::default() })?;
    /// let what: Vec<&str> = events.iter().map(|event| event.event_type.as_str()).collect();
    /// assert_eq!(what.last(), Some(&"cancelled"));
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn events(&self, query: &EventQuery) -> Result<Vec<Event>> {
        self.store.events(query)
    }

    /// What is outstanding, failed, stuck, slow, doubled and recent. Stuck is also what
    /// [`lost`](Self::lost) tells.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// queue.enqueue(jobq::NewJob::raw("send_mail", "{}"))?;
    /// let stats = queue.stats()?;
    /// assert_eq!((stats.outstanding[0].job_type.as_str(), stats.outstanding[0].jobs), ("send_mail", 1));
    /// assert!(stats.failed.is_empty() && stats.stuck.is_empty());
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn stats(&self) -> Result<Stats> {
        let mut stats = self.store.stats()?;
        for lost in self.lost()? {
            if stats.stuck.iter().any(|stuck| stuck.id == lost.lease.id) {
                continue;
            }
            match self.store.get(&lost.lease.id) {
                Ok(job) if job.locked_by.as_ref() == Some(&lost.locked_by) => stats.stuck.push(Stuck::of(job)),
                // Somebody has taken it back since.
                Ok(_) => {}
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(stats)
    }

    /// What has ended lately: a rate, and the newest failures. Cheap, however many
    /// finished jobs are kept.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// use jobq::{NewJob, RecentQuery};
    /// let job = queue.enqueue(NewJob::raw("send_mail", "{}"))?;
    /// queue.cancel(&job.id)?;
    /// let recent = queue.recent(&RecentQuery { since: 0, failures: 10 })?;
    /// assert_eq!((recent.ended[0].jobs, recent.failures.len()), (1, 0));
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn recent(&self, query: &RecentQuery) -> Result<Recent> {
        self.store.recent(query)
    }

    /// Claims whose process is gone: any worker, or [`reclaim`](Self::reclaim), takes
    /// them back. Only looks.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// use jobq::handlers::CreateFile;
    /// use jobq::liveness::OwnerLock;
    /// use jobq::store::{ClaimRequest, Limits, Store};
    /// let id = queue.enqueue(CreateFile::text("a.txt", "a"))?.id;
    /// let lock = OwnerLock::acquire(&queue.owners_folder())?;
    /// let types = vec!["create_file".to_owned()];
    /// queue.store().claim(ClaimRequest { owner: lock.owner().clone(), types, limit: 1, limits: Limits::new() })?;
    /// assert!(queue.lost()?.is_empty(), "it lives");
    /// drop(lock);
    /// assert_eq!(queue.lost()?[0].lease.id, id);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn lost(&self) -> Result<Vec<HeldLease>> {
        liveness::lost(&self.store, &self.owners_folder())
    }

    /// Whether the database is still the file that was opened. One that is deleted, replaced or
    /// moved away meanwhile, as when a backup is put in its place, could be used for ever, with
    /// nobody else to see it: an error of kind [`NoDatabase`](crate::ErrorKind::NoDatabase). What cannot be
    /// found out is taken to be so. It takes no longer than to ask for a file's size.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// use jobq::ErrorKind;
    /// queue.still_there()?;
    /// std::fs::rename(queue.database(), folder.path().join("elsewhere")).unwrap();
    /// assert_eq!(queue.still_there().unwrap_err().kind(), ErrorKind::NoDatabase);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn still_there(&self) -> Result<()> {
        self.store.still_there()
    }
}

#[cfg(not(all(feature = "testing", feature = "tokio")))]
use std::thread::sleep;

/// In an application's test the job may wait for a clock, which a call that is at work would stop.
#[cfg(all(feature = "testing", feature = "tokio"))]
fn sleep(time: Duration) {
    crate::testing::asleep(|| std::thread::sleep(time));
}
