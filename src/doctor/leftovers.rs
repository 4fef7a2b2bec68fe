//! Staged files that dead processes have left. They are harmless, but take room. Whoever
//! opens the queue to change something removes them; if they stay, nobody does that.

use super::{Check, Places, count, or_bad};
use crate::effects;
use crate::error::Result;
use crate::store::sqlite::Health;

pub(super) fn look(health: &Health, places: &Places, tell: &mut dyn FnMut(Check)) {
    tell(or_bad("stage", stage(health, places)));
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
