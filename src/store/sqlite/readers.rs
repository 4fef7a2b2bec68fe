//! Those who read. A program that does one thing at a time has one connection
//! for it, which is closed before the writer's: the last to close brings the log
//! into the database. A pool, with threads of its own that may outlive it for a
//! moment, is made when two read at once.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use super::connection::{self, Role, sql_error};
use super::opened_file::OpenedFile;
use crate::error::{Error, ErrorKind, Result};

pub(super) struct Readers {
    manager: Manager,
    first: Mutex<First>,
    pool: Mutex<Option<r2d2::Pool<Manager>>>,
}

/// The connection of those who find nobody else reading.
enum First {
    New,
    Idle(Connection),
    /// In use, or lost with a thread that panicked.
    Busy,
}

#[derive(Clone)]
struct Manager {
    path: PathBuf,
    file: OpenedFile,
    busy_timeout: Duration,
}

impl r2d2::ManageConnection for Manager {
    type Connection = Connection;
    type Error = Error;

    fn connect(&self) -> Result<Connection> {
        // What is read beside what is written is of the same database, or of none.
        let conn = self.file.once_more(|| connection::open(&self.path, Role::Reader, false, self.busy_timeout))?;
        connection::settle(&conn, self.busy_timeout)?;
        Ok(conn)
    }

    fn is_valid(&self, conn: &mut Connection) -> Result<()> {
        conn.execute_batch("SELECT 1").map_err(sql_error)
    }

    fn has_broken(&self, conn: &mut Connection) -> bool {
        // A read that was interrupted half-way must not keep its snapshot.
        !conn.is_autocommit()
    }
}

impl Readers {
    pub(super) fn new(path: PathBuf, file: OpenedFile, busy_timeout: Duration) -> Self {
        let manager = Manager { path, file, busy_timeout };
        Self { manager, first: Mutex::new(First::New), pool: Mutex::new(None) }
    }

    /// Runs `read` on one snapshot: a list and the reasons beside it agree.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        // What was the truth once could be read for ever.
        self.manager.file.check()?;
        if let Some(conn) = self.take_first() {
            let result = on_snapshot(&conn, read);
            let usable = conn.is_autocommit();
            self.put_first(if usable { First::Idle(conn) } else { First::New });
            return result;
        }
        let pool = self.pool();
        let conn = pool.get().or_else(|_| {
            // The pool says only that it waited in vain; opening once more tells why.
            self.manager.connect_once().and_then(|()| {
                pool.get().map_err(|e| Error::new(ErrorKind::Busy, format!("no reader became free: {e}")))
            })
        })?;
        on_snapshot(&conn, read)
    }

    /// Closes those that nobody uses. All connections of a process share what they
    /// have of the log's index: as long as one of them has it only to be read, so
    /// has every new one.
    pub(super) fn forget(&self) {
        let mut first = lock(&self.first);
        if matches!(*first, First::Idle(_)) {
            *first = First::New;
        }
        *lock(&self.pool) = None;
    }

    fn pool(&self) -> r2d2::Pool<Manager> {
        let make = || {
            r2d2::Pool::builder()
                .max_size(4)
                .min_idle(Some(0))
                .test_on_check_out(false)
                .connection_timeout(self.manager.busy_timeout)
                .error_handler(Box::new(Logged))
                .build_unchecked(self.manager.clone())
        };
        lock(&self.pool).get_or_insert_with(make).clone()
    }

    /// `None` while another thread has it, or if it cannot be opened; the pool waits, and tells why.
    fn take_first(&self) -> Option<Connection> {
        let first = std::mem::replace(&mut *lock(&self.first), First::Busy);
        match first {
            First::Idle(conn) => Some(conn),
            First::Busy => None,
            First::New => {
                let conn = r2d2::ManageConnection::connect(&self.manager).ok();
                if conn.is_none() {
                    self.put_first(First::New);
                }
                conn
            }
        }
    }

    fn put_first(&self, first: First) {
        *lock(&self.first) = first;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn on_snapshot<T>(conn: &Connection, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    conn.execute_batch("BEGIN").map_err(sql_error)?;
    let result = read(conn);
    let _ = conn.execute_batch("ROLLBACK");
    result
}

impl Manager {
    fn connect_once(&self) -> Result<()> {
        r2d2::ManageConnection::connect(self).map(drop)
    }
}

#[derive(Debug)]
struct Logged;

impl r2d2::HandleError<Error> for Logged {
    fn handle_error(&self, error: Error) {
        tracing::warn!(%error, "a reader could not be opened");
    }
}
