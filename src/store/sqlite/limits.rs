//! How many jobs of a type may run at once, counted over the whole database. A
//! claim asks inside its transaction, so that no two can take the last place; a
//! look asks the same, or it would promise what no claim finds.

use rusqlite::{Connection, params};

use super::connection::sql_error;
use crate::error::Result;

/// Claimed jobs of all types are walked past, which are no more than workers
/// have in hand: an index of their own would cost every claim and every end
/// more. What is decided does not run any more, and does not count.
pub(super) const RUNNING: &str = "SELECT count(*) FROM (SELECT 1 FROM jobs INDEXED BY jobs_by_status
      WHERE status = 'claimed' AND +type = ?1 AND outcome IS NULL LIMIT ?2)";

/// How many more jobs of a type may be claimed, if so many may run at once.
pub(super) fn room(conn: &Connection, job_type: &str, limit: u32) -> Result<u32> {
    let running: u32 = conn
        .prepare_cached(RUNNING)
        .and_then(|mut statement| statement.query_row(params![job_type, limit], |row| row.get(0)))
        .map_err(sql_error)?;
    Ok(limit.saturating_sub(running))
}
