//! Gates and holds: what keeps a pending job from running, and what opens.
//!
//! A pending job stands at exactly one gate. When that one opens, the next is
//! looked at: waiting → delayed/backoff → held → ready. Nothing is ever
//! skipped at claim time; only `ready` rows are in the index a claim walks.
//!
//! Why there is no deadlock: a job waits only for jobs with a lower seq
//! (`waiting_on` is checked at enqueue, holds are ordered by seq) or for one
//! that is claimed, and a claimed job waits for nothing.

use rusqlite::params;

use super::aside::Around;
use super::row::{hold_keys, read};
use super::tx::Tx;
use crate::clock::Millis;
use crate::error::{ErrorKind, Result};
use crate::state::{Gate, Status};

/// What decides a pending job's gate.
pub(super) struct Waiter<'a> {
    pub(super) seq: i64,
    pub(super) waiting_on: Option<&'a str>,
    pub(super) run_at: Option<Millis>,
    pub(super) rescheduled: bool,
    pub(super) holds: &'a [String],
}

/// The gate a pending job stands at. Its own hold rows may exist already.
pub(super) fn gate_of(tx: &Tx<'_>, job: &Waiter<'_>) -> Result<Gate> {
    if job.waiting_on.is_some() {
        return Ok(Gate::Waiting);
    }
    if job.run_at.is_some_and(|time| time > tx.now) {
        return Ok(if job.rescheduled { Gate::Backoff } else { Gate::Delayed });
    }
    gate_of_holds(tx, job.seq, job.holds)
}

fn gate_of_holds(tx: &Tx<'_>, seq: i64, keys: &[String]) -> Result<Gate> {
    for key in keys {
        // Before it in order, or claimed out of order: a row that was admitted
        // or retried late may have a lower seq than the one that runs.
        let behind = tx.row(
            "SELECT 1 FROM job_holds WHERE key = ?1 AND seq < ?2
             UNION ALL
             SELECT 1 FROM job_holds WHERE key = ?1 AND active = 1 AND seq <> ?2
             LIMIT 1",
            params![key, seq],
            |_| Ok(()),
        )?;
        if behind.is_some() {
            return Ok(Gate::Held);
        }
    }
    Ok(Gate::Ready)
}

pub(super) fn take_holds(tx: &Tx<'_>, seq: i64, job_id: &str, keys: &[String], active: bool) -> Result<()> {
    for key in keys {
        tx.execute(
            "INSERT INTO job_holds (key, seq, job_id, active) VALUES (?1, ?2, ?3, ?4)",
            params![key, seq, job_id, active],
        )?;
    }
    Ok(())
}

/// After a job took holds out of turn (admitted or retried late, or paths that
/// became known at decide): whoever was first on a key may no longer be.
pub(super) fn demote_others(tx: &Tx<'_>, seq: i64, keys: &[String]) -> Result<()> {
    for key in keys {
        // Only a key's first holder can be ready, so one look is enough.
        let first = tx.row(
            "SELECT j.seq FROM job_holds h JOIN jobs j ON j.seq = h.seq
              WHERE h.key = ?1 AND j.gate = 'ready'
                AND h.seq = (SELECT min(seq) FROM job_holds WHERE key = ?1 AND seq <> ?2)",
            params![key, seq],
            |row| row.get::<_, i64>(0),
        )?;
        let Some(first) = first else { continue };
        if gate_of_holds(tx, first, std::slice::from_ref(key))? == Gate::Held {
            tx.execute("UPDATE OR FAIL jobs SET gate = 'held' WHERE seq = ?1 AND gate = 'ready'", params![first])?;
        }
    }
    Ok(())
}

/// A job becomes, or stops being, the one that runs on its keys.
pub(super) fn set_active(tx: &Tx<'_>, seq: i64, keys: &[String], active: bool) -> Result<()> {
    for key in keys {
        tx.execute("UPDATE job_holds SET active = ?3 WHERE key = ?1 AND seq = ?2", params![key, seq, active])?;
    }
    Ok(())
}

