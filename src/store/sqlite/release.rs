//! Giving a claim back as if it had not been made. The attempt is given back,
//! the token is not: it must never name two claims.

use super::lease::{self, End};
use super::reschedule::{Back, to_pending, undecided};
use super::tx::Tx;
use crate::error::Result;
use crate::store::{Ending, Lease};

pub(super) fn release(tx: &Tx<'_>, lease: &Lease) -> Result<Ending> {
    let held = undecided(tx, lease)?;
    if held.cancel_requested {
        lease::end(tx, lease, &held, End::cancelled())?;
        return Ok(Ending::Cancelled);
    }
    let back = Back {
        attempts: held.attempts.saturating_sub(1),
        has_run: false,
        run_at: held.run_at,
        backoff_max: held.backoff_max,
        last_error: None,
        result: None,
        events: vec![("released", None)],
    };
    to_pending(tx, lease, &held, back)?;
    Ok(Ending::Done)
}
