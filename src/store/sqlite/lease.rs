//! The check every verb on a claimed job begins with, and the update it ends
//! with. Both name the token.

use rusqlite::params;

use super::events::{self, NewEvent};
use super::gates;
use super::pauses;
use super::row::{hold_keys, read};
use super::tx::Tx;
use crate::clock::Millis;
use crate::error::{Error, Result};
use crate::json::JsonText;
use crate::state::Status;
use crate::store::{Failure, Lease};

/// A claimed job as its owner finds it.
pub(super) struct Held {
    pub(super) status: Status,
    pub(super) attempts: u32,
    pub(super) max_attempts: u32,
    pub(super) run_at: Option<i64>,
    pub(super) event_seq: i64,
    pub(super) cancel_requested: bool,
    pub(super) decided: bool,
    /// The last try to apply it could not sync its folders.
    pub(super) sync_failed: bool,
    pub(super) backoff_max: i64,
    pub(super) holds: Vec<String>,
}

/// The job, if this lease is still the current one or the job ended under it.
pub(super) fn find(tx: &Tx<'_>, lease: &Lease) -> Result<Held> {
    let found = tx.row(
        "SELECT status, attempts, max_attempts, run_at, event_seq, cancel_requested, outcome IS NOT NULL,
                backoff_max, holds, token, locked_by IS NOT NULL, id,
                last_error >= 'sync_failed:' AND last_error < 'sync_failed;'
           FROM jobs WHERE seq = ?1",
        params![lease.seq],
        |row| {
            let held = Held {
                status: row.get(0)?,
                attempts: read(row, 1)?,
                max_attempts: read(row, 2)?,
                run_at: row.get(3)?,
                event_seq: row.get(4)?,
                cancel_requested: row.get(5)?,
                decided: row.get(6)?,
                sync_failed: row.get::<_, Option<bool>>(12)?.unwrap_or(false),
                backoff_max: row.get::<_, Option<i64>>(7)?.unwrap_or(0),
                holds: hold_keys(read::<Option<String>>(row, 8)?.as_deref()),
            };
            Ok((held, row.get::<_, i64>(9)?, row.get::<_, bool>(10)?, read::<String>(row, 11)?))
        },
    )?;
    // Compared as it is read, not in the query: an id that is not text could not be bound back.
    let Some((held, token, owned, _)) = found.filter(|(.., id)| *id == lease.id) else {
        return Err(Error::not_found(&lease.id));
    };
    if token != lease.token || (held.status == Status::Claimed && !owned) {
        return Err(Error::lease_lost(&lease.id, lease.token));
    }
    Ok(held)
}

/// The job, if this lease is still the current one.
pub(super) fn current(tx: &Tx<'_>, lease: &Lease) -> Result<Held> {
    let held = find(tx, lease)?;
    if held.status == Status::Claimed { Ok(held) } else { Err(Error::lease_lost(&lease.id, lease.token)) }
}

/// How a claimed job ends.
pub(super) struct End<'a> {
    pub(super) status: Status,
    pub(super) result: Option<&'a str>,
    pub(super) last_error: Option<String>,
    pub(super) data: Option<String>,
    /// Whether earlier jobs on its keys are overtaken by it: it may have changed what they would.
    pub(super) overtakes: bool,
}

impl<'a> End<'a> {
    pub(super) fn failed(failure: &'a Failure) -> Self {
        Self::failed_and_paused(failure, None)
    }

    /// Failed, and its type is paused until then.
    pub(super) fn failed_and_paused(failure: &'a Failure, until: Option<Millis>) -> Self {
        Self {
            status: Status::Failed,
            result: failure.result.as_deref().map(JsonText::as_str),
            last_error: Some(failure.text()),
            data: Some(pauses::told(failure, until).to_string()),
            overtakes: true,
        }
    }

    pub(super) fn cancelled() -> Self {
        Self { status: Status::Cancelled, result: None, last_error: None, data: None, overtakes: true }
    }
}

/// Ends a claimed job and does what follows. Returns the event's global id.
pub(super) fn end(tx: &Tx<'_>, lease: &Lease, held: &Held, end: End<'_>) -> Result<i64> {
    // What a completed job left is what its last attempt did, and not what an earlier one had to say.
    let changed = tx.execute(
        "UPDATE OR FAIL jobs SET status = ?3, completed_at = ?4, locked_by = NULL, locked_at = NULL,
                result = CASE ?3 WHEN 'completed' THEN ?5 ELSE coalesce(?5, result) END, last_error = coalesce(?6, last_error), event_seq = event_seq + (event_seq < 9223372036854775807)
          WHERE seq = ?1 AND token = ?2 AND status = 'claimed'",
        params![lease.seq, lease.token, end.status, tx.now, end.result, end.last_error],
    )?;
    if changed == 0 {
        return Err(Error::lease_lost(&lease.id, lease.token));
    }
    let event = NewEvent {
        job_id: &lease.id,
        seq: held.event_seq.saturating_add(1),
        attempt: held.attempts,
        event_type: end.status.as_str(),
        data: end.data,
    };
    if end.overtakes {
        gates::close_retries(tx, lease.seq, &lease.id, &held.holds)?;
    }
    after_end(tx, lease, &held.holds, end.status, &event)
}

/// What follows from an end. Returns the event's global id.
fn after_end(tx: &Tx<'_>, lease: &Lease, holds: &[String], status: Status, event: &NewEvent<'_>) -> Result<i64> {
    let event = events::write(tx, event)?;
    gates::after_end(tx, lease.seq, &lease.id, holds, status)?;
    if status == Status::Cancelled {
        super::cancel::cancel_waiters(tx, &lease.id)?;
    }
    Ok(event)
}