/// A job has run: earlier ones on its keys that failed or were cancelled can no
/// longer be retried. A claim that was given back without having run does not
/// come here.
pub(super) fn close_retries(tx: &Tx<'_>, seq: i64, job_id: &str, keys: &[String]) -> Result<()> {
    for key in keys {
        tx.execute(
            "UPDATE retry_guards SET overtaken_by = ?3 WHERE key = ?1 AND seq < ?2 AND overtaken_by IS NULL",
            params![key, seq, job_id],
        )?;
    }
    Ok(())
}

/// Whoever is first on a key now and was held only by holds may run.
pub(super) fn wake_next(tx: &Tx<'_>, keys: &[String]) -> Result<()> {
    for key in keys {
        let first = tx.row(
            "SELECT j.seq, j.holds FROM job_holds h JOIN jobs j ON j.seq = h.seq
              WHERE h.key = ?1 AND j.gate = 'held'
                AND h.seq = (SELECT min(seq) FROM job_holds WHERE key = ?1)",
            params![key],
            |row| Ok((row.get::<_, i64>(0)?, read::<Option<String>>(row, 1)?)),
        )?;
        let Some((seq, holds)) = first else { continue };
        if gate_of_holds(tx, seq, &hold_keys(holds.as_deref()))? == Gate::Ready {
            tx.execute("UPDATE OR FAIL jobs SET gate = 'ready' WHERE seq = ?1 AND gate = 'held'", params![seq])?;
        }
    }
    Ok(())
}

/// Everything that follows from a job's end: its holds go, the next on each
/// key may run, and those that waited on a completed job go on.
pub(super) fn after_end(tx: &Tx<'_>, seq: i64, job_id: &str, keys: &[String], status: Status) -> Result<()> {
    let mut strayed = false;
    for key in keys {
        strayed |= tx.execute("DELETE FROM job_holds WHERE key = ?1 AND seq = ?2", params![key, seq])? == 0;
        if status != Status::Completed {
            tx.execute(
                "INSERT INTO retry_guards (key, seq) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                params![key, seq],
            )?;
        }
    }
    wake_next(tx, keys)?;
    if strayed {
        release_strays(tx, seq, job_id)?;
        // In the index of active holds it may have stood under these until now.
        wake_next(tx, keys)?;
    }
    if status == Status::Completed {
        open_waiters(tx, job_id)?;
    }
    Ok(())
}

/// A hold of an ended job was not found by its key, because the one or the other is damaged. Under
/// whatever key it stands, it would hold up others for ever, and nobody would say why.
fn release_strays(tx: &Tx<'_>, seq: i64, job_id: &str) -> Result<()> {
    // One that was cancelled before it was admitted never had any.
    let ran = tx.row("SELECT 1 FROM jobs WHERE seq = ?1 AND claimed_at IS NOT NULL", params![seq], |_| Ok(()))?;
    if ran.is_none() {
        return Ok(());
    }
    let strays = tx.rows(STRAYS, params![seq], |row| read::<String>(row, 0))?;
    if strays.is_empty() {
        return Ok(());
    }
    tracing::warn!(job_id, ?strays, "the database is damaged: a hold of a job that has ended is not under its key");
    // One that is active is in an index, too, and there under its old key, where SQLite would not find what it is to take
    // out. So the index is made anew; there is a row in it for each hold of a running job.
    let active = "SELECT 1 FROM job_holds WHERE seq = ?1 AND active = 1 LIMIT 1";
    if tx.row(active, params![seq], |_| Ok(()))?.is_some() {
        match tx.execute("REINDEX job_holds_active", []) {
            // It has become the key of another running job, so there is no such index.
            Err(error) if error.kind() == ErrorKind::Internal => {
                tx.execute("DELETE FROM job_holds WHERE seq = ?1 AND active = 0", params![seq])?;
                return wake_next(tx, &strays);
            }
            made => drop(made?),
        }
    }
    // By its number, because not every key can be bound back.
    tx.execute("DELETE FROM job_holds WHERE seq = ?1", params![seq])?;
    wake_next(tx, &strays)
}

