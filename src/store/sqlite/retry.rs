//! The operator brings a failed or cancelled job back: explicit, never
//! automatic. It keeps its place in order, and is refused when that place is
//! already behind something that ran since.

use rusqlite::params;

use super::events::{self, NewEvent};
use super::gates::{self, Waiter};
use super::row::{self, hold_keys, read};
use super::tx::Tx;
use super::{admit, decide, enqueue};
use crate::error::{Error, Result};
use crate::job::Job;
use crate::state::{Gate, Status};
use crate::store::{AcceptedPath, WITHDRAWN};

pub(super) fn retry(tx: &Tx<'_>, id: &str, accepted: &[AcceptedPath]) -> Result<Job> {
    admit::admit(tx)?;
    let sql = format!("SELECT {} FROM jobs WHERE id = ?1", row::COLUMNS);
    let job = tx.row(&sql, params![id], row::job)?.ok_or_else(|| Error::not_found(id))?;
    if !matches!(job.status, Status::Failed | Status::Cancelled) {
        let instead = match job.status {
            Status::Completed => "`jobq enqueue` queues the same once more",
            Status::Claimed => "`jobq cancel` asks it to stop",
            _ => "`jobq show` says what it waits for",
        };
        return Err(Error::wrong_state(format!(
            "job {id} is {}; only failed and cancelled jobs can be retried; {instead}",
            job.status
        )));
    }
    refuse_if_withdrawn(&job)?;
    if job.outcome.is_none() && !accepted.is_empty() {
        return Err(Error::wrong_state(format!("job {id} has decided nothing that could be applied to the disk")));
    }
    let holds = hold_keys(job.holds.as_ref().map(crate::json::JsonText::as_str));
    refuse_if_overtaken(tx, &job, &holds)?;
    refuse_if_key_taken(tx, &job)?;
    if let Some(parent) = &job.waiting_on {
        enqueue::open_parent(tx, parent, job.seq)?;
    }
    tx.execute("DELETE FROM retry_guards WHERE seq = ?1", params![job.seq])?;
    if job.outcome.is_some() {
        accept(tx, &job.id, accepted)?;
        decided_again(tx, &job, &holds)?;
    } else {
        pending_again(tx, &job, &holds)?;
    }
    tx.row(&sql, params![id], row::job)?.ok_or_else(|| Error::not_found(id))
}

fn pending_again(tx: &Tx<'_>, job: &Job, holds: &[String]) -> Result<()> {
    // A row that failed validation was never admitted: it is looked at afresh.
    let gate = if job.payload_hash.is_none() {
        Gate::New
    } else {
        gates::take_holds(tx, job.seq, &job.id, holds, false)?;
        gates::demote_others(tx, job.seq, holds)?;
        let waiting_on = job.waiting_on.as_deref();
        gates::gate_of(tx, &Waiter { seq: job.seq, waiting_on, run_at: None, rescheduled: false, holds })?
    };
    let event_seq = tx.row(
        "UPDATE OR FAIL jobs SET status = 'pending', gate = ?2, attempts = 0, completed_at = NULL, run_at = NULL,
                cancel_requested = 0, event_seq = event_seq + (event_seq < 9223372036854775807)
          WHERE seq = ?1 AND status IN ('failed', 'cancelled') RETURNING event_seq",
        params![job.seq, gate],
        |row| row.get(0),
    )?;
    retried(tx, job, 0, event_seq)?;
    if gate == Gate::New {
        // In this transaction, before anything behind it on its holds.
        tx.admitted.set(false);
        admit::admit(tx)?;
    }
    Ok(())
}

/// What it does is decided; it only has to be applied.
fn decided_again(tx: &Tx<'_>, job: &Job, holds: &[String]) -> Result<()> {
    for key in holds {
        let busy = tx.row("SELECT job_id FROM job_holds WHERE key = ?1 AND active = 1", params![key], |row| {
            row.get::<_, String>(0)
        })?;
        if let Some(other) = busy {
            return Err(Error::wrong_state(format!(
                "job {}: job {other} is at work on {key}; retry when it has ended",
                job.id
            )));
        }
    }
    gates::take_holds(tx, job.seq, &job.id, holds, true)?;
    gates::demote_others(tx, job.seq, holds)?;
    let event_seq = tx.row(
        "UPDATE OR FAIL jobs SET status = 'claimed', completed_at = NULL, run_at = NULL, event_seq = event_seq + (event_seq < 9223372036854775807)
          WHERE seq = ?1 AND status = 'failed' RETURNING event_seq",
        params![job.seq],
        |row| row.get(0),
    )?;
    retried(tx, job, job.attempts, event_seq)
}

fn retried(tx: &Tx<'_>, job: &Job, attempt: u32, event_seq: Option<i64>) -> Result<()> {
    let seq = event_seq.ok_or_else(|| Error::not_found(&job.id))?;
    events::write(tx, &NewEvent { job_id: &job.id, seq, attempt, event_type: "retried", data: None }).map(drop)
}

/// What the operator has seen is what the effects now come on top of.
fn accept(tx: &Tx<'_>, job_id: &str, accepted: &[AcceptedPath]) -> Result<()> {
    for AcceptedPath { path, precondition, observed } in accepted {
        tx.execute(
            "UPDATE effects SET precondition = ?3, observed = ?4
              WHERE job_id = ?1 AND path = ?2 AND state = 'planned'",
            params![job_id, path, decide::precondition(precondition), observed],
        )?;
    }
    Ok(())
}

/// Its caller was told that nothing had happened, and its content is gone.
fn refuse_if_withdrawn(job: &Job) -> Result<()> {
    let withdrawn = job.last_error.as_deref().and_then(|error| error.strip_prefix(WITHDRAWN));
    if job.outcome.is_none() || !withdrawn.is_some_and(|rest| rest.starts_with(':')) {
        return Ok(());
    }
    Err(Error::wrong_state(format!("commit {} was withdrawn and its content is gone; commit again", job.id)))
}

/// A later job on one of its keys has run, or is running: this one would undo
/// what that one does.
fn refuse_if_overtaken(tx: &Tx<'_>, job: &Job, holds: &[String]) -> Result<()> {
    for key in holds {
        let by = tx.row(
            "SELECT overtaken_by FROM retry_guards WHERE key = ?1 AND seq = ?2 AND overtaken_by IS NOT NULL
             UNION ALL
             SELECT job_id FROM job_holds WHERE key = ?1 AND active = 1 AND seq > ?2",
            params![key, job.seq],
            |row| read::<String>(row, 0),
        )?;
        if let Some(by) = by {
            return Err(Error::wrong_state(format!(
                "job {}: the later job {by} has already started on {key}, a retry would undo it; queue a new job instead",
                job.id
            )));
        }
    }
    Ok(())
}

fn refuse_if_key_taken(tx: &Tx<'_>, job: &Job) -> Result<()> {
    let Some(key) = job.idempotency_key.as_deref().filter(|key| !key.is_empty()) else { return Ok(()) };
    match enqueue::by_active_key(tx, &job.job_type, key)? {
        None => Ok(()),
        Some(other) => {
            Err(Error::wrong_state(format!("job {}: its key is taken by the unfinished job {}", job.id, other.id)))
        }
    }
}
