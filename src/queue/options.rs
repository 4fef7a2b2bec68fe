//! Opening a queue.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Queue, QueuePaths};
use crate::clock::{Clock, SystemClock};
use crate::effects::{Act, Watch};
use crate::error::{Error, Result};
use crate::path_policy::FilePolicy;
use crate::payload::JobTypes;
use crate::program_handlers::ProgramHandlers;
use crate::site::Attach;
use crate::store::sqlite::{SqliteOptions, SqliteStore};

/// Where a queue is and what its process knows.
///
/// ```
/// use jobq::{JobTypes, QueueOptions};
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// let queue = QueueOptions::in_folder(folder).create(true).types(JobTypes::builtin()).open()?;
/// # Ok::<(), jobq::Error>(())
/// ```
pub struct QueueOptions {
    db: PathBuf,
    root: Option<PathBuf>,
    create: bool,
    recover: bool,
    own_root_only: bool,
    types: JobTypes,
    clock: Arc<dyn Clock>,
    busy_timeout: Duration,
    files: FilePolicy,
    watch: Option<Arc<Watch>>,
}

impl QueueOptions {
    /// The queue of a root folder: `<root>/.jobq/jobq.db`.
    pub fn in_folder(root: impl AsRef<Path>) -> Self {
        Self::at(root.as_ref().join(".jobq").join("jobq.db"))
    }

    /// The queue in this database file, which may be the application's own.
    pub fn at(db: impl Into<PathBuf>) -> Self {
        Self {
            db: db.into(),
            root: None,
            create: false,
            recover: true,
            own_root_only: false,
            types: JobTypes::builtin(),
            clock: Arc::new(SystemClock),
            busy_timeout: Duration::from_secs(5),
            files: FilePolicy::default(),
            watch: None,
        }
    }

    /// Make the database, or jobq's tables in it, if they are not there.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Whether opening first brings to its end what dead processes have accepted
    /// (see [`Queue::roll_forward`]). It does unless told not to, which is for
    /// those who only look.
    #[must_use]
    pub fn recover(mut self, recover: bool) -> Self {
        self.recover = recover;
        self
    }

    /// The folder jobs may touch, if it is not the one the database is in. The
    /// first one that is named, before there is a job, is put on record with the
    /// queue; who opens it without naming one gets that, and who names another is
    /// refused. Who only looks ([`recover`](Self::recover)) puts nothing on record.
    #[must_use]
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// The job types this process knows; the built-in ones unless said.
    #[must_use]
    pub fn types(mut self, types: JobTypes) -> Self {
        self.types = types;
        self
    }

    /// Where the time comes from.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// How long to wait for another process that is writing; 5 s unless said.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Which files jobs may change.
    #[must_use]
    pub fn files(mut self, policy: FilePolicy) -> Self {
        self.files = policy;
        self
    }

    /// Someone who hears of every change that a commit makes to files before it is
    /// made, and may forbid it.
    #[doc(hidden)]
    #[must_use]
    pub fn watched(mut self, watch: impl Fn(Act, &str) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        self.watch = Some(Arc::new(watch));
        self
    }

    /// Where the programs are that handle jobs of this queue, and their schemas:
    /// `.jobq/handlers`, or `.jobq/<name>.d/handlers` beside a database of another
    /// name or place.
    pub fn handlers_folder(&self) -> Result<PathBuf> {
        Ok(QueuePaths::of(self.db.clone(), false)?.handlers())
    }

    /// Refuses a recorded root other than the folder around `.jobq`. For a queue that was found and not named, because
    /// whoever prepared it chose that root.
    #[must_use]
    pub fn own_root_only(mut self) -> Self {
        self.own_root_only = true;
        self
    }

    /// Accepts a state folder that was copied or moved, and records it as the queue's own (see [`Attach`]). Returns
    /// false if this folder is recorded already.
    pub fn attach(self, how: Attach) -> Result<bool> {
        // A database of the application's own may have been copied without the folder beside it.
        let paths = QueuePaths::of(self.db.clone(), self.db.exists())?;
        let store = SqliteStore::open(SqliteOptions { state: None, ..self.store_options(&paths) })?;
        store.attach(paths.state, how)
    }

    fn store_options(&self, paths: &QueuePaths) -> SqliteOptions {
        SqliteOptions {
            path: paths.db.clone(),
            state: Some(paths.state.clone()),
            create: self.create,
            busy_timeout: self.busy_timeout,
            types: self.types.clone(),
            clock: self.clock.clone(),
        }
    }

    /// Opens the queue.
    pub fn open(mut self) -> Result<Queue> {
        if let Some((list, why)) = self.files.wrong_glob() {
            return Err(Error::invalid(list, why));
        }
        let paths = QueuePaths::of(self.db.clone(), self.create)?;
        // Whoever queues a job of a program's type judges it by its schema.
        if !self.types.has_more() {
            self.types = self.types.with_programs(&ProgramHandlers::in_folder(paths.handlers()));
        }
        self.files.command_words.extend(self.types.command_words());
        let store = SqliteStore::open(self.store_options(&paths))?;
        let (root, name) = paths.root(self.root.as_deref(), self.own_root_only, &store)?;
        store.goes_by(&name, &paths.home);
        // Who only looks changes nothing.
        if self.create || self.recover {
            store.expect_own_folder()?;
            store.record_root()?;
        }
        let QueuePaths { db, state, .. } = paths;
        let ids = Mutex::new(ulid::Generator::new());
        let (types, clock, committer) = (self.types, self.clock, Mutex::default());
        let queue = Queue {
            store,
            types,
            clock,
            db,
            state,
            root,
            policy: Arc::new(self.files),
            ids,
            committer,
            watch: self.watch,
            #[cfg(feature = "tokio")]
            callers: super::async_calls::Callers::default(),
        };
        // What cannot be applied stays visible; whoever opens goes on.
        if self.recover
            && let Err(error) = queue.roll_forward()
        {
            tracing::warn!(%error, "what other processes have left could not be brought to its end");
        }
        Ok(queue)
    }
}
