//! What applications call.

#[cfg(feature = "tokio")]
mod async_calls;
mod options;
mod place;
#[cfg(feature = "tokio")]
mod threads;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use self::options::QueueOptions;
pub(crate) use self::place::Place;
use crate::clock::{Clock, Millis};
use crate::commit::Committer;
use crate::effects::{Files, Watch};
use crate::error::{Error, ErrorKind, Result};
use crate::job::Job;
use crate::liveness;
use crate::new_job::NewJob;
use crate::payload::{JobTypes, Payload};
use crate::state::Status;
use crate::store::sqlite::SqliteStore;
use crate::store::{
    AcceptedPath, Cancellation, EnqueueJob, Enqueued, Event, EventQuery, Filter, PruneRequest, Recent, RecentQuery,
    Reclaimed, Stats, Store,
};

/// A queue of jobs. Cheap to share between threads by reference or `Arc`; calls
/// from many threads are made durable together.
pub struct Queue {
    store: SqliteStore,
    types: JobTypes,
    clock: Arc<dyn Clock>,
    db: PathBuf,
    state: PathBuf,
    root: PathBuf,
    // Ids of one process grow, which keeps their index dense.
    ids: Mutex<ulid::Generator>,
    /// This process as one that commits, once it has.
    committer: Mutex<Option<Arc<Committer>>>,
    watch: Option<Arc<Watch>>,
    #[cfg(feature = "tokio")]
    callers: async_calls::Callers,
}

impl Drop for Queue {
    fn drop(&mut self) {
        if let Some(committer) = self.known_committer() {
            committer.sign_off(self);
        }
    }
}

