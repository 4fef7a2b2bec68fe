//! Ending jobs that have no file effects. For them completing is deciding, so a
//! cancel that was committed first wins.

use rusqlite::params;

use super::events::{self, NewEvent};
use super::lease::{self, End};
use super::row::{hold_keys, read};
use super::settle::answer;
use super::tx::Tx;
use super::{enqueue, gates};
use crate::error::{Error, ErrorKind, Result};
use crate::state::Status;
use crate::store::{Ending, EnqueueJob, Lease, Settled, Step};

/// A job, and what it left.
pub(super) type Completion<'s> = (&'s Lease, Option<&'s str>);

/// Those at the beginning of these steps that can be completed together: jobs that queue others may be refused for it.
pub(super) fn leading(steps: &[(Lease, Step)]) -> Vec<Completion<'_>> {
    let together = steps.iter().map_while(|(lease, step)| match step {
        Step::Complete { result, follow_ups } if follow_ups.is_empty() => Some((lease, result.as_deref())),
        _ => None,
    });
    together.collect()
}

/// Each has an answer of its own.
pub(super) fn all(tx: &Tx<'_>, completions: &[Completion<'_>]) -> Result<Vec<Result<Settled>>> {
    let done = at_once(tx, completions)?;
    let each = completions.iter().zip(done).map(|(completion, done)| {
        let ending = if done { Ok(Ending::Done) } else { as_it_stands(tx, *completion, &[]) };
        answer(ending.map(Settled::Ended))
    });
    each.collect()
}

pub(super) fn complete(tx: &Tx<'_>, completion: Completion<'_>, follow_ups: &[EnqueueJob]) -> Result<Ending> {
    if at_once(tx, &[completion])? == [true] {
        return queue(tx, follow_ups);
    }
    as_it_stands(tx, completion, follow_ups)
}

/// After the end: a job that queues itself again must not be its own duplicate.
fn queue(tx: &Tx<'_>, follow_ups: &[EnqueueJob]) -> Result<Ending> {
    enqueue::follow_ups(tx, follow_ups)?;
    Ok(Ending::Done)
}

/// Whether it is completed, for each. Nearly always nothing is in the way (a lost lease, a cancel, a decision), and the
/// update itself finds that out.
fn at_once(tx: &Tx<'_>, completions: &[Completion<'_>]) -> Result<Vec<bool>> {
    let mut done = Vec::with_capacity(completions.len());
    for (lease, result) in completions {
        done.push(tx.execute(COMPLETE, params![lease.seq, lease.id, lease.token, tx.now, result])? == 1);
    }
    let leases: Vec<&Lease> =
        completions.iter().zip(&done).filter(|(_, done)| **done).map(|((lease, _), _)| *lease).collect();
    let seqs: Vec<i64> = leases.iter().map(|lease| lease.seq).collect();
    let ended = tx.rows(ENDED, params![serde_json::json!(seqs).to_string()], |row| {
        let holds = hold_keys(read::<Option<String>>(row, 3)?.as_deref());
        Ok((row.get::<_, i64>(0)?, read::<u32>(row, 1)?, row.get::<_, i64>(2)?, holds))
    })?;
    // One by one in the order given, or what follows would be another job's.
    if !ended.iter().map(|(seq, ..)| *seq).eq(seqs) {
        return Err(Error::new(ErrorKind::Internal, "jobs that were just completed cannot be read"));
    }
    let told = leases.iter().zip(&ended).map(|(lease, (_, attempt, seq, _))| NewEvent {
        job_id: &lease.id,
        seq: *seq,
        attempt: *attempt,
        event_type: Status::Completed.as_str(),
        data: None,
    });
    events::write_all(tx, &told.collect::<Vec<_>>())?;
    for (lease, (.., holds)) in leases.iter().zip(&ended) {
        gates::close_retries(tx, lease.seq, &lease.id, holds)?;
        gates::after_end(tx, lease.seq, &lease.id, holds, Status::Completed)?;
    }
    Ok(done)
}

/// Without RETURNING, which would make a temporary table for each.
const COMPLETE: &str =
    "UPDATE OR FAIL jobs SET status = 'completed', completed_at = ?4, locked_by = NULL, locked_at = NULL,
            result = ?5, event_seq = event_seq + (event_seq < 9223372036854775807)
      WHERE seq = ?1 AND id = ?2 AND token = ?3 AND status = 'claimed' AND locked_by IS NOT NULL
        AND cancel_requested = 0 AND outcome IS NULL";

/// Jobs by their numbers, in the order given.
pub(super) const ENDED: &str = "SELECT jobs.seq, attempts, event_seq, holds
       FROM json_each(?1) AS given CROSS JOIN jobs WHERE jobs.seq = given.value";

/// One for which something was in the way.
fn as_it_stands(tx: &Tx<'_>, (lease, result): Completion<'_>, follow_ups: &[EnqueueJob]) -> Result<Ending> {
    let held = lease::find(tx, lease)?;
    match held.status {
        Status::Claimed => {}
        // Completed under this very token: the answer did not reach the owner.
        Status::Completed => return Ok(Ending::Done),
        _ => return Err(Error::lease_lost(&lease.id, lease.token)),
    }
    if held.decided {
        return Err(Error::wrong_state(format!("job {} is decided; apply it instead", lease.id)));
    }
    if held.cancel_requested {
        lease::end(tx, lease, &held, End::cancelled())?;
        return Ok(Ending::Cancelled);
    }
    let end = End { status: Status::Completed, result, last_error: None, data: None, overtakes: true };
    lease::end(tx, lease, &held, end)?;
    queue(tx, follow_ups)
}
