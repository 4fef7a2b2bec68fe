//! What has ended lately, for those who watch. Both questions are answered from
//! the newest end of the index of finished jobs, so what ended before costs nothing.

use rusqlite::{Connection, params};

use super::connection::sql_error;
use super::row;
use super::stats::{COUNTED, TypeName, count, share, types};
use crate::clock::Millis;
use crate::error::Result;
use crate::job::Job;
use crate::state::Status;
use crate::store::{Recent, RecentGroup, RecentQuery};

/// In the order of the index, newest first; the job of each is read when it is
/// known which of all types' are the newest.
pub(super) const NEWEST_FAILURES: &str = "SELECT completed_at, seq FROM jobs INDEXED BY jobs_finished
      WHERE type = CAST(?1 AS TEXT) AND status = 'failed' AND completed_at IS NOT NULL
      ORDER BY completed_at DESC, seq DESC LIMIT ?2";

pub(super) fn recent(conn: &Connection, query: &RecentQuery) -> Result<Recent> {
    let types = types(conn)?;
    let (mut ended, mut failures) = (Vec::new(), Vec::new());
    for name in &types {
        for status in [Status::Cancelled, Status::Completed, Status::Failed] {
            let (jobs, at_least) = count(conn, name, status, query.since, share(COUNTED, types.len()))?;
            if jobs > 0 {
                ended.push(RecentGroup { job_type: name.shown(), status, jobs, at_least });
            }
        }
        if query.failures > 0 {
            failures.extend(newest_failures(conn, name, query.failures)?);
        }
    }
    failures.sort_unstable_by(|one, other| other.cmp(one));
    failures.truncate(query.failures as usize);
    let failures = failures.into_iter().map(|(_, seq)| job(conn, seq)).collect::<Result<_>>()?;
    Ok(Recent { ended, failures })
}

fn newest_failures(conn: &Connection, job_type: &TypeName, most: u32) -> Result<Vec<(Millis, i64)>> {
    let mut statement = conn.prepare_cached(NEWEST_FAILURES).map_err(sql_error)?;
    let rows = statement.query_map(params![job_type, most], |row| Ok((row.get(0)?, row.get(1)?))).map_err(sql_error)?;
    rows.collect::<rusqlite::Result<_>>().map_err(sql_error)
}

fn job(conn: &Connection, seq: i64) -> Result<Job> {
    let sql = format!("SELECT {} FROM jobs NOT INDEXED WHERE seq = ?1", row::COLUMNS);
    conn.prepare_cached(&sql).and_then(|mut statement| statement.query_row([seq], row::job)).map_err(sql_error)
}
