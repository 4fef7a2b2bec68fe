//! Back to pending after a failed attempt. With the attempts used up the job
//! fails instead; with a cancel waiting it is cancelled.
//!
//! An attempt that pauses its type does not count: it was told to wait, and if that
//! used attempts up, an hour of a service's limits would fail all that is queued.

use rusqlite::params;

use super::events::{self, NewEvent};
use super::gates::{self, Waiter};
use super::lease::{self, End, Held};
use super::pauses;
use super::tx::Tx;
use crate::clock::Millis;
use crate::error::{Error, Result};
use crate::json::JsonText;
use crate::store::{Ending, Failure, Lease};

pub(super) fn reschedule(tx: &Tx<'_>, lease: &Lease, failure: &Failure, delay: Millis) -> Result<Ending> {
    let held = undecided(tx, lease)?;
    let paused = pauses::begin(tx, lease, failure)?;
    if held.cancel_requested {
        lease::end(tx, lease, &held, End::cancelled())?;
        return Ok(Ending::Cancelled);
    }
    // A pause that is over at once keeps nobody back: without counting it would go on for ever.
    let counts = paused.is_none_or(|until| until <= tx.now);
    if counts && held.attempts >= held.max_attempts {
        lease::end(tx, lease, &held, End::failed_and_paused(failure, paused))?;
        return Ok(Ending::Failed);
    }
    let run_at = tx.now.saturating_add(delay);
    let mut data = pauses::told(failure, paused);
    data["run_at"] = crate::clock::rfc3339(run_at).into();
    let back = Back {
        attempts: if counts { held.attempts } else { held.attempts.saturating_sub(1) },
        has_run: true,
        run_at: Some(run_at),
        // A longer wait than the policy's longest must not look like a clock that jumped.
        backoff_max: held.backoff_max.max(delay),
        last_error: Some(failure.text()),
        result: failure.result.as_deref().map(JsonText::as_str),
        events: vec![("rescheduled", Some(data.to_string()))],
    };
    to_pending(tx, lease, &held, back)?;
    Ok(Ending::Done)
}

/// A claimed job on its way back to pending.
pub(super) struct Back<'a> {
    pub(super) attempts: u32,
    /// Whether it may have done something, whether or not that counts as an attempt.
    pub(super) has_run: bool,
    pub(super) run_at: Option<Millis>,
    pub(super) backoff_max: Millis,
    pub(super) last_error: Option<String>,
    pub(super) result: Option<&'a str>,
    pub(super) events: Vec<(&'static str, Option<String>)>,
}

/// The one way back: reschedule, release and reclaim differ in what they say.
pub(super) fn to_pending(tx: &Tx<'_>, lease: &Lease, held: &Held, back: Back<'_>) -> Result<()> {
    gates::set_active(tx, lease.seq, &held.holds, false)?;
    if back.has_run {
        gates::close_retries(tx, lease.seq, &lease.id, &held.holds)?;
    }
    let waiter =
        Waiter { seq: lease.seq, waiting_on: None, run_at: back.run_at, rescheduled: true, holds: &held.holds };
    let gate = gates::gate_of(tx, &waiter)?;
    let changed = tx.execute(
        "UPDATE OR FAIL jobs SET status = 'pending', gate = ?3, locked_by = NULL, locked_at = NULL, attempts = ?4,
                run_at = ?5, backoff_max = ?6, last_error = coalesce(?7, last_error), event_seq = event_seq + ?8 * (event_seq < 9223372036854775806),
                result = coalesce(?9, result)
          WHERE seq = ?1 AND token = ?2 AND status = 'claimed'",
        params![
            lease.seq,
            lease.token,
            gate,
            back.attempts,
            back.run_at,
            back.backoff_max,
            back.last_error,
            i64::try_from(back.events.len()).unwrap_or(0),
            back.result,
        ],
    )?;
    if changed == 0 {
        return Err(Error::lease_lost(&lease.id, lease.token));
    }
    for (number, (event_type, data)) in (1..).zip(back.events) {
        let seq = held.event_seq.saturating_add(number);
        events::write(tx, &NewEvent { job_id: &lease.id, seq, attempt: held.attempts, event_type, data })?;
    }
    // A row that was admitted late may be before it on a key, and is free now.
    gates::wake_next(tx, &held.holds)
}

/// The job, if it is ours and not decided: after decide there is no way back.
pub(super) fn undecided(tx: &Tx<'_>, lease: &Lease) -> Result<Held> {
    let held = lease::current(tx, lease)?;
    if held.decided {
        return Err(Error::wrong_state(format!("job {} is decided; it can only be applied", lease.id)));
    }
    Ok(held)
}
