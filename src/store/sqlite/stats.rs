//! The six questions, with numbers. Finished jobs pile up, so none of these
//! statements walks all of them: types are found by leaping through an index,
//! times are those of the newest jobs of each type, and counts stop at a bound
//! and say so. What is unfinished is counted whole.

use rusqlite::types::{ToSql, ToSqlOutput};
use rusqlite::{Connection, OptionalExtension as _, Params, params};

use super::connection::sql_error;
use super::row::read;
use super::{costs, pauses};
use crate::clock::{Millis, rfc3339};
use crate::error::Result;
use crate::state::Status;
use crate::store::{
    Blocked, DurationGroup, FailedGroup, LatencyGroup, OldestPending, Outstanding, PausedType, RecentGroup, Stats,
    Stuck,
};

/// Newest completed jobs of a type whose times are looked at: of each, of all
/// types together, and at least of each when there are many types.
const SAMPLE: (i64, i64, i64) = (2_000, 20_000, 100);
/// The same for what is counted.
pub(super) const COUNTED: (i64, i64, i64) = (100_000, 100_000, 1_000);

const HOUR: Millis = 3_600_000;
/// As in the view `jobq_stuck`: no sign of life for this long.
const SILENCE: Millis = 300_000;

pub(super) fn stats(conn: &Connection, now: Millis) -> Result<Stats> {
    let types = types(conn)?;
    let outstanding = outstanding(conn, now)?;
    let (mut durations, mut latencies) = (Vec::new(), Vec::new());
    let (mut failed, mut last_hour, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    for name in &types {
        let (mut took, mut waited) = times(conn, name, share(SAMPLE, types.len()))?;
        took.sort_unstable();
        waited.sort_unstable();
        durations.extend(duration_group(name, &took));
        latencies.extend(latency_group(name, &waited));
        let most = share(COUNTED, types.len());
        failed.extend(failed_group(conn, name, most)?);
        costs.extend(costs::of(conn, name, most)?);
        for status in [Status::Cancelled, Status::Completed, Status::Failed] {
            let (jobs, at_least) = count(conn, name, status, now.saturating_sub(HOUR), most)?;
            if jobs > 0 {
                last_hour.push(RecentGroup { job_type: name.shown(), status, jobs, at_least });
            }
        }
    }
    Ok(Stats {
        oldest_pending: oldest_pending(&outstanding),
        outstanding: outstanding.into_iter().map(|(group, _)| group).collect(),
        paused: paused(conn, now)?,
        failed,
        stuck: stuck(conn, now)?,
        blocked: blocked(conn)?,
        durations,
        latencies,
        duplicates: conn.query_row(DUPLICATES, [], |row| row.get(0)).map_err(sql_error)?,
        last_hour,
        costs,
    })
}

fn paused(conn: &Connection, now: Millis) -> Result<Vec<PausedType>> {
    let shown = |pause: pauses::Pause| PausedType {
        job_type: pause.job_type,
        until: rfc3339(pause.until),
        since: rfc3339(pause.since),
        reason: pause.reason,
    };
    Ok(pauses::current(conn, now)?.into_iter().map(shown).collect())
}

/// Of each, unless that is more than the bound for all.
pub(super) fn share((each, all, at_least): (i64, i64, i64), types: usize) -> i64 {
    let types = i64::try_from(types).unwrap_or(i64::MAX).max(1);
    each.min(all / types).max(at_least)
}

/// A type as the column has it: others may have written what is no UTF-8.
#[derive(Clone)]
pub(super) struct TypeName(Vec<u8>);

impl TypeName {
    /// As people and programs see it.
    pub(super) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl From<&str> for TypeName {
    fn from(name: &str) -> Self {
        Self(name.as_bytes().to_vec())
    }
}

/// To be cast to TEXT where it is used.
impl ToSql for TypeName {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.as_slice().into())
    }
}

/// The types there are jobs of, leaping from one to the next.
pub(super) fn types(conn: &Connection) -> Result<Vec<TypeName>> {
    let mut types: Vec<TypeName> = Vec::new();
    let mut last = TypeName::from("");
    let mut statement = conn.prepare_cached(NEXT_TYPE).map_err(sql_error)?;
    loop {
        let next = statement.query_row([&last], |row| row.get(0)).optional().map_err(sql_error)?;
        let Some(next) = next else { return Ok(types) };
        last = TypeName(next);
        types.push(last.clone());
    }
}

/// A type is never empty.
pub(super) const NEXT_TYPE: &str = "SELECT CAST(type AS BLOB) FROM jobs INDEXED BY jobs_by_type
      WHERE type > CAST(?1 AS TEXT) ORDER BY type LIMIT 1";

/// With a bare column beside `min()`, SQLite takes it from the row that has the minimum.
pub(super) const OUTSTANDING: &str = "SELECT type, status, gate, count(*), min(created_at), id
       FROM jobs INDEXED BY jobs_by_status
      WHERE status IN ('pending', 'claimed') GROUP BY type, status, gate";

