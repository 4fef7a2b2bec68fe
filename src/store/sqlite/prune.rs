//! Deleting old finished jobs, a bounded number per transaction. What the disk
//! should hold stays known: the latest applied effect of every path is kept,
//! unless it is to be forgotten.

use rusqlite::{Connection, params};

use super::connection::sql_error;
use super::row::read;
use super::stats::{self, TypeName};
use super::tx::Tx;
use crate::clock::Millis;
use crate::error::Result;
use crate::state::Status;
use crate::store::{EndedAt, PruneEvents, PruneRequest};

/// Jobs per transaction, which take some 10 ms to go: others get their turn.
const AT_ONCE: usize = 250;
/// Bytes of theirs, after the first: pages are given back one by one.
const MOST_BYTES: i64 = 4 << 20;

pub(super) fn prune(tx: &Tx<'_>, request: &PruneRequest) -> Result<u64> {
    let (mut pruned, mut bytes) = (0, 0_i64);
    for Old { seq, id, size } in old(tx, request)? {
        bytes = bytes.saturating_add(size);
        if pruned > 0 && bytes > MOST_BYTES {
            break;
        }
        tx.execute(REPLACED, params![id])?;
        tx.execute("DELETE FROM jobs WHERE seq = ?1", params![seq])?;
        pruned += 1;
    }
    Ok(pruned)
}

struct Old {
    seq: i64,
    id: String,
    size: i64,
}

/// The oldest first, of each type.
fn old(tx: &Tx<'_>, request: &PruneRequest) -> Result<Vec<Old>> {
    let types = match &request.job_type {
        Some(job_type) => vec![TypeName::from(job_type.as_str())],
        None => stats::types(tx.conn)?,
    };
    let mut old = Vec::new();
    for job_type in types {
        for status in [Status::Completed, Status::Cancelled, Status::Failed] {
            if status == Status::Failed && !request.failed {
                continue;
            }
            let room = i64::try_from(AT_ONCE - old.len()).unwrap_or(0);
            let found = tx.rows(PRUNABLE, params![job_type, status, request.ended_before, room], |row| {
                Ok(Old { seq: row.get(0)?, id: read(row, 1)?, size: row.get(2)? })
            })?;
            old.extend(found);
        }
    }
    Ok(old)
}

/// A job that any other still names in `waiting_on` stays.
pub(super) const PRUNABLE: &str = "SELECT seq, id,
            octet_length(payload) + coalesce(octet_length(result), 0) + coalesce(octet_length(checkpoint), 0)
       FROM jobs INDEXED BY jobs_finished
      WHERE type = CAST(?1 AS TEXT) AND status = ?2 AND completed_at < ?3
        AND NOT EXISTS (SELECT 1 FROM jobs w WHERE w.waiting_on = jobs.id)
      ORDER BY completed_at LIMIT ?4";

pub(super) fn prune_events(tx: &Tx<'_>, request: &PruneEvents) -> Result<Option<EndedAt>> {
    let (EndedAt(ended, seq), limit) = (request.after, i64::try_from(AT_ONCE).unwrap_or(i64::MAX));
    let old = tx.rows(
        WITH_EVENTS,
        params![request.job_type, request.status, ended, seq, request.ended_before, limit],
        |row| Ok((EndedAt(row.get(0)?, row.get(1)?), read::<String>(row, 2)?)),
    )?;
    let mut last = None;
    for (place, id) in old {
        tx.execute("DELETE FROM job_events WHERE job_id = ?1", params![id])?;
        last = Some(place);
    }
    Ok(last)
}

pub(super) const WITH_EVENTS: &str = "SELECT completed_at, seq, id FROM jobs INDEXED BY jobs_finished
      WHERE type = ?1 AND status = ?2 AND (completed_at, seq) > (?3, ?4) AND completed_at < ?5
      ORDER BY completed_at, seq LIMIT ?6";

/// Plans of this job that will never be carried out; and, on its paths, effects
/// that a later one has replaced, of this job or of jobs that are gone already.
const REPLACED: &str = "DELETE FROM effects
      WHERE path IN (SELECT path FROM effects mine WHERE mine.job_id = ?1)
        AND (job_id = ?1 OR NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = effects.job_id))
        AND (state = 'planned'
             OR EXISTS (SELECT 1 FROM effects later
                         WHERE later.path = effects.path AND later.applied_in > effects.applied_in))";

/// Paths of which nothing is known but what jobs did that are gone, all of it
/// longer ago. Whole paths, because an older effect would come back into view as
/// if it were the latest.
pub(super) const FORGETTABLE: &str = "SELECT path FROM effects GROUP BY path
     HAVING max(state = 'planned') = 0 AND max(coalesce(applied_at, 0)) < ?1
        AND max(EXISTS (SELECT 1 FROM jobs WHERE jobs.id = effects.job_id)) = 0
      LIMIT ?2";

/// Looked for without a lock: it means walking past everything that stays.
pub(super) fn forgettable(conn: &Connection, ended_before: Millis) -> Result<Vec<String>> {
    let mut statement = conn.prepare_cached(FORGETTABLE).map_err(sql_error)?;
    let limit = i64::try_from(AT_ONCE).unwrap_or(i64::MAX);
    let paths = statement.query_map(params![ended_before, limit], |row| read(row, 0)).map_err(sql_error)?;
    paths.collect::<rusqlite::Result<_>>().map_err(sql_error)
}

/// Forgets these paths, if it is still so.
pub(super) fn forget(tx: &Tx<'_>, paths: &[String], ended_before: Millis) -> Result<u64> {
    let mut forgotten = 0;
    for path in paths {
        forgotten += u64::from(tx.execute(FORGET, params![path, ended_before])? > 0);
    }
    Ok(forgotten)
}

const FORGET: &str = "DELETE FROM effects WHERE path = ?1
        AND NOT EXISTS (SELECT 1 FROM effects known
                         WHERE known.path = ?1
                           AND (known.state = 'planned' OR known.applied_at >= ?2
                                OR EXISTS (SELECT 1 FROM jobs WHERE jobs.id = known.job_id)))";
