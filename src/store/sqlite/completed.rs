//! What completed jobs of a type were about: by their holds, newest first.

use rusqlite::{Connection, params};

use super::admit;
use super::connection::sql_error;
use super::row::{hold_keys, read};
use super::tx::Tx;
use crate::error::Result;
use crate::store::{CompletedJob, CompletedQuery};

/// Backwards along the stretch of one type. Jobs on one hold end in order of seq, so
/// the first of a hold is the latest; there is no index by hold, which every job
/// would have to pay for.
pub(super) const PAGE: &str = "SELECT seq, id, holds FROM jobs INDEXED BY jobs_by_type
      WHERE type = ?1 AND seq < ?2 AND seq > ?3 AND +status = 'completed' AND holds IS NOT NULL
        AND (?4 IS NULL OR EXISTS (SELECT 1 FROM json_each(holds) WHERE value = ?4))
      ORDER BY seq DESC LIMIT ?5";

pub(super) fn page(conn: &Connection, query: &CompletedQuery) -> Result<Vec<CompletedJob>> {
    let CompletedQuery { job_type, before, after, hold, limit } = query;
    let mut statement = conn.prepare_cached(PAGE).map_err(sql_error)?;
    let before = before.unwrap_or(i64::MAX);
    let rows = statement.query_map(params![job_type, before, after, hold, limit], |row| {
        let holds = hold_keys(read::<Option<String>>(row, 2)?.as_deref());
        Ok(CompletedJob { seq: row.get(0)?, id: read(row, 1)?, holds })
    });
    rows.and_then(Iterator::collect).map_err(sql_error)
}

/// The unfinished job that has a hold, the one that runs before those that wait.
pub(super) fn holder(tx: &Tx<'_>, key: &str) -> Result<Option<String>> {
    // What other programs have inserted has its holds only then.
    admit::admit(tx)?;
    tx.row("SELECT job_id FROM job_holds WHERE key = ?1 ORDER BY active DESC, seq LIMIT 1", params![key], |row| {
        read(row, 0)
    })
}