/// With each group the time its oldest was queued.
fn outstanding(conn: &Connection, now: Millis) -> Result<Vec<(Outstanding, Millis)>> {
    rows(conn, OUTSTANDING, [], |row| {
        let oldest: Millis = row.get(4)?;
        let group = Outstanding {
            job_type: read(row, 0)?,
            status: row.get(1)?,
            gate: row.get(2)?,
            jobs: row.get(3)?,
            oldest: Some(rfc3339(oldest)),
            oldest_id: read(row, 5)?,
            age_ms: now.saturating_sub(oldest).max(0),
        };
        Ok((group, oldest))
    })
}

/// The groups come type by type.
fn oldest_pending(outstanding: &[(Outstanding, Millis)]) -> Vec<OldestPending> {
    let pending = outstanding.iter().filter(|(group, _)| group.status == Status::Pending);
    let mut found: Vec<(OldestPending, Millis)> = Vec::new();
    for (group, oldest) in pending {
        let one = OldestPending {
            job_type: group.job_type.clone(),
            id: group.oldest_id.clone(),
            gate: group.gate,
            created_at: rfc3339(*oldest),
            age_ms: group.age_ms,
        };
        match found.last_mut() {
            Some(last) if last.0.job_type == one.job_type => {
                if *oldest < last.1 {
                    *last = (one, *oldest);
                }
            }
            _ => found.push((one, *oldest)),
        }
    }
    found.into_iter().map(|(one, _)| one).collect()
}

/// The newest completed jobs of a type: how long each took; and how long it had
/// waited, if that is known. It is when the job was run once (each failed attempt
/// overwrites `run_at`). The wait begins when the job could have run: when it was
/// queued, at the time it was put off to, or when it was retried; and ends with
/// the claim of the attempt that ran. Claims that were given back do not count,
/// nor does that of whoever took over what was decided.
pub(super) const TIMES: &str = "SELECT completed_at - claimed_at,
            CASE WHEN attempts = 1 THEN
              CASE WHEN token = 1 THEN claimed_at ELSE
                coalesce((SELECT max(c.at) FROM job_events c WHERE c.job_id = jobs.id AND c.type = 'claimed'
                             AND c.seq < (SELECT d.seq FROM job_events d
                                           WHERE d.job_id = jobs.id AND d.type = 'decided')), claimed_at) END END,
            created_at, run_at,
            CASE WHEN token > 1 THEN
              (SELECT max(r.at) FROM job_events r WHERE r.job_id = jobs.id AND r.type = 'retried') END
       FROM jobs INDEXED BY jobs_finished
      WHERE type = CAST(?1 AS TEXT) AND status = 'completed' AND completed_at IS NOT NULL AND claimed_at IS NOT NULL
      ORDER BY completed_at DESC LIMIT ?2";

fn times(conn: &Connection, job_type: &TypeName, most: i64) -> Result<(Vec<Millis>, Vec<Millis>)> {
    let (mut took, mut waited) = (Vec::new(), Vec::new());
    let mut statement = conn.prepare_cached(TIMES).map_err(sql_error)?;
    let mut rows = statement.query(params![job_type, most]).map_err(sql_error)?;
    while let Some(row) = rows.next().map_err(sql_error)? {
        let column = |index| row.get::<_, Option<Millis>>(index).map_err(sql_error);
        // A clock that was set back makes no time negative.
        took.extend(column(0)?.map(|time| time.max(0)));
        let Some(claimed) = column(1)? else { continue };
        // One that lies after the claim was written by someone who put the end off.
        let put_off = column(3)?.filter(|at| *at <= claimed);
        let could_run = column(4)?.or(put_off).max(column(2)?);
        waited.extend(could_run.map(|since| claimed.saturating_sub(since).max(0)));
    }
    Ok((took, waited))
}

