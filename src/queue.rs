//! What applications call.
//!
//! ```text
//! options, paths  opening it, and where its files are
//! look            jobs, events, answers to questions
//! operate         cancel, retry, prune, reclaim
//! async_calls     the same without blocking a runtime
//! ```

#[cfg(feature = "tokio")]
mod async_calls;
mod look;
mod operate;
mod options;
mod paths;
#[cfg(feature = "tokio")]
mod threads;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub use self::options::QueueOptions;
pub(crate) use self::paths::QueuePaths;
use crate::clock::{Clock, Millis};
use crate::commit::Committer;
use crate::effects::{Files, Watch};
use crate::error::{Error, ErrorKind, Result, printable};
use crate::handlers;
use crate::new_job::NewJob;
use crate::path_policy::FilePolicy;
use crate::payload::JobTypes;
use crate::store::sqlite::SqliteStore;
use crate::store::{EnqueueJob, Enqueued, Store as _};

/// A queue of jobs. Cheap to share between threads by reference or `Arc`; calls
/// from many threads are made durable together.
pub struct Queue {
    store: SqliteStore,
    types: JobTypes,
    clock: Arc<dyn Clock>,
    db: PathBuf,
    state: PathBuf,
    root: PathBuf,
    /// Which files jobs may change.
    pub(crate) policy: Arc<FilePolicy>,
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
        let files = Files::open_to_look(&self.root, &self.state).and_then(|files| files.protecting(&self.db));
        // Where the project was moved away all files would seem to be missing, and so they would from another root.
        // Asked last: it may have been just now.
        self.still_there()?;
        self.store.expect_root()?;
        files
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
        job.time().into_iter().for_each(|time| self.clock.told_of(time));
        let job = job.prepare(&self.types, self.clock.now(), || self.new_id())?;
        if handlers::changes_what_it_holds(&job.job_type) {
            for path in job.holds.iter().filter_map(|hold| hold.strip_prefix("path:")) {
                self.policy
                    .check(&self.root, path)
                    .map_err(|why| Error::invalid("path", format_args!("{}: {why}", printable(path))))?;
            }
        }
        Ok(job)
    }

    pub(crate) fn new_id(&self) -> String {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        // The generator only refuses after 2⁸⁰ ids in one millisecond.
        ids.generate().unwrap_or_else(|_| ulid::Ulid::generate()).to_string()
    }
}
