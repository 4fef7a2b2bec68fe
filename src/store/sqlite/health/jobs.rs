//! Jobs that do not get on, and what is odd about them. These look at every row
//! where they have to: no index is kept for a question that is asked once.

use rusqlite::types::ValueRef;
use rusqlite::{Row, params};

use super::super::connection::sql_error;
use super::super::reclaim;
use super::super::row::{hold_keys, read};
use super::super::stats;
use super::{Health, NAMED};
use crate::clock::Millis;
use crate::error::{Error, ErrorKind, Result};
use crate::json::sha256_hex;
use crate::payload::JobTypes;
use crate::store::{Blocked, HeldLease};

/// Jobs of which something lies in the future.
pub(crate) struct Ahead {
    pub(crate) jobs: i64,
    /// The one that is farthest ahead.
    pub(crate) id: String,
    pub(crate) at: Millis,
}

/// Jobs that ended before they began.
pub(crate) struct Backwards {
    pub(crate) jobs: i64,
    pub(crate) id: String,
}

/// A decided job that nobody owns.
pub(crate) struct Unapplied {
    pub(crate) id: String,
    pub(crate) last_error: Option<String>,
    /// How many there are.
    pub(crate) of: i64,
}

/// A job that waits on one that will never complete.
pub(crate) struct Orphan {
    pub(crate) id: String,
    pub(crate) waiting_on: String,
    /// How many there are.
    pub(crate) of: i64,
}

/// Rows of one type that no jobq process has admitted.
pub(crate) struct Unadmitted {
    pub(crate) job_type: String,
    pub(crate) jobs: i64,
    pub(crate) oldest: Millis,
}

impl Health {
    /// The types there are jobs of.
    pub(crate) fn types(&self) -> Result<Vec<String>> {
        Ok(stats::types(&self.conn)?.iter().map(stats::TypeName::shown).collect())
    }

    /// Who has what.
    pub(crate) fn leases(&self) -> Result<Vec<HeldLease>> {
        reclaim::leases(&self.conn)
    }

