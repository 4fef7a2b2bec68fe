//! The SQLite store: one file per verb, one writer, many readers.
//!
//! ```text
//! connection  opening, pragmas, SQLite's errors in our words
//! log_writes  a COMMIT's pages in one call
//! opened_file whether the path still leads to what was opened
//! schema      version, creation, migrations
//! writer      group commit: one transaction, one fsync for all who wait
//! tx, row     what every verb works with; rows as values
//! gates       why a pending job is not running, and what opens
//! pauses, limits   why one that could run is not claimed, although it is ready
//! aside       damaged rows that would stop others
//! lease       the token check, and the one way a claimed job ends
//! health      the database as `doctor` sees it
//! enqueue … prune   the verbs
//! ```

mod admit;
mod apply;
mod aside;
mod attach;
mod cancel;
mod claim;
mod commit;
mod complete;
mod completed;
mod connection;
mod costs;
mod decide;
mod enqueue;
mod events;
mod expected;
mod fail;
mod gates;
mod hasten;
mod health;
mod heartbeat;
mod lease;
mod limits;
mod log_writes;
mod opened_file;
mod outlook;
mod owners;
mod pauses;
mod plans;
mod prune;
mod query;
mod readers;
mod recent;
mod reclaim;
mod release;
mod reschedule;
mod retry;
mod row;
mod schema;
mod settle;
mod stats;
mod tx;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) use connection::MOST_LOG;
pub(crate) use health::{Health, is_trustworthy, log_index_of, log_of};
pub use plans::hot_statements;
pub use schema::SCHEMA_VERSION;

use self::aside::Aside;
use self::connection::Role;
use self::opened_file::OpenedFile;
use self::readers::Readers;
use self::schema::OwnRoot;
use self::tx::{Context, Tx};
use self::writer::{Guard, Writer};
use super::{
    AcceptedPath, Beat, Cancellation, ClaimRequest, ClaimedJob, Commit, Committed, CompletedJob, CompletedQuery,
    Confirmation, EndedAt, EnqueueJob, Enqueued, Event, EventQuery, ExpectedFile, ExpectedPage, ExpectedQuery, Filter,
    HeldLease, Lease, Limits, Outlook, Owner, PathEffect, PlannedEffect, PruneEvents, PruneRequest, Pulse, Recent,
    RecentQuery, Reclaim, Reclaimed, RepairJob, Requeued, Settled, Stats, Step, Store, Suspicion,
};
use crate::clock::{Clock, SystemClock};
use crate::error::{Error, ErrorKind, Result};
use crate::job::Job;
use crate::payload::JobTypes;
use crate::site::{self, Attach};

/// How to open a database.
pub struct SqliteOptions {
    /// The file.
    pub path: PathBuf,
    /// Make jobq's tables if they are not there.
    pub create: bool,
    /// How long to wait for another process that is writing.
    pub busy_timeout: Duration,
    /// The types this process knows.
    pub types: JobTypes,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// The queue's state folder: its file `wake` is opened and closed after every COMMIT, to wake other processes.
    /// Writes are refused if the queue was made in another folder.
    pub state: Option<PathBuf>,
}

impl SqliteOptions {
    /// The defaults: an existing database, five seconds of patience, the built-in types.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            create: false,
            busy_timeout: Duration::from_secs(5),
            types: JobTypes::builtin(),
            clock: Arc::new(SystemClock),
            state: None,
        }
    }
}

/// Jobs in a SQLite database.
pub struct SqliteStore {
    root: Option<String>,
    guard: Arc<Guard>,
    // Before the writer: the last connection to close brings the log into the database.
    readers: Arc<Readers>,
    writer: Writer,
    aside: Aside,
}

