//! Claimed jobs whose owner is dead, stopped or silent.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Check, HashMap, Jobs, Millis, Result, count};
use crate::doctor::processes::Process;
use crate::liveness::{self, Verdict as Life};
use crate::store::HeldLease;

/// What a worker promises unless told otherwise.
const LEASE: Duration = Duration::from_secs(300);

enum Trouble {
    Dead,
    Stopped(Process),
    /// For so long, by the wall clock: a hint, and no more.
    Silent(Duration),
}

pub(super) fn check(jobs: &Jobs<'_>) -> Result<Check> {
    const NAME: &str = "leases";
    let signs: HashMap<i64, Millis> = jobs.health.signs_of_life()?.into_iter().collect();
    let mut owners: BTreeMap<String, Vec<HeldLease>> = BTreeMap::new();
    for held in jobs.health.leases()? {
        owners.entry(held.locked_by.clone()).or_default().push(held);
    }
    let (mut told, mut advice) = (Vec::new(), Vec::new());
    let mut suggest = |text: String| {
        if !advice.contains(&text) {
            advice.push(text);
        }
    };
    for (owner, leases) in &owners {
        let Some(trouble) = trouble(jobs, leases, &signs) else { continue };
        let has = format!("{owner} has {}", count(i64::try_from(leases.len()).unwrap_or(i64::MAX), "job"));
        told.push(match trouble {
            Trouble::Dead => {
                suggest("`jobq reclaim`, or any worker, takes back what the dead had".to_owned());
                format!("{has} and is dead")
            }
            Trouble::Stopped(process) => {
                suggest(format!("`kill -CONT {0}` lets process {0} go on", process.pid));
                format!("{has} and is {process}")
            }
            Trouble::Silent(time) => {
                suggest("`jobq reclaim --lease 5m`, or any worker, takes back what stays silent".to_owned());
                let time = humantime::format_duration(Duration::from_secs(time.as_secs()));
                format!("{has} and has given no sign of life for {time}")
            }
        });
    }
    if told.is_empty() {
        let claimed: usize = owners.values().map(Vec::len).sum();
        return Ok(match i64::try_from(claimed).unwrap_or(i64::MAX) {
            0 => Check::ok(NAME, "no job is claimed"),
            claimed => Check::ok(NAME, format_args!("{} claimed, by owners that live", count(claimed, "job"))),
        });
    }
    Ok(Check::warn(NAME, told.join("; "), advice.join("; ")))
}

/// What is wrong with the owner of these leases.
fn trouble(jobs: &Jobs<'_>, leases: &[HeldLease], signs: &HashMap<i64, Millis>) -> Option<Trouble> {
    let folder = jobs.places.state.join("owners");
    let owner = leases.first()?.owner.as_ref();
    let life = owner.and_then(|owner| liveness::judge(owner, &folder).ok()).unwrap_or(Life::Unknown);
    if let Life::Dead(_) = life {
        return Some(Trouble::Dead);
    }
    // Only of one that was seen to hold its lock is the number its own.
    if life == Life::Alive
        && let Some(process) = owner.and_then(|owner| Process::look(owner.pid))
        && process.stopped
    {
        return Some(Trouble::Stopped(process));
    }
    let last = leases.iter().filter_map(|held| signs.get(&held.lease.seq)).max()?;
    let silent = Duration::from_millis(u64::try_from(jobs.now.saturating_sub(*last)).unwrap_or(0));
    let promised = liveness::promised_lease(leases.first()?, &folder).unwrap_or(LEASE).max(LEASE);
    (silent > promised).then_some(Trouble::Silent(silent))
}
