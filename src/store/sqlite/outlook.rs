//! What a worker looks at before it claims: reading costs nobody the write
//! lock.

use rusqlite::{Connection, ToSql, params};

use super::apply::{PLANNED, planned_row};
use super::aside::Around;
use super::connection::sql_error;
use super::limits;
use super::pauses;
use super::row::read;
use crate::clock::Millis;
use crate::error::Result;
use crate::store::{Limits, Outlook, PlannedEffect};

pub(super) fn outlook(
    conn: &Connection,
    types: &[String],
    limits: &Limits,
    now: Millis,
    around: &Around,
) -> Result<Outlook> {
    let mut paused = if types.is_empty() { Vec::new() } else { pauses::current(conn, now)? };
    paused.retain(|pause| types.contains(&pause.job_type));
    let limit = around.limit(1);
    let any = |sql: &str, of: &dyn ToSql| any(conn, sql, params![of, limit], around);
    let mut claimable = any(DUE, &now)? || any(EARLY, &now)?;
    for name in types {
        let is_paused = paused.iter().any(|pause| pause.job_type == *name);
        claimable = claimable || any(NEW, name)? || (!is_paused && any(READY, name)? && has_room(conn, name, limits)?);
    }
    let due: Option<Millis> = conn
        .prepare_cached(NEXT)
        .and_then(|mut statement| statement.query_row(params![now], |row| row.get(0)))
        .map_err(sql_error)?;
    Ok(Outlook {
        claimable,
        decided: any(DECIDED, &now)?,
        next_at: due.into_iter().chain(paused.iter().map(|pause| pause.until)).min(),
    })
}

fn has_room(conn: &Connection, job_type: &str, limits: &Limits) -> Result<bool> {
    limits.get(job_type).map_or(Ok(true), |limit| Ok(limits::room(conn, job_type, *limit)? > 0))
}

const READY: &str = "SELECT seq FROM jobs INDEXED BY jobs_ready WHERE gate = 'ready' AND type = ?1 LIMIT ?2";

/// A claim admits them, whether it may take them or not.
const NEW: &str = "SELECT seq FROM jobs INDEXED BY jobs_new WHERE gate = 'new' AND type = ?1 LIMIT ?2";

/// Of any type: a claim promotes them all.
const DUE: &str = "SELECT seq FROM jobs INDEXED BY jobs_due
      WHERE gate IN ('delayed', 'backoff') AND run_at <= ?1 LIMIT ?2";
const EARLY: &str = "SELECT seq FROM jobs INDEXED BY jobs_backoff_cap
      WHERE gate = 'backoff' AND run_at - backoff_max > ?1 LIMIT ?2";

const DECIDED: &str = "SELECT seq FROM jobs INDEXED BY jobs_unowned
      WHERE status = 'claimed' AND locked_by IS NULL
        AND (run_at IS NULL OR run_at <= ?1 OR run_at - backoff_max > ?1) LIMIT ?2";

const NEXT: &str = "SELECT min(run_at) FROM (
      SELECT * FROM (SELECT run_at FROM jobs INDEXED BY jobs_due
        WHERE gate IN ('delayed', 'backoff') AND run_at > ?1 ORDER BY run_at LIMIT 1)
      UNION ALL
      SELECT * FROM (SELECT run_at FROM jobs INDEXED BY jobs_unowned
        WHERE status = 'claimed' AND locked_by IS NULL AND run_at > ?1 ORDER BY run_at LIMIT 1))";

/// Whether there is one that is not left aside: what no claim takes must not be promised.
fn any(conn: &Connection, sql: &str, params: impl rusqlite::Params, around: &Around) -> Result<bool> {
    let mut statement = conn.prepare_cached(sql).map_err(sql_error)?;
    let mut rows = statement.query(params).map_err(sql_error)?;
    while let Some(row) = rows.next().map_err(sql_error)? {
        if !around.aside.contains(&row.get(0).map_err(sql_error)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The types of jobs that could run now, each found by one seek.
pub(super) fn waiting_types(conn: &Connection) -> Result<Vec<String>> {
    let mut types = Vec::new();
    for (index, gate) in [("jobs_ready", "ready"), ("jobs_new", "new")] {
        let first = format!("SELECT min(type) FROM jobs INDEXED BY {index} WHERE gate = '{gate}'");
        let sql = format!(
            "WITH RECURSIVE found (type) AS ({first} UNION ALL
               SELECT ({first} AND jobs.type > found.type) FROM found WHERE found.type IS NOT NULL)
             SELECT type FROM found WHERE type IS NOT NULL"
        );
        let mut statement = conn.prepare_cached(&sql).map_err(sql_error)?;
        let rows = statement.query_map([], |row| read(row, 0)).map_err(sql_error)?;
        types.extend(rows.collect::<rusqlite::Result<Vec<String>>>().map_err(sql_error)?);
    }
    types.sort();
    types.dedup();
    Ok(types)
}

/// (seq, token) of an owner's jobs that were asked to stop.
pub(super) fn cancel_requests(conn: &Connection, locked_by: &str) -> Result<Vec<(i64, i64)>> {
    let mut statement = conn
        .prepare_cached(
            "SELECT seq, token FROM jobs INDEXED BY jobs_by_status
              WHERE status = 'claimed' AND locked_by = ?1 AND cancel_requested = 1",
        )
        .map_err(sql_error)?;
    let rows = statement.query_map([locked_by], |row| Ok((row.get(0)?, row.get(1)?))).map_err(sql_error)?;
    rows.collect::<rusqlite::Result<_>>().map_err(sql_error)
}

/// What of a job's effects is still to be applied.
pub(super) fn planned(conn: &Connection, job_id: &str) -> Result<Vec<PlannedEffect>> {
    let mut statement = conn.prepare_cached(PLANNED).map_err(sql_error)?;
    let rows = statement.query_map([job_id], planned_row).map_err(sql_error)?;
    rows.collect::<rusqlite::Result<_>>().map_err(sql_error)
}
