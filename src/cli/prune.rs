//! `jobq prune`: old finished jobs go, a bounded number at a time, so that
//! others get their turn.

use jobq::PruneRequest;
use serde_json::json;

use super::args::PruneArgs;
use super::locate::{Place, now};
use super::output::Output;
use super::{Answer, Outcome};

pub(super) fn run(args: &PruneArgs, place: &Place, out: &mut Output) -> Outcome {
    let queue = place.open()?;
    let age = i64::try_from(args.older_than.as_millis()).unwrap_or(i64::MAX);
    let request = PruneRequest {
        ended_before: now().saturating_sub(age),
        failed: args.failed,
        forget: args.forget,
        job_type: None,
    };
    let mut pruned = 0;
    loop {
        match queue.prune(request.clone())? {
            0 => break,
            some => pruned += some,
        }
    }
    if out.json {
        out.json(&json!({ "pruned": pruned }))?;
    } else {
        out.line(format_args!("{pruned} jobs deleted"))?;
    }
    Ok(Answer::Yes)
}
