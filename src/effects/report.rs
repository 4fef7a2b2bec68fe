//! What applying came to, in words and numbers.

use serde_json::json;

use super::check::{Conflict, Trouble};
use super::error::{FileError, shown};
use crate::clock::Millis;
use crate::store::{ApplyReport, Failure, FileStamp, PlannedEffect, SYNC_FAILED};

/// The wait before the next try; the store makes it longer each time.
const LATER: Millis = 1_000;

/// Paths named in a message; the details have them all.
const NAMED: usize = 10;

/// `done`: what is on disk, by index, of a job that was to change something
/// there.
pub(super) fn report(
    effects: &[PlannedEffect],
    done: Vec<(usize, FileStamp)>,
    trouble: Trouble,
    afresh: bool,
) -> ApplyReport {
    match trouble {
        Trouble::Later(error) => later(&error, afresh),
        Trouble::Conflict(conflict) if done.is_empty() => {
            let failure = Failure::new("conflict", conflict.message).with_details(conflict.details);
            ApplyReport::Conflict { failure, applied: Vec::new() }
        }
        Trouble::Conflict(conflict) => partial(effects, done, conflict),
    }
}

/// An effect that was applied afresh because of a failed sync must be so the
/// next time too; the code of the last failure is how the store knows.
fn later(error: &FileError, afresh: bool) -> ApplyReport {
    let code = match (afresh, error.is_disk_full()) {
        (true, _) => SYNC_FAILED,
        (false, true) => "disk_full",
        (false, false) => "apply_failed",
    };
    ApplyReport::Deferred { failure: Failure::new(code, error.message()), delay: LATER }
}

fn partial(effects: &[PlannedEffect], mut done: Vec<(usize, FileStamp)>, conflict: Conflict) -> ApplyReport {
    done.sort_unstable_by_key(|(index, _)| *index);
    let is_done = |index: usize| done.iter().any(|(known, _)| *known == index);
    let paths = |wanted: bool| -> Vec<&str> {
        let chosen = effects.iter().enumerate().filter(|(index, _)| is_done(*index) == wanted);
        chosen.map(|(_, effect)| effect.path.as_str()).collect()
    };
    let (on_disk, not_done) = (paths(true), paths(false));
    let message = format!("{}; on disk: {}; not done: {}", conflict.message, list(&on_disk), list(&not_done));
    let mut details = conflict.details;
    details["on_disk"] = json!(on_disk);
    details["not_done"] = json!(not_done);
    let failure = Failure::new("partial", message).with_details(details);
    ApplyReport::Conflict { failure, applied: done }
}

fn list(paths: &[&str]) -> String {
    let named: Vec<String> = paths.iter().take(NAMED).map(|path| shown(path)).collect();
    match paths.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
