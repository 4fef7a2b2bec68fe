//! Ending a job that has no file effects. For it completing is deciding, so a
//! cancel that was committed first wins.

use super::enqueue;
use super::lease::{self, End};
use super::tx::Tx;
use crate::error::{Error, Result};
use crate::state::Status;
use crate::store::{Ending, EnqueueJob, Lease};

pub(super) fn complete(tx: &Tx<'_>, lease: &Lease, result: Option<&str>, follow_ups: &[EnqueueJob]) -> Result<Ending> {
    // Nearly always nothing is in the way, and the update itself finds that out.
    if lease::complete_at_once(tx, lease, result)? {
        return queue(tx, follow_ups);
    }
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

/// After the end: a job that queues itself again must not be its own duplicate.
fn queue(tx: &Tx<'_>, follow_ups: &[EnqueueJob]) -> Result<Ending> {
    enqueue::follow_ups(tx, follow_ups)?;
    Ok(Ending::Done)
}
