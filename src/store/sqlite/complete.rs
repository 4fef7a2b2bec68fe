//! Ending jobs that have no file effects. For them completing is deciding, so
//! a cancel that was committed first wins.

use super::apply::is_answer;
use super::enqueue;
use super::lease::{self, End};
use super::tx::Tx;
use crate::error::{Error, Result};
use crate::state::Status;
use crate::store::{Completion, Ending};

/// One answer per job; only trouble with the database ends them all.
pub(super) fn complete(tx: &Tx<'_>, completions: &[Completion]) -> Result<Vec<Result<Ending>>> {
    completions
        .iter()
        .map(|completion| {
            // Without follow-ups nothing can fail after the first change.
            let answer = if completion.follow_ups.is_empty() {
                one(tx, completion)
            } else {
                tx.atomically(|| one(tx, completion))
            };
            match answer {
                Err(error) if !is_answer(&error) => Err(error),
                answer => Ok(answer),
            }
        })
        .collect()
}

fn one(tx: &Tx<'_>, completion: &Completion) -> Result<Ending> {
    let lease = &completion.lease;
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
    let end = End { status: Status::Completed, result: completion.result.as_deref(), last_error: None, data: None };
    lease::end(tx, lease, &held, end)?;
    // After the end: a job that queues itself again must not be its own duplicate.
    if !completion.follow_ups.is_empty() {
        enqueue::enqueue(tx, &completion.follow_ups).map_err(|e| e.context("follow-up job"))?;
    }
    Ok(Ending::Done)
}
