//! What every verb works with: the connection inside a write transaction, the
//! time, and the types this process knows.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use rusqlite::{CachedStatement, Connection, Params, Row};

use super::connection::sql_error;
use crate::clock::{Clock, Millis};
use crate::error::Result;
use crate::payload::JobTypes;
use crate::store::Applier;

/// What stays the same from transaction to transaction.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) types: JobTypes,
}

pub(super) struct Tx<'c> {
    pub(super) conn: &'c Connection,
    pub(super) types: &'c JobTypes,
    pub(super) now: Millis,
    /// Whether this transaction has looked for rows to admit. Nobody else can
    /// add any while it has the write lock.
    pub(super) admitted: Cell<bool>,
    /// Whether this is the transaction of one operation, which then answers for
    /// everything that goes wrong in it.
    pub(super) alone: bool,
    appliers: RefCell<Vec<Arc<dyn Applier>>>,
}

impl<'c> Tx<'c> {
    pub(super) fn new(conn: &'c Connection, context: &'c Context) -> Self {
        Self {
            conn,
            types: &context.types,
            now: context.clock.now(),
            admitted: Cell::new(false),
            alone: false,
            appliers: RefCell::default(),
        }
    }

    /// The transaction of one operation.
    pub(super) fn alone(conn: &'c Connection, context: &'c Context) -> Self {
        Self { alone: true, ..Self::new(conn, context) }
    }

    /// What was applied is to be synced before the COMMIT.
    pub(super) fn sync_before_commit(&self, applier: &Arc<dyn Applier>) {
        let mut appliers = self.appliers.borrow_mut();
        if !appliers.iter().any(|known| Arc::ptr_eq(known, applier)) {
            appliers.push(Arc::clone(applier));
        }
    }

    /// To be called before the COMMIT. False when it must not happen.
    pub(super) fn sync(&self) -> bool {
        self.appliers.take().iter().all(|applier| match applier.sync() {
            Ok(()) => true,
            Err(failure) => {
                tracing::warn!(
                    error = failure.text(),
                    "a group's folders cannot be synced; its jobs are applied one by one"
                );
                false
            }
        })
    }

    pub(super) fn sql(&self, sql: &str) -> Result<CachedStatement<'c>> {
        self.conn.prepare_cached(sql).map_err(sql_error)
    }

    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.sql(sql)?.execute(params).map_err(sql_error)
    }

    /// The first row, if there is one.
    pub(super) fn row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let mut statement = self.sql(sql)?;
        let mut rows = statement.query(params).map_err(sql_error)?;
        rows.next().and_then(|row| row.map(read).transpose()).map_err(sql_error)
    }

    /// All rows.
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.sql(sql)?;
        let rows = statement.query_map(params, read).map_err(sql_error)?;
        rows.collect::<rusqlite::Result<_>>().map_err(sql_error)
    }
}

impl Tx<'_> {
    /// Runs `work` in a savepoint of its own: an error undoes all of it.
    pub(super) fn atomically<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.execute("SAVEPOINT part", [])?;
        let result = work();
        // When the whole transaction is gone there is nothing left to undo.
        if result.is_err() && !self.conn.is_autocommit() {
            self.execute("ROLLBACK TO part", [])?;
            self.admitted.set(false);
        }
        if !self.conn.is_autocommit() {
            self.execute("RELEASE part", [])?;
        }
        result
    }

    /// Runs `work` and undoes it, whatever came of it.
    pub(super) fn rolled_back<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut answer = None;
        let _ = self.atomically(|| -> Result<()> {
            answer = Some(work());
            Err(crate::Error::new(crate::ErrorKind::Internal, "rehearsal"))
        });
        answer.expect("the work was run")
    }
}