impl Queue {
    /// Opens the queue of a root folder, making it if it is not there.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// let queue = jobq::Queue::init(folder.path())?;
    /// assert!(folder.path().join(".jobq/jobq.db").exists());
    /// # drop(queue);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn init(root: impl AsRef<Path>) -> Result<Self> {
        QueueOptions::in_folder(root).create(true).open()
    }

    /// Opens the queue of a root folder.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// use jobq::{ErrorKind, Queue};
    /// let queue = Queue::open(folder.path())?;
    /// let elsewhere = tempfile::tempdir().unwrap();
    /// assert_eq!(Queue::open(elsewhere.path()).err().unwrap().kind(), ErrorKind::NoDatabase);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        QueueOptions::in_folder(root).open()
    }

    /// Queues a job: durable when this returns, or not accepted.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// use jobq::{EnqueueOutcome, NewJob};
    /// let mail = || NewJob::raw("send_mail", r#"{"to":"ada@example.org"}"#);
    /// let first = queue.enqueue(mail())?;
    /// let again = queue.enqueue(mail())?;
    /// assert_eq!(again.outcome, EnqueueOutcome::Existing);
    /// assert_eq!(again.id, first.id);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn enqueue(&self, job: impl Into<NewJob>) -> Result<Enqueued> {
        let job = self.prepare(job.into())?;
        let mut answers = self.store.enqueue(vec![job])?;
        answers.pop().ok_or_else(|| Error::new(ErrorKind::Internal, "an enqueue was answered without an answer"))
    }

    /// Queues jobs in one transaction: all of them or none.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// use jobq::NewJob;
    /// let mail = |to: &str| NewJob::raw("send_mail", format!(r#"{{"to":"{to}"}}"#));
    /// let jobs = queue.enqueue_many([mail("ada@example.org"), mail("bob@example.org")])?;
    /// assert_eq!(jobs.len(), 2);
    /// // The one that is wrong is named, and none is queued.
    /// let error = queue.enqueue_many([mail("eve@example.org"), NewJob::raw("send_mail", "no JSON")]).unwrap_err();
    /// assert_eq!(error.item(), Some(1));
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn enqueue_many(&self, jobs: impl IntoIterator<Item = NewJob>) -> Result<Vec<Enqueued>> {
        self.store.enqueue(self.prepare_many(jobs)?)
    }

    /// Queues a job on the caller's own transaction, for applications whose
    /// model is in the same SQLite database. It is accepted when that commits.
    ///
    /// ```
    /// # use jobq::{NewJob, QueueOptions};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("app.db");
    /// let queue = QueueOptions::at(&path).create(true).open()?;
    /// let mut app = rusqlite::Connection::open(&path).unwrap();
    /// let tx = app.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    /// // … the application's own statements …
    /// let job = queue.enqueue_in(&tx, NewJob::raw("send_mail", "{}"))?;
    /// tx.commit().unwrap();
    /// assert_eq!(queue.get(&job.id)?.job_type, "send_mail");
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn enqueue_in(&self, transaction: &rusqlite::Transaction<'_>, job: impl Into<NewJob>) -> Result<Enqueued> {
        let job = self.prepare(job.into())?;
        let mut answers = self.store.enqueue_in(transaction, &[job])?;
        answers.pop().ok_or_else(|| Error::new(ErrorKind::Internal, "an enqueue was answered without an answer"))
    }

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

    /// Calls a job off, and what waits on it.
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
            let left = deadline.map_or(Duration::MAX, |d| d.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(pause.min(left));
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

    /// What is outstanding, failed, stuck, slow, doubled and recent.
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
        self.store.stats()
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

    /// Where processes that claim keep their lock files.
    #[must_use]
    pub fn owners_folder(&self) -> PathBuf {
        self.state.join("owners")
    }

    /// The folder jobs may touch.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of what jobq keeps beside the database: `.jobq`, or
    /// `.jobq/<name>.d` beside a database of another name or place.
    #[must_use]
    pub fn state_folder(&self) -> &Path {
        &self.state
    }

    /// The database file.
    #[must_use]
    pub fn database(&self) -> &Path {
        &self.db
    }

    /// The types this process knows.
    #[must_use]
    pub fn types(&self) -> &JobTypes {
        &self.types
    }

    /// The store underneath, for those who run jobs.
    #[must_use]
    pub fn store(&self) -> &SqliteStore {
        &self.store
    }

    /// Files below the root, to look at. Nothing is made for that.
    pub(crate) fn files(&self) -> Result<Files> {
        // Where the project was moved away all files would seem to be missing.
        if !self.db.exists() {
            return Err(Error::new(ErrorKind::NoDatabase, format!("{} is no longer there", self.db.display())));
        }
        Files::open_to_look(&self.root, &self.state)?.protecting(&self.db)
    }

    /// This process as one that commits.
    pub(crate) fn committer(&self) -> Result<Arc<Committer>> {
        let mut committer = self.committer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(committer) = &*committer {
            return Ok(Arc::clone(committer));
        }
        Ok(Arc::clone(committer.insert(Arc::new(Committer::new(self)?))))
    }

    /// Who hears of what commits do to files.
    pub(crate) fn watch(&self) -> Option<Arc<Watch>> {
        self.watch.clone()
    }

    pub(crate) fn known_committer(&self) -> Option<Arc<Committer>> {
        self.committer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The time, as this queue's clock has it.
    pub(crate) fn now(&self) -> Millis {
        self.clock.now()
    }

    /// Jobs with every check done that needs no database; the one that fails is
    /// named by its number.
    pub(crate) fn prepare_many(&self, jobs: impl IntoIterator<Item = NewJob>) -> Result<Vec<EnqueueJob>> {
        let numbered = jobs.into_iter().enumerate();
        numbered.map(|(i, job)| self.prepare(job).map_err(|e| e.in_item(i))).collect()
    }

    pub(crate) fn prepare(&self, job: NewJob) -> Result<EnqueueJob> {
        job.prepare(&self.types, self.clock.now(), || self.new_id())
    }

    pub(crate) fn new_id(&self) -> String {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        // The generator only refuses after 2⁸⁰ ids in one millisecond.
        ids.generate().unwrap_or_else(|_| ulid::Ulid::generate()).to_string()
    }
}
