//! The writer: one connection, one transaction at a time, one fsync for
//! everybody who waits.
//!
//! Callers hand in an operation and block until it is durable. The first one to
//! arrive takes the writer's seat: it opens an IMMEDIATE transaction, runs its
//! own operation and everything that has queued up meanwhile, commits once, and
//! wakes the others. While it waits for the disk the next group forms; its first
//! caller then takes the seat. So a lone caller pays no thread switch, and eight
//! callers pay one fsync.
//!
//! Errors, the part that is easy to get wrong:
//! - an operation that fails before it changed anything is simply answered; one
//!   that did change something makes the group start over with a savepoint
//!   around each operation, so that it is rolled back alone;
//! - `SQLITE_FULL` and I/O errors may have rolled back the whole transaction,
//!   and the next statement would then commit by itself. So after every failed
//!   operation we look whether the transaction is still there; if not, nothing
//!   more is sent, the connection is opened anew, and each operation of the
//!   group is run again in a transaction of its own;
//! - a COMMIT that fails for lack of room has not happened: the commit record
//!   is the last thing written. Any other failed COMMIT may turn out to be
//!   durable after a restart: `OutcomeUnknown`, and a fresh connection. What it
//!   has written lies in the log, behind what can be seen, until somebody writes
//!   over it. So the next transaction writes something even if it only looked:
//!   whoever is told "there is nothing" goes by that;
//! - a panic of the one who leads, wherever it comes from, must not leave the
//!   seat taken for ever: the group is refused, the connection dropped with
//!   whatever was open on it, and the next in line leads.

mod line;
pub(super) mod log;
mod transaction;
mod wake;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::connection::sql_error;
use super::opened_file::OpenedFile;
use super::schema::{self, OwnRoot};
use super::tx::{Context, Tx};
use crate::error::{Error, ErrorKind, Result};
use crate::site;
use line::{Line, Ran, Waiting, lock};
use log::LogBound;
use transaction::{Outcome, after_panic, begin, execute, guarded, in_savepoint, repeat, unknown, write_anything};
use wake::Wake;

/// A group ends when it has taken this long: latency for those who wait.
const GROUP_TIME: Duration = Duration::from_millis(20);
/// A group ends at this many operations: memory, and the size of a transaction.
const GROUP_SIZE: usize = 1024;
/// How long a group waits for callers who are likely to come.
const GATHER: Duration = Duration::from_micros(100);

/// Opens the writer's connection; called again after a failed COMMIT, and when the one
/// that is there can only read. Then (`true`) the trouble may be with all of the process.
pub(super) type Opener = Box<dyn Fn(bool) -> Result<Connection> + Send + Sync>;

pub(super) struct Writer {
    open: Opener,
    context: Context,
    line: Mutex<Line>,
    seat: Mutex<Option<Connection>>,
    /// Watched by other processes' workers.
    wake: Option<Wake>,
    /// Something was changed that they have not been told of.
    news: AtomicBool,
    /// A COMMIT has failed, and nothing was written since: what it was about may come back.
    doubt: AtomicBool,
    /// The last connection could only read.
    only_read: AtomicBool,
    log: Option<Mutex<LogBound>>,
    guard: Option<Arc<Guard>>,
}

/// What a process goes by as long as it has the database open.
pub(super) struct Guard {
    /// Whoever were told that it is durable would never see again what is written to another.
    pub(super) file: OpenedFile,
    /// Where jobs do what they do.
    pub(super) root: OnceLock<OwnRoot>,
    /// The state folder, if the queue was not made in it.
    pub(super) moved: Option<PathBuf>,
}

impl Guard {
    /// At the beginning of every transaction, with what it finds on record.
    pub(super) fn check(&self, conn: &Connection, root: Option<&str>) -> Result<()> {
        self.file.check()?;
        self.expect_own_folder()?;
        self.root.get().map_or(Ok(()), |own| schema::settle_root(conn, own, root))
    }

