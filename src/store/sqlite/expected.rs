//! What the disk should hold: read in pages, in order of path, and looked at
//! once more under the write lock before anybody is told of a difference.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::connection::sql_error;
use super::row::read;
use super::tx::Tx;
use super::{completed, enqueue};
use crate::error::Result;
use crate::json::JsonText;
use crate::payload::Hold;
use crate::state::Status;
use crate::store::{
    Confirmation, ExpectedFile, ExpectedPage, ExpectedQuery, ExpectedStamp, FileStamp, PathEffect, RepairJob, Requeued,
    Suspicion,
};

/// Along the table itself, which is in order of path. Which of a path's effects
/// is the latest is found out as they come: to have SQLite do it costs twice as
/// much.
pub(super) const PAGE: &str = "SELECT path, applied_in, size, mtime, inode, 1, iif(?3, sha256, NULL) FROM effects
      WHERE path > ?1 ORDER BY path LIMIT ?2";

/// The same for one type of jobs; those that were pruned have none.
const PAGE_OF_TYPE: &str = "SELECT path, latest, size, mtime, inode, applied, iif(?3, sha256, NULL) FROM (
        SELECT path, max(applied_in) AS latest, job_id, size, mtime, inode, sha256, count(applied_in) AS applied
          FROM effects
         WHERE path > ?1 GROUP BY path)
      WHERE latest IS NOT NULL AND (SELECT type FROM jobs WHERE id = job_id) = ?4 ORDER BY path LIMIT ?2";

pub(super) fn page(conn: &Connection, query: &ExpectedQuery) -> Result<ExpectedPage> {
    let Some(job_type) = &query.job_type else { return whole_page(conn, query) };
    let mut statement = conn.prepare_cached(PAGE_OF_TYPE).map_err(sql_error)?;
    let rows = statement.query_map(params![query.after, query.limit, query.hashes, job_type], stamp);
    let files: Vec<ExpectedStamp> = rows.and_then(Iterator::collect).map_err(sql_error)?;
    let next = (files.len() == query.limit as usize).then(|| files.last().map(|file| file.path.clone())).flatten();
    Ok(ExpectedPage { files, next })
}

fn whole_page(conn: &Connection, query: &ExpectedQuery) -> Result<ExpectedPage> {
    let mut statement = conn.prepare_cached(PAGE).map_err(sql_error)?;
    let rows = statement.query_map(params![query.after, query.limit, query.hashes], |row| {
        Ok(Applied { at: row.get(1)?, file: stamp(row)? })
    });
    let mut effects: Vec<Applied> = rows.and_then(Iterator::collect).map_err(sql_error)?;
    let mut next = None;
    if effects.len() == query.limit as usize
        && let Some(Applied { file: last, .. }) = effects.last()
    {
        // There may be more of the last path: it is left to the next page.
        let whole = effects.iter().rposition(|effect| effect.file.path != last.path).map_or(0, |before| before + 1);
        if whole == 0 {
            let path = last.path.clone();
            let files = file(conn, &path)?.map(|file| file.stamp).into_iter().collect();
            return Ok(ExpectedPage { files, next: Some(path) });
        }
        effects.truncate(whole);
        next = effects.last().map(|effect| effect.file.path.clone());
    }
    let paths = effects.chunk_by_mut(|one, other| one.file.path == other.file.path);
    Ok(ExpectedPage { files: paths.filter_map(latest).collect(), next })
}

/// An effect; one that is only planned has not been applied at any time.
struct Applied {
    at: Option<i64>,
    file: ExpectedStamp,
}

/// The latest of a path's effects, if any was applied.
fn latest(effects: &mut [Applied]) -> Option<ExpectedStamp> {
    let applied = effects.iter().filter(|effect| effect.at.is_some()).count() as u64;
    let latest = effects.iter_mut().max_by_key(|effect| effect.at).filter(|effect| effect.at.is_some())?;
    latest.file.superseded = applied - 1;
    Some(std::mem::take(&mut latest.file))
}

fn stamp(row: &rusqlite::Row<'_>) -> rusqlite::Result<ExpectedStamp> {
    Ok(ExpectedStamp {
        path: read(row, 0)?,
        size: size(row, 2)?,
        stamp: FileStamp {
            mtime: row.get::<_, Option<i64>>(3)?.unwrap_or(0),
            inode: row.get::<_, Option<i64>>(4)?.unwrap_or(0),
        },
        sha256: row.get(6)?,
        superseded: u64::try_from(row.get::<_, i64>(5)? - 1).unwrap_or(0),
    })
}

fn size(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|size| u64::try_from(size).unwrap_or(0)))
}