    /// When each claimed job was last heard of, by seq.
    pub(crate) fn signs_of_life(&self) -> Result<Vec<(i64, Millis)>> {
        self.rows(
            "SELECT seq, coalesce(heartbeat_at, locked_at, 0) FROM jobs INDEXED BY jobs_by_status
              WHERE status = 'claimed' AND locked_by IS NOT NULL",
            params![],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    pub(crate) fn unapplied(&self) -> Result<Vec<Unapplied>> {
        self.rows(
            "SELECT id, last_error, count(*) OVER () FROM jobs INDEXED BY jobs_unowned
              WHERE status = 'claimed' AND locked_by IS NULL ORDER BY seq LIMIT ?1",
            params![NAMED],
            |row| Ok(Unapplied { id: read(row, 0)?, last_error: read(row, 1)?, of: row.get(2)? }),
        )
    }

    /// Failed jobs that others wait on, all of them.
    pub(crate) fn blocked(&self) -> Result<Vec<Blocked>> {
        self.rows(
            "SELECT p.id, p.type, p.last_error, count(*) FROM jobs w INDEXED BY jobs_waiting_on
               JOIN jobs p ON p.id = w.waiting_on
              WHERE w.waiting_on IS NOT NULL AND w.gate IN ('waiting', 'new') AND p.status = 'failed'
              GROUP BY p.seq ORDER BY p.seq",
            params![],
            |row| {
                Ok(Blocked { id: read(row, 0)?, job_type: read(row, 1)?, last_error: read(row, 2)?, jobs: row.get(3)? })
            },
        )
    }

    pub(crate) fn orphans(&self) -> Result<Vec<Orphan>> {
        self.rows(
            "SELECT w.id, w.waiting_on, count(*) OVER () FROM jobs w INDEXED BY jobs_waiting_on
              WHERE w.waiting_on IS NOT NULL AND w.gate = 'waiting'
                AND NOT EXISTS (SELECT 1 FROM jobs p WHERE p.id = w.waiting_on
                                   AND p.status IN ('pending', 'claimed', 'failed'))
              ORDER BY w.seq LIMIT ?1",
            params![NAMED],
            |row| Ok(Orphan { id: read(row, 0)?, waiting_on: read(row, 1)?, of: row.get(2)? }),
        )
    }

    /// Types with rows that wait to be admitted since before this time.
    pub(crate) fn unadmitted(&self, before: Millis) -> Result<Vec<Unadmitted>> {
        self.rows(
            "SELECT type, count(*), min(created_at) FROM jobs INDEXED BY jobs_new
              WHERE gate = 'new' AND created_at < ?1 GROUP BY type",
            params![before],
            |row| Ok(Unadmitted { job_type: read(row, 0)?, jobs: row.get(1)?, oldest: row.get(2)? }),
        )
    }

    /// Unfinished jobs that are admitted and lack a hold: one that they name, or one that their type asks for.
    pub(crate) fn without_holds(&self, types: &JobTypes) -> Result<Vec<String>> {
        let one = "SELECT 1 FROM job_holds WHERE key = ?1 AND seq = ?2";
        let mut one = self.conn.prepare_cached(one).map_err(sql_error)?;
        let found = self.rows(
            "SELECT seq, id, type, payload, holds FROM jobs INDEXED BY jobs_by_status
              WHERE (status = 'pending' AND gate <> 'new') OR status = 'claimed' ORDER BY seq",
            params![],
            |row| {
                let asked = types.check(&read::<String>(row, 2)?, &read::<String>(row, 3)?).and_then(Result::ok);
                let mut keys = hold_keys(read::<Option<String>>(row, 4)?.as_deref());
                keys.extend(asked.into_iter().flat_map(|checked| checked.holds).map(|hold| hold.as_str().to_owned()));
                for key in keys {
                    if !one.exists(params![key, row.get::<_, i64>(0)?])? {
                        return Ok(Some(read(row, 1)?));
                    }
                }
                Ok(None)
            },
        )?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Jobs that were queued, claimed, heard of or ended after this time.
    pub(crate) fn ahead_of(&self, time: Millis) -> Result<Option<Ahead>> {
        // With a bare column beside max(), SQLite takes it from the row that has the maximum.
        let found = self.rows(
            "SELECT count(*), id, max(at) FROM (
               SELECT id, max(created_at, coalesce(claimed_at, created_at), coalesce(heartbeat_at, created_at),
                              coalesce(completed_at, created_at)) AS at FROM jobs)
              WHERE at > ?1 HAVING count(*) > 0",
            params![time],
            |row| Ok(Ahead { jobs: row.get(0)?, id: read(row, 1)?, at: row.get(2)? }),
        )?;
        Ok(found.into_iter().next())
    }

    /// Jobs that were claimed before they were queued, or ended before they were
    /// claimed, by more than this.
    pub(crate) fn backwards(&self, tolerance: Millis) -> Result<Option<Backwards>> {
        let found = self.rows(
            "SELECT count(*), id, max(seq) FROM jobs
              WHERE claimed_at < created_at - ?1 OR completed_at < claimed_at - ?1 HAVING count(*) > 0",
            params![tolerance],
            |row| Ok(Backwards { jobs: row.get(0)?, id: read(row, 1)? }),
        )?;
        Ok(found.into_iter().next())
    }

    /// Compares payloads with their hashes, a bounded number of jobs behind `after`
    /// at a time, so that no snapshot is kept for long; each payload is looked at
    /// where SQLite has it. Returns the seq to go on from.
    pub(crate) fn check_payloads(&self, after: i64, damaged: &mut dyn FnMut(String)) -> Result<Option<i64>> {
        const AT_ONCE: u32 = 1_000;
        let mut statement = self
            .conn
            .prepare_cached("SELECT seq, id, payload_hash, payload FROM jobs WHERE seq > ?1 ORDER BY seq LIMIT ?2")
            .map_err(sql_error)?;
        let mut rows = statement.query(params![after, AT_ONCE]).map_err(sql_error)?;
        let mut last = None;
        while let Some(row) = rows.next().map_err(sql_error)? {
            let seq = row.get(0).map_err(sql_error)?;
            // In a damaged table one may come again and again.
            if seq <= last.unwrap_or(after) {
                return Err(Error::new(ErrorKind::Corrupt, format!("the rows behind seq {after} are out of order")));
            }
            last = Some(seq);
            // A row that nobody has admitted has none yet.
            let Some(expected) = read::<Option<String>>(row, 2).map_err(sql_error)? else { continue };
            let actual = match row.get_ref(3).map_err(sql_error)? {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => sha256_hex(bytes),
                _ => String::new(),
            };
            if actual != expected {
                damaged(read(row, 1).map_err(sql_error)?);
            }
        }
        Ok(last)
    }

    /// Whether a staged file of a job is still to be applied. If what stands there is
    /// damaged, it may be.
    pub(crate) fn is_planned(&self, job_id: &str, stage: &str) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM effects WHERE job_id = ?1 AND stage = ?2 AND state <> 'applied')";
        let mut statement = self.conn.prepare_cached(sql).map_err(sql_error)?;
        statement.query_row([job_id, stage], |row| row.get(0)).map_err(sql_error)
    }

    fn rows<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.conn.prepare_cached(sql).map_err(sql_error)?;
        let rows = statement.query_map(params, row).map_err(sql_error)?;
        rows.collect::<rusqlite::Result<_>>().map_err(sql_error)
    }
}