/// The smallest of the sorted values that this many percent do not exceed.
fn percentile(sorted: &[Millis], percent: usize) -> Millis {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

fn duration_group(job_type: &TypeName, sorted: &[Millis]) -> Option<DurationGroup> {
    let count = i64::try_from(sorted.len()).unwrap_or(i64::MAX);
    let sum = sorted.iter().fold(0, |sum: Millis, time| sum.saturating_add(*time));
    Some(DurationGroup {
        job_type: job_type.shown(),
        jobs: count,
        min_ms: *sorted.first()?,
        avg_ms: sum / count,
        p50_ms: percentile(sorted, 50),
        p95_ms: percentile(sorted, 95),
        max_ms: *sorted.last()?,
    })
}

fn latency_group(job_type: &TypeName, sorted: &[Millis]) -> Option<LatencyGroup> {
    Some(LatencyGroup {
        job_type: job_type.shown(),
        jobs: i64::try_from(sorted.len()).unwrap_or(i64::MAX),
        p50_ms: percentile(sorted, 50),
        p95_ms: percentile(sorted, 95),
        max_ms: *sorted.last()?,
    })
}

pub(super) const NEWEST_FAILED: &str = "SELECT id, last_error FROM jobs INDEXED BY jobs_finished
      WHERE type = CAST(?1 AS TEXT) AND status = 'failed' AND completed_at IS NOT NULL ORDER BY completed_at DESC LIMIT 1";

fn failed_group(conn: &Connection, job_type: &TypeName, most: i64) -> Result<Option<FailedGroup>> {
    let newest = rows(conn, NEWEST_FAILED, [job_type], |row| Ok((read(row, 0)?, read(row, 1)?)))?.pop();
    let Some((newest, last_error)) = newest else { return Ok(None) };
    let (jobs, at_least) = count(conn, job_type, Status::Failed, Millis::MIN, most)?;
    Ok(Some(FailedGroup { job_type: job_type.shown(), jobs, at_least, newest, last_error }))
}

pub(super) const COUNT: &str = "SELECT count(*) FROM (SELECT 1 FROM jobs INDEXED BY jobs_finished
      WHERE type = CAST(?1 AS TEXT) AND status = ?2 AND completed_at >= ?3 LIMIT ?4)";

/// How many ended since, and whether there may be more.
pub(super) fn count(
    conn: &Connection,
    job_type: &TypeName,
    status: Status,
    since: Millis,
    most: i64,
) -> Result<(i64, bool)> {
    let found: i64 = conn
        .prepare_cached(COUNT)
        .and_then(|mut s| s.query_row(params![job_type, status, since, most], |row| row.get(0)))
        .map_err(sql_error)?;
    Ok((found, found == most))
}

pub(super) const STUCK: &str = "SELECT id, type, locked_by, coalesce(heartbeat_at, locked_at)
       FROM jobs INDEXED BY jobs_by_status
      WHERE status = 'claimed' AND coalesce(heartbeat_at, locked_at, 0) < ?1";

fn stuck(conn: &Connection, now: Millis) -> Result<Vec<Stuck>> {
    rows(conn, STUCK, [now.saturating_sub(SILENCE)], |row| {
        Ok(Stuck {
            id: read(row, 0)?,
            job_type: read(row, 1)?,
            locked_by: row.get(2)?,
            last_sign_of_life: row.get::<_, Option<Millis>>(3)?.map(rfc3339),
        })
    })
}

/// From those who wait, not from those who failed, who may be many and kept.
pub(super) const BLOCKED: &str = "SELECT id, type, last_error, waiting, seq
       FROM (SELECT waiting_on AS parent, count(*) AS waiting FROM jobs INDEXED BY jobs_waiting_on
              WHERE waiting_on IS NOT NULL AND status = 'pending' GROUP BY waiting_on)
      CROSS JOIN jobs ON id = parent WHERE +status = 'failed'";

fn blocked(conn: &Connection) -> Result<Vec<Blocked>> {
    let mut blocked: Vec<(i64, Blocked)> = rows(conn, BLOCKED, [], |row| {
        let (id, job_type, last_error) = (read(row, 0)?, read(row, 1)?, read(row, 2)?);
        Ok((row.get(4)?, Blocked { id, job_type, last_error, jobs: row.get(3)? }))
    })?;
    blocked.sort_unstable_by_key(|(seq, _)| *seq);
    Ok(blocked.into_iter().map(|(_, one)| one).collect())
}

/// In the order of the index, which has unfinished jobs only.
pub(super) const DUPLICATES: &str = "SELECT count(*) FROM (SELECT 1 FROM jobs INDEXED BY jobs_active_key
       WHERE idempotency_key IS NOT NULL AND idempotency_key <> '' AND completed_at IS NULL
       GROUP BY type, idempotency_key HAVING count(*) > 1)";

fn rows<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    let mut statement = conn.prepare_cached(sql).map_err(sql_error)?;
    let rows = statement.query_map(params, read).map_err(sql_error)?;
    rows.collect::<rusqlite::Result<_>>().map_err(sql_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let hundred: Vec<Millis> = (1..=100).collect();
        assert_eq!([50, 95, 100].map(|p| percentile(&hundred, p)), [50, 95, 100]);
        assert_eq!([50, 95].map(|p| percentile(&[7], p)), [7, 7]);
        assert_eq!([50, 95].map(|p| percentile(&[1, 9], p)), [1, 9]);
        assert_eq!(percentile(&[], 50), 0);
    }

    #[test]
    fn many_types_share_what_is_looked_at() {
        assert_eq!([0, 1, 10, 20, 1_000].map(|types| share(SAMPLE, types)), [2_000, 2_000, 2_000, 1_000, 100]);
    }
}