impl SqliteStore {
    /// Opens a database, migrating an older one. A newer one, or one that is
    /// not ours, is refused and left as it was.
    pub fn open(options: SqliteOptions) -> Result<Self> {
        let SqliteOptions { path, create, busy_timeout, types, clock, state } = options;
        if !create && !path.exists() {
            return Err(Error::new(
                ErrorKind::NoDatabase,
                format!("no database at {}; `jobq init` makes one", path.display()),
            ));
        }
        // So that the process may change its folder.
        let path = std::path::absolute(&path)
            .map_err(|e| Error::new(ErrorKind::Io, format!("cannot tell where {} is: {e}", path.display())))?;
        let (conn, file) = OpenedFile::opening(&path, || connection::open(&path, Role::Writer, create, busy_timeout))?;
        let at = |e: Error| connection::unopened(e, &path).context(format_args!("database {}", path.display()));
        let moved = prepare(&conn, &path, create, state.as_deref(), busy_timeout).map_err(at)?;
        let root = schema::root(&conn).map_err(at)?;
        let readers = Arc::new(Readers::new(path.clone(), file.clone(), busy_timeout));
        let (reopen_path, opened, beside) = (path.clone(), file.clone(), Arc::downgrade(&readers));
        let reopen = move |all: bool| {
            if let Some(readers) = beside.upgrade().filter(|_| all) {
                readers.forget();
            }
            let conn = opened.once_more(|| connection::open(&reopen_path, Role::Writer, false, busy_timeout))?;
            connection::settle(&conn, busy_timeout)?;
            Ok(conn)
        };
        let guard = Arc::new(Guard { file, root: OnceLock::new(), moved });
        let wake = state.map(|state| state.join("wake"));
        Ok(Self {
            writer: Writer::new(conn, Box::new(reopen), Context { clock, types }, wake.as_deref())
                .guarding(Arc::clone(&guard))
                .bounding(log_of(&path), MOST_LOG, writer::log::LOOK),
            root,
            guard,
            readers,
            aside: Aside::default(),
        })
    }

    /// The job in this row, if that can be read.
    fn id_of(&self, seq: i64) -> Option<String> {
        self.readers.read(|conn| query::id_of(conn, seq)).ok().flatten()
    }

    /// Refuses a state folder in which the queue was not made, as every write does.
    pub fn expect_own_folder(&self) -> Result<()> {
        self.guard.expect_own_folder()
    }

    /// Records `state` as the folder of the queue; false if it is recorded already.
    pub(crate) fn attach(&self, state: PathBuf, how: Attach) -> Result<bool> {
        self.writer.write("attach", move |tx| attach::attach(tx, &state, how))
    }

    /// Whether the path still leads to the file that was opened.
    pub(crate) fn still_there(&self) -> Result<()> {
        self.guard.file.check()
    }

    /// Whether the schema is still the one that this was built for, and the root the one that this goes by.
    pub(crate) fn expect_the_same(&self) -> Result<()> {
        self.readers.read(|conn| schema::expect_current(conn).map(drop))?;
        self.expect_root()
    }

    /// The folder jobs may touch, if one is on record: relative to where it would
    /// be without, or absolute. As it was when the store was opened.
    #[must_use]
    pub fn root(&self) -> Option<&str> {
        self.root.as_deref()
    }

    /// What is on record by now, and whether jobs were accepted, for which another root would come too late.
    pub fn root_and_use(&self) -> Result<(Option<String>, bool)> {
        self.readers.read(|conn| Ok((schema::root(conn)?, schema::is_used(conn)?)))
    }

    /// The folder that jobs may touch, as this process has it, in the words of [`root`](Self::root) and empty where none
    /// needs to be on record. The first to change something puts it there; after that, whoever goes by another one is
    /// refused. `home`: what a relative one is relative to. Said once, before anything is changed.
    pub fn goes_by(&self, root: &str, home: &Path) {
        let _ = self.guard.root.set(OwnRoot { name: root.to_owned(), home: home.to_owned() });
    }

    /// Puts that folder on record, if it needs to be and was not there when the store was opened.
    pub fn record_root(&self) -> Result<()> {
        let own = self.guard.root.get().map_or("", |own| &own.name);
        if own == self.root().unwrap_or_default() { Ok(()) } else { self.writer.write("root", |_| Ok(())) }
    }

    /// Whether that folder is still the one. Another process may have come first.
    pub fn expect_root(&self) -> Result<()> {
        let Some(own) = self.guard.root.get() else { return Ok(()) };
        self.readers.read(|conn| schema::expect_root(conn, own, schema::root(conn)?.as_deref()))
    }

    /// Queues jobs on the caller's own transaction: they are accepted when it
    /// commits, and its durability is the caller's. jobq's tables must be in
    /// that connection's main database, because transactions over attached
    /// files are not atomic in WAL mode.
    pub fn enqueue_in(&self, transaction: &rusqlite::Transaction<'_>, jobs: &[EnqueueJob]) -> Result<Vec<Enqueued>> {
        let found = schema::version(transaction)?.ok_or_else(|| {
            Error::new(
                ErrorKind::NoDatabase,
                "jobq's tables are not in the main database of this connection; attached ones cannot be used",
            )
        })?;
        if found != SCHEMA_VERSION {
            schema::refuse_newer(found)?;
            return Err(Error::new(
                ErrorKind::Schema,
                format!("the database has schema version {found}; open it with jobq once to migrate it"),
            ));
        }
        schema::refuse_shadowed(transaction)?;
        self.guard.file.check_main_of(transaction)?;
        self.guard.check(transaction, schema::root(transaction)?.as_deref())?;
        let tx = Tx::new(transaction, self.writer.context());
        tx.atomically(|| enqueue::enqueue(&tx, jobs))
    }
}

