//! `jobq prune`: old finished jobs go, a bounded number at a time, so that
//! others get their turn.

use jobq::{PruneRequest, Queue, Result};
use serde_json::json;

use super::args::PruneArgs;
use super::locate::{Place, now};
use super::output::{Output, counted};
use super::progress::Progress;
use super::{Answer, Outcome};

pub(super) fn run(args: &PruneArgs, place: &Place, out: &mut Output) -> Outcome {
    let queue = place.open()?;
    let age = i64::try_from(args.older_than.as_millis()).unwrap_or(i64::MAX);
    let request =
        PruneRequest { ended_before: now().saturating_sub(age), failed: args.failed, forget: false, job_type: None };
    let progress = Progress::counting("jobs deleted", out);
    let pruned = all(&queue, &request, &progress)?;
    // Once no job is left, paths are what is counted.
    let forgotten = if args.forget {
        progress.next("paths forgotten");
        Some(all(&queue, &PruneRequest { forget: true, ..request }, &progress)?)
    } else {
        None
    };
    drop(progress);
    if out.json {
        match forgotten {
            None => out.json(&json!({ "pruned": pruned }))?,
            Some(paths) => out.json(&json!({ "pruned": pruned, "forgotten": paths }))?,
        }
    } else {
        out.line(format_args!("{} deleted", counted(pruned, "job", "jobs")))?;
        if let Some(paths) = forgotten {
            out.line(format_args!("{} forgotten", counted(paths, "path", "paths")))?;
        }
    }
    Ok(Answer::Yes)
}

fn all(queue: &Queue, request: &PruneRequest, progress: &Progress) -> Result<u64> {
    let mut gone = 0;
    loop {
        match queue.prune(request.clone())? {
            0 => return Ok(gone),
            some => {
                gone += some;
                progress.set(gone);
            }
        }
    }
}