/// All that is known of one path; `None` if nothing was ever applied there.
pub(super) fn file(conn: &Connection, path: &str) -> Result<Option<ExpectedFile>> {
    let latest = conn
        .prepare_cached(
            "SELECT path, latest, size, mtime, inode, applied, sha256, job_id, (SELECT type FROM jobs WHERE id = job_id)
               FROM (SELECT path, max(applied_in) AS latest, size, mtime, inode, count(applied_in) AS applied, sha256,
                            job_id
                       FROM effects WHERE path = ?1 GROUP BY path)
              WHERE latest IS NOT NULL",
        )
        .and_then(|mut statement| {
            let read = |row: &rusqlite::Row<'_>| Ok((stamp(row)?, read::<String>(row, 7)?, read::<Option<String>>(row, 8)?));
            statement.query_row([path], read).optional()
        })
        .map_err(sql_error)?;
    let Some((stamp, job_id, job_type)) = latest else { return Ok(None) };
    // Planned by a job that is unfinished. One that failed leaves its plan to a retry and is not at work.
    let planned = conn
        .prepare_cached(
            "SELECT sha256 FROM effects WHERE path = ?1 AND state = 'planned'
                AND EXISTS (SELECT 1 FROM jobs WHERE id = effects.job_id AND status = 'claimed')",
        )
        .and_then(|mut statement| statement.query_map([path], |row| row.get(0))?.collect())
        .map_err(sql_error)?;
    Ok(Some(ExpectedFile { job_id, job_type, stamp, planned }))
}

/// `0` is the character after `/`.
pub(super) fn touched_below(conn: &Connection, folder: &str) -> Result<bool> {
    conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM effects WHERE path > ?1 || '/' AND path < ?1 || '0')")
        .and_then(|mut statement| statement.query_row([folder], |row| row.get(0)))
        .map_err(sql_error)
}

/// Under the write lock nothing is applied, so what is seen now is so.
pub(super) fn confirm(tx: &Tx<'_>, suspicion: &Suspicion) -> Result<Confirmation> {
    let in_flight = holder(tx, &suspicion.path)?;
    let latest = file(tx.conn, &suspicion.path)?.map(|file| file.job_id);
    if latest.as_ref() != Some(&suspicion.job_id) {
        return Ok(Confirmation::Changed { by: in_flight.or(latest) });
    }
    if !(suspicion.still_so)() {
        return Ok(Confirmation::Changed { by: in_flight });
    }
    Ok(Confirmation::Confirmed { in_flight })
}

/// The unfinished job that has a path, also one that another program has inserted.
fn holder(tx: &Tx<'_>, path: &str) -> Result<Option<String>> {
    let key = Hold::path(path).map(|hold| hold.as_str().to_owned()).unwrap_or_default();
    completed::holder(tx, &key)
}

/// Queued only on top of what it puts back.
pub(super) fn repair(tx: &Tx<'_>, repair: &RepairJob) -> Result<Requeued> {
    if let Some(by) = holder(tx, &repair.path)? {
        return Ok(Requeued::Overtaken { by: Some(by) });
    }
    let latest = file(tx.conn, &repair.path)?.map(|file| file.job_id);
    if latest.as_ref() != Some(&repair.left_by) {
        return Ok(Requeued::Overtaken { by: latest });
    }
    enqueue::insert(tx, &repair.job).map(Requeued::Queued)
}

/// What jobs did to a path, newest first; what is still planned comes before.
pub(super) fn history(conn: &Connection, path: &str) -> Result<Vec<PathEffect>> {
    let mut statement = conn
        .prepare_cached(
            "SELECT e.job_id, j.type, j.status, coalesce(e.applied_at, j.completed_at), e.sha256, e.size,
                    e.precondition, e.state, j.payload
               FROM effects e LEFT JOIN jobs j ON j.id = e.job_id
              WHERE e.path = ?1 ORDER BY e.applied_in IS NOT NULL, e.applied_in DESC",
        )
        .map_err(sql_error)?;
    let rows = statement
        .query_map([path], |row| {
            let job = match read::<Option<String>>(row, 1)? {
                Some(job_type) => Some((job_type, row.get::<_, Status>(2)?)),
                None => None,
            };
            let before: String = read(row, 6)?;
            Ok(PathEffect {
                job_id: read(row, 0)?,
                job,
                at: row.get(3)?,
                sha256: row.get(4)?,
                size: size(row, 5)?,
                before: (before != "absent").then_some(before),
                applied: read::<String>(row, 7)? == "applied",
                payload: read::<Option<JsonText>>(row, 8)?,
            })
        })
        .map_err(sql_error)?;
    rows.collect::<rusqlite::Result<_>>().map_err(sql_error)
}