/// Checks that the database is jobq's, creates or migrates its tables, and sets what durability needs. Returns the state
/// folder if it is not the one in which the queue was made.
fn prepare(
    conn: &rusqlite::Connection,
    path: &Path,
    create: bool,
    state: Option<&Path>,
    patience: Duration,
) -> Result<Option<PathBuf>> {
    match schema::version(conn)? {
        Some(found) => {
            schema::refuse_newer(found)?;
            let recorded = schema::site(conn)?;
            let moved = state.filter(|state| recorded.is_none() || site::identity(state) != recorded);
            if let Some(state) = moved {
                // Readers need the current schema.
                return if found < SCHEMA_VERSION { Err(site::moved(state)) } else { Ok(Some(state.to_owned())) };
            }
            connection::settle(conn, patience)?;
            if found < SCHEMA_VERSION {
                schema::migrate(conn)?;
            }
        }
        None if create => {
            connection::settle(conn, patience)?;
            schema::create(conn, state)?;
        }
        None => {
            schema::refuse_foreign(conn)?;
            return Err(Error::new(
                ErrorKind::NoDatabase,
                format!("this is a database without jobq's tables; `jobq --db {} init` adds them", path.display()),
            ));
        }
    }
    Ok(None)
}

impl Store for SqliteStore {
    fn enqueue(&self, jobs: Vec<EnqueueJob>) -> Result<Vec<Enqueued>> {
        let subject = match jobs.as_slice() {
            [] => return Ok(Vec::new()),
            [job] => format!("job {}", job.id),
            [first, ..] => format!("{} jobs from {}", jobs.len(), first.id),
        };
        self.writer.write(subject, move |tx| enqueue::enqueue(tx, &jobs))
    }

    fn commit(&self, commit: Commit) -> Result<Committed> {
        let subject = format!("commit {}", commit.files.id);
        self.writer.write(subject, move |tx| commit::commit(tx, &commit))
    }

    fn admit(&self) -> Result<usize> {
        self.writer.write("admit", admit::admit)
    }

    fn claim(&self, request: ClaimRequest) -> Result<Vec<ClaimedJob>> {
        let request = Arc::new(request);
        self.aside.around(
            "claim",
            |seq| self.id_of(seq),
            |around| {
                let request = Arc::clone(&request);
                self.writer.write("claim", move |tx| claim::claim(tx, &request, &around))
            },
        )
    }

    fn take_over(&self, owner: Owner, limit: u32) -> Result<Vec<ClaimedJob>> {
        self.aside.around(
            "take over",
            |seq| self.id_of(seq),
            |around| {
                let owner = owner.clone();
                self.writer.write("take over", move |tx| claim::take_over(tx, &owner, limit, &around))
            },
        )
    }

    fn hasten(&self) -> Result<usize> {
        self.writer.write("hasten", hasten::hasten)
    }

    fn heartbeat(&self, beats: Vec<Beat>) -> Result<Vec<Pulse>> {
        self.writer.write_urgent("heartbeat", move |tx| heartbeat::heartbeat(tx, &beats))
    }

    fn settle(&self, steps: Vec<(Lease, Step)>) -> Result<Vec<Result<Settled>>> {
        let subject = match steps.as_slice() {
            [] => return Ok(Vec::new()),
            [(lease, _)] => format!("job {}", lease.id),
            [(first, _), ..] => format!("{} jobs from {}", steps.len(), first.id),
        };
        self.writer.write(subject, move |tx| settle::settle(tx, &steps))
    }

    fn reclaim(&self, request: Reclaim) -> Result<Reclaimed> {
        let request = Arc::new(request);
        self.aside.around(
            "reclaim",
            |seq| self.id_of(seq),
            |around| {
                let request = Arc::clone(&request);
                self.writer.write("reclaim", move |tx| reclaim::reclaim(tx, &request, &around))
            },
        )
    }

    fn leases(&self) -> Result<Vec<HeldLease>> {
        self.readers.read(reclaim::leases)
    }

    fn idle_owners(&self) -> Result<Vec<Owner>> {
        self.readers.read(owners::idle)
    }

