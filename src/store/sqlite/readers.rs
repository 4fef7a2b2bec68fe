//! The readers' pool. Made when the first read comes, so that a program that
//! only queues a job opens one connection and no threads.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use rusqlite::Connection;

use super::connection::{self, Role, sql_error};
use crate::error::{Error, ErrorKind, Result};

pub(super) struct Readers {
    manager: Manager,
    pool: OnceLock<r2d2::Pool<Manager>>,
}

#[derive(Clone)]
struct Manager {
    path: PathBuf,
    busy_timeout: Duration,
}

impl r2d2::ManageConnection for Manager {
    type Connection = Connection;
    type Error = Error;

    fn connect(&self) -> Result<Connection> {
        let conn = connection::open(&self.path, Role::Reader, false, self.busy_timeout)?;
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
    pub(super) fn new(path: PathBuf, busy_timeout: Duration) -> Self {
        Self { manager: Manager { path, busy_timeout }, pool: OnceLock::new() }
    }

    /// Runs `read` on one snapshot: a list and the reasons beside it agree.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let pool = self.pool.get_or_init(|| {
            r2d2::Pool::builder()
                .max_size(4)
                .min_idle(Some(0))
                .test_on_check_out(false)
                .connection_timeout(self.manager.busy_timeout)
                .error_handler(Box::new(Logged))
                .build_unchecked(self.manager.clone())
        });
        let conn = pool.get().or_else(|_| {
            // The pool says only that it waited in vain; opening once more tells why.
            self.manager.connect_once().and_then(|()| {
                pool.get().map_err(|e| Error::new(ErrorKind::Busy, format!("no reader became free: {e}")))
            })
        })?;
        conn.execute_batch("BEGIN").map_err(sql_error)?;
        let result = read(&conn);
        let _ = conn.execute_batch("ROLLBACK");
        result
    }
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