/// By looking at all there are.
const STRAYS: &str = "SELECT key FROM job_holds WHERE seq = ?1";

/// Waiters of a completed job move to their next gate. Cancelled ones forget
/// it too, so that a later retry of them has nothing to wait for.
fn open_waiters(tx: &Tx<'_>, job_id: &str) -> Result<()> {
    let waiters =
        tx.rows("SELECT seq, status, run_at, holds FROM jobs WHERE waiting_on = ?1", params![job_id], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, Status>(1)?,
                row.get::<_, Option<Millis>>(2)?,
                read::<Option<String>>(row, 3)?,
            ))
        })?;
    for (seq, status, run_at, holds) in waiters {
        let gate = if status == Status::Pending {
            let holds = hold_keys(holds.as_deref());
            Some(gate_of(tx, &Waiter { seq, waiting_on: None, run_at, rescheduled: false, holds: &holds })?)
        } else {
            None
        };
        // A plain-SQL row that is not admitted yet stays so; admission finds the wait is over.
        tx.execute(
            "UPDATE OR FAIL jobs SET waiting_on = NULL, gate = CASE gate WHEN 'waiting' THEN ?2 ELSE gate END WHERE seq = ?1",
            params![seq, gate],
        )?;
    }
    Ok(())
}

/// Rows promoted in one go; more wait for the next claim, so that a hundred
/// thousand jobs that fall due together do not stop the writer.
const PROMOTE_AT_ONCE: u32 = 5_000;

/// Opens the gate of every row whose time has come.
pub(super) fn promote_due(tx: &Tx<'_>) -> Result<()> {
    let mut due = tx.rows(PROMOTE_DUE, params![tx.now, PROMOTE_AT_ONCE], read_due)?;
    due.extend(tx.rows(PROMOTE_EARLY, params![tx.now, PROMOTE_AT_ONCE], read_due)?);
    for (seq, holds) in due {
        promote(tx, seq, holds.as_deref())?;
    }
    Ok(())
}

fn promote(tx: &Tx<'_>, seq: i64, holds: Option<&str>) -> Result<()> {
    let gate = gate_of_holds(tx, seq, &hold_keys(holds))?;
    tx.execute(
        "UPDATE OR FAIL jobs SET gate = ?2 WHERE seq = ?1 AND gate IN ('delayed', 'backoff')",
        params![seq, gate],
    )?;
    Ok(())
}

/// The same by the indexes alone, so that an error tells of which row it is.
pub(super) fn promote_carefully(tx: &Tx<'_>, around: &Around) -> Result<()> {
    let limit = around.limit(PROMOTE_AT_ONCE);
    let mut due = Vec::new();
    for sql in [PROMOTE_DUE, PROMOTE_EARLY] {
        let sql = sql.replacen("seq, holds", "seq", 1);
        due.extend(tx.rows(&sql, params![tx.now, limit], |row| row.get::<_, i64>(0))?);
    }
    around.others(&mut due);
    for seq in due {
        let one = || {
            let holds: Option<Option<String>> =
                tx.row("SELECT holds FROM jobs WHERE seq = ?1", params![seq], |row| read(row, 0))?;
            promote(tx, seq, holds.flatten().as_deref())
        };
        one().map_err(|error: crate::Error| error.of_row(seq))?;
    }
    Ok(())
}

pub(super) const PROMOTE_DUE: &str = "SELECT seq, holds FROM jobs INDEXED BY jobs_due
      WHERE gate IN ('delayed', 'backoff') AND run_at <= ?1 ORDER BY run_at LIMIT ?2";

/// Backoffs that no clock of ours could have meant: farther away than the
/// longest one, so the clock has been set back since.
pub(super) const PROMOTE_EARLY: &str = "SELECT seq, holds FROM jobs INDEXED BY jobs_backoff_cap
      WHERE gate = 'backoff' AND run_at - backoff_max > ?1 LIMIT ?2";

fn read_due(row: &rusqlite::Row<'_>) -> rusqlite::Result<(i64, Option<String>)> {
    Ok((row.get(0)?, read(row, 1)?))
}
