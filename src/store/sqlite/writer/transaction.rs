//! A transaction's steps as plain functions, and what can come of it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::Connection;

use super::super::connection::sql_error;
use super::super::schema;
use crate::error::{Error, ErrorKind, Result};

pub(super) enum Outcome {
    Committed,
    /// It has definitely not happened.
    Refused(Error),
    /// It may have happened.
    Unknown(Error),
    /// The transaction vanished under a failing statement, or is good for nothing after it.
    FellApart,
}

/// `None` if it panicked. The hook has told of it already.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    // Forgotten, because dropping what a panic carries may panic again.
    catch_unwind(AssertUnwindSafe(work)).map_err(std::mem::forget).ok()
}

/// The connection goes, and an open transaction with it, which then has
/// certainly not happened. One that is no longer open may have been committed.
pub(super) fn after_panic(seat: &mut Option<Connection>, begun: bool) -> Outcome {
    let undone = seat.take().is_none_or(|conn| !conn.is_autocommit());
    if undone || !begun {
        Outcome::Refused(Error::new(ErrorKind::Internal, "a panic in the writer; the database was not changed"))
    } else {
        Outcome::Unknown(Error::new(ErrorKind::Internal, "a panic in the writer"))
    }
}

/// Returns the root that is on record.
pub(super) fn begin(conn: &Connection) -> Result<Option<String>> {
    execute(conn, "BEGIN IMMEDIATE").map_err(sql_error)?;
    schema::expect_current(conn).inspect_err(|_| {
        let _ = conn.execute_batch("ROLLBACK");
    })
}

/// Runs one operation in a savepoint. False when the transaction is gone.
pub(super) fn in_savepoint(conn: &Connection, run: impl FnOnce() -> bool) -> bool {
    if execute(conn, "SAVEPOINT operation").is_err() {
        return false;
    }
    let ok = run();
    // The order matters: with autocommit back on, ROLLBACK TO fails, and any
    // other statement would commit on its own.
    if conn.is_autocommit() {
        return false;
    }
    (ok || execute(conn, "ROLLBACK TO operation").is_ok())
        && execute(conn, "RELEASE operation").is_ok()
        && !conn.is_autocommit()
}

/// Changes a page and leaves what it says as it is. (SQLite does not write a row
/// that is updated to what it was.)
pub(super) fn write_anything(conn: &Connection) -> rusqlite::Result<()> {
    execute(conn, "INSERT INTO jobq_meta (key, value) VALUES ('in_doubt', '')")?;
    execute(conn, "DELETE FROM jobq_meta WHERE key = 'in_doubt'")
}

pub(super) fn execute(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(drop)
}

pub(super) fn unknown(cause: &Error, subject: &str) -> Error {
    Error::new(
        ErrorKind::OutcomeUnknown,
        format!(
            "{subject}: the COMMIT failed ({cause}) and may still turn out to be durable; submit it again with the same id or key to find out"
        ),
    )
}

/// An error for one more caller.
pub(super) fn repeat(error: &Error, subject: &str) -> Error {
    Error::new(error.kind(), error.to_string()).context(subject)
}
