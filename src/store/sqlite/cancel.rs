//! Calling jobs off. A pending job ends at once, a running one is asked to
//! stop, and whatever waits on a cancelled job is cancelled with it.

use rusqlite::params;

use super::events::{self, NewEvent};
use super::gates;
use super::row::{hold_keys, read};
use super::tx::Tx;
use crate::error::{Error, Result};
use crate::state::Status;
use crate::store::{CancelOutcome, Cancellation};

pub(super) fn cancel(tx: &Tx<'_>, id: &str) -> Result<Cancellation> {
    let found = tx.row(
        "SELECT seq, status, outcome IS NOT NULL, cancel_requested FROM jobs WHERE id = ?1",
        params![id],
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Status>(1)?, row.get::<_, bool>(2)?, row.get::<_, bool>(3)?)),
    )?;
    let Some((seq, status, decided, _)) = found else { return Err(Error::not_found(id)) };
    let outcome = match status {
        Status::Pending => {
            cancel_one(tx, seq, &Reason::default())?;
            CancelOutcome::Cancelled
        }
        Status::Claimed if decided => {
            return Err(Error::wrong_state(format!(
                "job {id} is decided: what it does is certain and it will complete"
            )));
        }
        Status::Claimed => {
            tx.execute(
                "UPDATE OR FAIL jobs SET cancel_requested = 1 WHERE seq = ?1 AND status = 'claimed'",
                params![seq],
            )?;
            CancelOutcome::Requested
        }
        Status::Cancelled => CancelOutcome::AlreadyCancelled,
        Status::Failed => CancelOutcome::WaitersOnly,
        Status::Completed => return Err(Error::wrong_state(format!("job {id} has completed; it cannot be cancelled"))),
    };
    // A running job's waiters follow when it has really stopped.
    let cancelled_waiters = if outcome == CancelOutcome::Requested { Vec::new() } else { cancel_waiters(tx, id)? };
    if outcome == CancelOutcome::WaitersOnly && cancelled_waiters.is_empty() {
        return Err(Error::wrong_state(format!("job {id} has failed already and nothing waits on it")));
    }
    Ok(Cancellation { id: id.to_owned(), outcome, cancelled_waiters })
}

/// Cancels what waits on a job, and what waits on that. Returns their ids.
pub(super) fn cancel_waiters(tx: &Tx<'_>, id: &str) -> Result<Vec<String>> {
    let mut cancelled = Vec::new();
    let Some(seq) = tx.row("SELECT seq FROM jobs WHERE id = ?1", params![id], |row| row.get::<_, i64>(0))? else {
        return Ok(cancelled);
    };
    // With a list, not recursion: a chain may be long. By seq: an id that is
    // not text could not be bound back.
    let mut parents = vec![(seq, id.to_owned())];
    while let Some((seq, parent)) = parents.pop() {
        let waiters = tx.rows(
            "SELECT seq, id FROM jobs WHERE waiting_on = (SELECT id FROM jobs WHERE seq = ?1) AND status = 'pending'",
            params![seq],
            |row| Ok((row.get::<_, i64>(0)?, read::<String>(row, 1)?)),
        )?;
        for (seq, waiter) in waiters {
            let why = Reason { last_error: None, data: Some(serde_json::json!({ "waited_on": parent }).to_string()) };
            cancel_one(tx, seq, &why)?;
            parents.push((seq, waiter.clone()));
            cancelled.push(waiter);
        }
    }
    Ok(cancelled)
}

/// Why a job was cancelled, for the row and for its event.
#[derive(Default)]
pub(super) struct Reason {
    pub(super) last_error: Option<String>,
    pub(super) data: Option<String>,
}

/// Cancels a pending job and what waits on it.
pub(super) fn cancel_pending(tx: &Tx<'_>, seq: i64, why: &Reason) -> Result<()> {
    let id = cancel_one(tx, seq, why)?;
    cancel_waiters(tx, &id).map(drop)
}

fn cancel_one(tx: &Tx<'_>, seq: i64, why: &Reason) -> Result<String> {
    let (id, attempts, event_seq, holds) = tx
        .row(
            "UPDATE OR FAIL jobs SET status = 'cancelled', gate = NULL, completed_at = ?2,
                    last_error = coalesce(?3, last_error), event_seq = event_seq + (event_seq < 9223372036854775807)
              WHERE seq = ?1 AND status = 'pending' RETURNING id, attempts, event_seq, holds",
            params![seq, tx.now, why.last_error],
            |row| {
                Ok((
                    read::<String>(row, 0)?,
                    read::<u32>(row, 1)?,
                    row.get::<_, i64>(2)?,
                    read::<Option<String>>(row, 3)?,
                ))
            },
        )?
        .ok_or_else(|| Error::wrong_state(format!("job number {seq} is no longer pending")))?;
    events::write(
        tx,
        &NewEvent { job_id: &id, seq: event_seq, attempt: attempts, event_type: "cancelled", data: why.data.clone() },
    )?;
    gates::after_end(tx, seq, &id, &hold_keys(holds.as_deref()), Status::Cancelled)?;
    Ok(id)
}
