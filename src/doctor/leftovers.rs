//! What dead processes have left: harmless, and swept by whoever opens the queue
//! to change something; but if it stays, nobody does that.

use super::{Check, Places, count, names, or_bad};
use crate::error::Result;
use crate::store::sqlite::Health;
use crate::{effects, liveness};

pub(super) fn look(health: &Health, places: &Places, tell: &mut dyn FnMut(Check)) {
    tell(or_bad("stage", stage(health, places)));
    tell(or_bad("lock_files", lock_files(health, places)));
}

fn stage(health: &Health, places: &Places) -> Result<Check> {
    let litter = effects::stage_litter(&places.state, &mut |job, stage| health.is_planned(job, stage))?;
    let Some(owner) = litter.owner else {
        return Ok(Check::ok("stage", "dead processes have left no staged files that nobody needs"));
    };
    let files = count(i64::try_from(litter.files).unwrap_or(i64::MAX), "file");
    Ok(Check::warn(
        "stage",
        format_args!(
            "{files} ({} bytes) that dead processes have staged and nobody needs, such as of {owner}",
            litter.bytes
        ),
        "`jobq reclaim`, or any command that changes something, removes them",
    ))
}

/// Those of owners that still have jobs are told of with their leases.
fn lock_files(health: &Health, places: &Places) -> Result<Check> {
    let mut dead = liveness::dead_locks(&places.state.join("owners"))?;
    // Read after they were found free: no lease can be added to them any more.
    for held in health.leases()? {
        let own = format!("{}.lock", held.locked_by);
        dead.retain(|file| *file != own && held.owner.as_ref().is_none_or(|owner| owner.lock_file != *file));
    }
    if dead.is_empty() {
        return Ok(Check::ok("lock_files", "no lock files of dead processes"));
    }
    let of = i64::try_from(dead.len()).unwrap_or(i64::MAX);
    Ok(Check::warn(
        "lock_files",
        format_args!(
            "{} of processes that died: {}",
            count(of, "lock file"),
            names(dead.iter().take(5).map(String::as_str), of)
        ),
        "`jobq reclaim`, or any command that changes something, removes them",
    ))
}
