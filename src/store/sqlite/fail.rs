//! Giving a job up: an error that no retry can help, or a cancel that was
//! asked for and obeyed.

use super::lease::{self, End};
use super::pauses;
use super::reschedule::undecided;
use super::tx::Tx;
use crate::error::{Error, Result};
use crate::state::Status;
use crate::store::{Ending, Failure, Lease};

pub(super) fn fail(tx: &Tx<'_>, lease: &Lease, failure: &Failure) -> Result<Ending> {
    if lease::find(tx, lease)?.status == Status::Failed {
        // Failed under this very token: the answer did not reach the owner.
        return Ok(Ending::Done);
    }
    let held = undecided(tx, lease)?;
    let paused = pauses::begin(tx, lease, failure)?;
    if held.cancel_requested {
        lease::end(tx, lease, &held, End::cancelled())?;
        return Ok(Ending::Cancelled);
    }
    lease::end(tx, lease, &held, End::failed_and_paused(failure, paused))?;
    Ok(Ending::Done)
}

pub(super) fn acknowledge_cancel(tx: &Tx<'_>, lease: &Lease) -> Result<Ending> {
    let held = undecided(tx, lease)?;
    if !held.cancel_requested {
        return Err(Error::wrong_state(format!("nobody asked job {} to stop; release it instead", lease.id)));
    }
    lease::end(tx, lease, &held, End::cancelled())?;
    Ok(Ending::Cancelled)
}