    pub(super) fn expect_own_folder(&self) -> Result<()> {
        self.moved.as_deref().map_or(Ok(()), |state| Err(site::moved(state)))
    }
}

impl Writer {
    pub(super) fn new(conn: Connection, open: Opener, context: Context, wake: Option<&Path>) -> Self {
        let (line, seat, news) = (Mutex::default(), Mutex::new(Some(conn)), AtomicBool::new(false));
        Self {
            open,
            context,
            line,
            seat,
            wake: wake.and_then(Wake::at),
            news,
            doubt: AtomicBool::new(false),
            only_read: AtomicBool::new(false),
            log: None,
            guard: None,
        }
    }

    /// The same, and nothing is accepted once this is not so any more.
    pub(super) fn guarding(self, guard: Arc<Guard>) -> Self {
        Self { guard: Some(guard), ..self }
    }

    /// The same, with a write-ahead log that is kept from growing far beyond this
    /// many bytes, and looked at so often.
    pub(super) fn bounding(self, log: PathBuf, limit: u64, look: Duration) -> Self {
        Self { log: Some(Mutex::new(LogBound::new(log, limit, look))), ..self }
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// Runs `work` in the next group and returns once it is durable.
    pub(super) fn write<T: Send + 'static>(
        &self,
        subject: impl Into<String>,
        work: impl FnMut(&Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.submit(false, subject.into(), work)
    }

    /// As `write`, ahead of everything that is not urgent.
    pub(super) fn write_urgent<T: Send + 'static>(
        &self,
        subject: impl Into<String>,
        work: impl FnMut(&Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.submit(true, subject.into(), work)
    }

    fn submit<T, F>(&self, urgent: bool, subject: String, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Tx<'_>) -> Result<T> + Send + 'static,
    {
        let mine = lock(&self.line).join(urgent, subject, work);
        if mine.wait() {
            // The leader's own operation may be overtaken by urgent ones, never by more than one group.
            let mut led = Vec::new();
            while !mine.is_among(&led) {
                line::announce(&led);
                led = self.run_group();
            }
            let answered = led.len();
            if guarded(|| self.log_is_long()).unwrap_or(false) {
                // Their work is done; only who leads waits for those who read.
                line::announce(&led);
                led.clear();
                let _ = guarded(|| self.shorten_log());
            }
            // First the next leader, so that it works while the others wake up.
            lock(&self.line).hand_over(answered);
            line::announce(&led);
            // What was written is durable by now, whatever happens here.
            let _ = guarded(|| self.wake_others());
        }
        mine.answer()
    }

    /// Runs what waits and returns it, answered but not yet woken.
    fn run_group(&self) -> Vec<Arc<dyn Waiting>> {
        let mut seat = lock(&self.seat);
        let mut group = Vec::new();
        let tried = Instant::now();
        let outcome = guarded(|| match self.connection(&mut seat) {
            Ok(conn) => self.fill(conn, &mut group),
            Err(error) => Outcome::Refused(error),
        })
        .unwrap_or_else(|| after_panic(&mut seat, !group.is_empty()));
        match outcome {
            Outcome::Committed => {}
            Outcome::Refused(error) => {
                if error.kind() == ErrorKind::ReadOnly {
                    *seat = None;
                    self.only_read.store(true, Ordering::Release);
                }
                // Nothing was run, or nothing of it has happened. When it did not
                // even begin, those who came before this try hear why; who came
                // during it has a wait of its own.
                if group.is_empty() {
                    group.extend(std::iter::from_fn(|| lock(&self.line).next_before(tried)));
                }
                for operation in &group {
                    operation.refuse(repeat(&error, operation.subject()));
                }
            }
            Outcome::Unknown(error) => {
                *seat = None;
                // Also after a panic, which says so without a COMMIT that failed.
                self.doubt.store(true, Ordering::Release);
                for operation in &group {
                    operation.refuse(unknown(&error, operation.subject()));
                }
            }
            Outcome::FellApart => {
                *seat = None;
                for operation in &group {
                    if guarded(|| self.run_alone(&mut seat, operation.as_ref())).is_some() {
                        continue;
                    }
                    match after_panic(&mut seat, true) {
                        Outcome::Unknown(error) => operation.refuse(unknown(&error, operation.subject())),
                        Outcome::Refused(error) => operation.refuse(error.context(operation.subject())),
                        Outcome::Committed | Outcome::FellApart => {}
                    }
                }
            }
        }
        group
    }

    /// A transaction on the database that was opened, or none. Asked when the lock is held, as late as can be.
    fn begin(&self, conn: &Connection) -> Result<()> {
        let root = begin(conn)?;
        self.guard.as_ref().map_or(Ok(()), |guard| guard.check(conn, root.as_deref())).inspect_err(|_| {
            let _ = execute(conn, "ROLLBACK");
        })
    }

    /// One transaction with everything that waits.
    fn fill(&self, conn: &Connection, group: &mut Vec<Arc<dyn Waiting>>) -> Outcome {
        if let Err(error) = self.begin(conn) {
            return Outcome::Refused(error);
        }
        // From here: the wait for another process must not make the group smaller.
        let started = Instant::now();
        let changes = conn.total_changes();
        let tx = Tx::new(conn, &self.context);
        while group.len() < GROUP_SIZE && (group.is_empty() || started.elapsed() < GROUP_TIME) {
            let Some(operation) = self.next(group.len()) else { break };
            group.push(operation.clone());
            let before = conn.total_changes();
            match operation.run(&tx) {
                Ran::Well => continue,
                Ran::IntoDamage => return Outcome::FellApart,
                Ran::Refused if conn.is_autocommit() => return Outcome::FellApart,
                Ran::Refused => {}
            }
            // A refusal that changed nothing leaves nothing to undo. One that
            // did has to be undone alone: the group is run again, carefully.
            if conn.total_changes() != before {
                return self.run_carefully(conn, group);
            }
        }
        lock(&self.line).close_group();
        // A group that only looked has no news for anybody.
        self.news.fetch_or(conn.total_changes() != changes, Ordering::Release);
        self.finish(&tx)
    }

    /// The next operation of a group, after a short wait if it is likely that
    /// there is one: those who were answered a moment ago tend to come again,
    /// and an fsync shared with them costs less than the wait. A lone caller
    /// waits for nobody.
    fn next(&self, group: usize) -> Option<Arc<dyn Waiting>> {
        let asked = Instant::now();
        loop {
            let mut line = lock(&self.line);
            let next = line.next();
            if next.is_some() || group >= line.callers() || asked.elapsed() > GATHER {
                return next;
            }
            drop(line);
            std::thread::yield_now();
        }
    }

    /// The group again from the start, each operation in a savepoint. Not the
    /// usual way, because a savepoint copies every page the operation touches.
    fn run_carefully(&self, conn: &Connection, group: &[Arc<dyn Waiting>]) -> Outcome {
        self.news.store(true, Ordering::Release);
        if execute(conn, "ROLLBACK").is_err() {
            return Outcome::FellApart;
        }
        if let Err(error) = self.begin(conn) {
            return Outcome::Refused(error);
        }
        let tx = Tx::new(conn, &self.context);
        for operation in group {
            let mut ran = Ran::Well;
            let kept = in_savepoint(conn, || {
                ran = operation.run(&tx);
                ran == Ran::Well
            });
            if !kept || ran == Ran::IntoDamage {
                return Outcome::FellApart;
            }
            // What was rolled back may have included an admission.
            tx.admitted.set(false);
        }
        self.finish(&tx)
    }

    /// After a group fell apart: the operation by itself, so that it gets the
    /// answer that is its own.
    fn run_alone(&self, seat: &mut Option<Connection>, operation: &dyn Waiting) {
        let conn = match self.connection(seat) {
            Ok(conn) => conn,
            Err(error) => return operation.refuse(error),
        };
        if let Err(error) = self.begin(conn) {
            return operation.refuse(error);
        }
        self.news.store(true, Ordering::Release);
        if operation.run(&Tx::alone(conn, &self.context)) != Ran::Well {
            // Its own error is its answer; the connection may be in any state.
            let _ = conn.execute_batch("ROLLBACK");
            *seat = None;
            return;
        }
        match self.commit(conn) {
            Outcome::Committed => {}
            Outcome::Refused(error) => operation.refuse(error),
            Outcome::Unknown(error) => {
                operation.refuse(unknown(&error, operation.subject()));
                *seat = None;
            }
            Outcome::FellApart => {
                operation.refuse(Error::new(
                    ErrorKind::Io,
                    "the transaction was lost before its COMMIT; nothing was changed",
                ));
                *seat = None;
            }
        }
    }

    /// What was applied is made durable before the COMMIT says so. If that fails,
    /// nothing of the group has happened.
    fn finish(&self, tx: &Tx<'_>) -> Outcome {
        if tx.sync() {
            return self.commit(tx.conn);
        }
        let _ = tx.conn.execute_batch("ROLLBACK");
        Outcome::FellApart
    }

    fn commit(&self, conn: &Connection) -> Outcome {
        if conn.is_autocommit() {
            return Outcome::FellApart;
        }
        let in_doubt = self.doubt.load(Ordering::Acquire);
        let failed = if in_doubt { write_anything(conn).err() } else { None };
        let Some(error) = failed.or_else(|| execute(conn, "COMMIT").err()) else {
            self.doubt.fetch_and(!in_doubt, Ordering::AcqRel);
            // It is durable; but if that was while the file was taken away, nobody finds it there.
            let gone = self.guard.as_ref().and_then(|guard| guard.file.check().err());
            return gone.map_or(Outcome::Committed, Outcome::Unknown);
        };
        let error = sql_error(error);
        if !conn.is_autocommit() {
            // Refused, not failed: the transaction is still open and goes away now.
            let _ = conn.execute_batch("ROLLBACK");
            return Outcome::Refused(error);
        }
        if error.is_disk_full() {
            return Outcome::Refused(error);
        }
        self.doubt.store(true, Ordering::Release);
        Outcome::Unknown(error)
    }

    fn log_is_long(&self) -> bool {
        let Some(log) = &self.log else { return false };
        // The seat first, as in `shorten_log`.
        let (seat, mut log, now) = (lock(&self.seat), lock(log), Instant::now());
        if !log.is_time(now) {
            return false;
        }
        if let Some(conn) = &*seat {
            log.space_checkpoints(conn);
        }
        log.is_long(now)
    }

    fn shorten_log(&self) {
        let seat = lock(&self.seat);
        if let (Some(log), Some(conn)) = (&self.log, &*seat) {
            lock(log).shorten(conn);
        }
    }

    /// Tells workers elsewhere that something has changed, after it can be seen.
    fn wake_others(&self) {
        if self.news.swap(false, Ordering::AcqRel)
            && let Some(wake) = &self.wake
        {
            wake.others();
        }
    }

    fn connection<'s>(&self, seat: &'s mut Option<Connection>) -> Result<&'s Connection> {
        // A file that cannot be opened for writing is opened by SQLite to be read, without a word and whatever the
        // reason. That may have been a moment's trouble. (Of the log and its index nobody says so; the transaction
        // does not begin, and the connection goes then.)
        if seat.as_ref().is_some_and(|conn| conn.is_readonly("main").unwrap_or(false)) {
            *seat = None;
            self.only_read.store(true, Ordering::Release);
        }
        if seat.is_none() {
            *seat = Some((self.open)(self.only_read.swap(false, Ordering::AcqRel))?);
        }
        Ok(seat.as_ref().expect("opened above"))
    }
}

#[cfg(test)]
mod tests;
