//! `jobq cancel`: pending jobs end at once, running ones are asked to stop.

use jobq::printable;
use jobq::store::CancelOutcome;

use super::args::CancelArgs;
use super::locate::Place;
use super::output::{DIM, Output, YELLOW};
use super::retry::each;
use super::{Answer, Outcome};

pub(super) fn run(args: &CancelArgs, place: &Place, out: &mut Output) -> Outcome {
    let queue = place.open()?;
    each(&args.ids, out, |id, out| {
        let done = queue.cancel(&queue.resolve(id)?)?;
        if out.json {
            out.json(&done)?;
            return Ok(Answer::Yes);
        }
        out.line(format_args!("{}  {YELLOW}{}{YELLOW:#}", printable(&done.id), in_words(done.outcome)))?;
        for waiter in &done.cancelled_waiters {
            out.line(format_args!("  {DIM}{}  cancelled, it waited on that{DIM:#}", printable(waiter)))?;
        }
        Ok(Answer::Yes)
    })
}

/// What has become of the job.
pub(super) fn in_words(outcome: CancelOutcome) -> &'static str {
    match outcome {
        CancelOutcome::Cancelled => "cancelled",
        CancelOutcome::Requested => "asked to stop at its next safe point",
        CancelOutcome::AlreadyCancelled => "was cancelled already",
        CancelOutcome::WaitersOnly => "failed already; cancelled what waited on it",
    }
}