    fn forget_owners(&self, locked_by: Vec<String>) -> Result<u64> {
        self.writer.write("forget owners", move |tx| owners::forget(tx, &locked_by))
    }

    fn resume(&self, job_type: &str) -> Result<bool> {
        let job_type = job_type.to_owned();
        self.writer.write("resume", move |tx| pauses::end(tx, &job_type))
    }

    fn outlook(&self, types: &[String], limits: &Limits) -> Result<Outlook> {
        let now = self.writer.context().clock.now();
        let around = self.aside.now();
        self.readers.read(|conn| outlook::outlook(conn, types, limits, now, &around))
    }

    fn waiting_types(&self) -> Result<Vec<String>> {
        self.readers.read(outlook::waiting_types)
    }

    fn cancel_requests(&self, locked_by: &str) -> Result<Vec<(i64, i64)>> {
        self.readers.read(|conn| outlook::cancel_requests(conn, locked_by))
    }

    fn planned(&self, job_id: &str) -> Result<Vec<PlannedEffect>> {
        self.readers.read(|conn| outlook::planned(conn, job_id))
    }

    fn expected(&self, query: &ExpectedQuery) -> Result<ExpectedPage> {
        self.readers.read(|conn| expected::page(conn, query))
    }

    fn expected_file(&self, path: &str) -> Result<Option<ExpectedFile>> {
        self.readers.read(|conn| expected::file(conn, path))
    }

    fn touched_below(&self, folder: &str) -> Result<bool> {
        self.readers.read(|conn| expected::touched_below(conn, folder))
    }

    fn completed(&self, query: &CompletedQuery) -> Result<Vec<CompletedJob>> {
        self.readers.read(|conn| completed::page(conn, query))
    }

    fn holder(&self, key: &str) -> Result<Option<String>> {
        let key = key.to_owned();
        self.writer.write("holder", move |tx| completed::holder(tx, &key))
    }

    fn confirm(&self, suspicion: Suspicion) -> Result<Confirmation> {
        let subject = format!("path {}", crate::printable(&suspicion.path));
        self.writer.write(subject, move |tx| expected::confirm(tx, &suspicion))
    }

    fn repair(&self, repair: RepairJob) -> Result<Requeued> {
        self.writer.write(format!("job {}", repair.job.id), move |tx| expected::repair(tx, &repair))
    }

    fn history(&self, path: &str) -> Result<Vec<PathEffect>> {
        self.readers.read(|conn| expected::history(conn, path))
    }

    fn cancel(&self, id: &str) -> Result<Cancellation> {
        let id = id.to_owned();
        self.writer.write(format!("job {id}"), move |tx| cancel::cancel(tx, &id))
    }

    fn retry_on(&self, id: &str, accepted: Vec<AcceptedPath>) -> Result<Job> {
        let id = id.to_owned();
        self.writer.write(format!("job {id}"), move |tx| retry::retry(tx, &id, &accepted))
    }

    fn get(&self, id: &str) -> Result<Job> {
        let now = self.writer.context().clock.now();
        self.readers.read(|conn| query::get(conn, id, now))
    }

    fn resolve(&self, prefix: &str) -> Result<String> {
        self.readers.read(|conn| query::resolve(conn, prefix))
    }

    fn list(&self, filter: &Filter) -> Result<Vec<Job>> {
        let now = self.writer.context().clock.now();
        self.readers.read(|conn| query::list(conn, filter, now))
    }

    fn stats(&self) -> Result<Stats> {
        let now = self.writer.context().clock.now();
        self.readers.read(|conn| stats::stats(conn, now))
    }

    fn recent(&self, query: &RecentQuery) -> Result<Recent> {
        self.readers.read(|conn| recent::recent(conn, query))
    }

    fn prune(&self, request: PruneRequest) -> Result<u64> {
        let (forget, ended_before) = (request.forget, request.ended_before);
        let pruned = self.writer.write("prune", move |tx| prune::prune(tx, &request))?;
        if pruned > 0 || !forget {
            return Ok(pruned);
        }
        let paths = self.readers.read(|conn| prune::forgettable(conn, ended_before))?;
        if paths.is_empty() {
            return Ok(0);
        }
        self.writer.write("forget", move |tx| prune::forget(tx, &paths, ended_before))
    }

    fn prune_events(&self, request: PruneEvents) -> Result<Option<EndedAt>> {
        self.writer.write("prune events", move |tx| prune::prune_events(tx, &request))
    }

    fn events(&self, query: &EventQuery) -> Result<Vec<Event>> {
        self.readers.read(|conn| events::read(conn, query))
    }
}
