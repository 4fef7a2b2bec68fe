//! Jobs that do not get on, and times that cannot be.

use std::collections::HashMap;

use super::{Check, Places, count, names, or_bad};
use crate::clock::{Millis, rfc3339};
use crate::error::Result;
use crate::payload::JobTypes;
use crate::store::sqlite::Health;

mod leases;

/// Clocks of two machines that work together differ by less.
const CLOCK_TOLERANCE: Millis = 60_000;
/// A worker, or any command that writes, admits in less.
const ADMISSION_TIME: Millis = 10 * 60_000;
/// So many damaged jobs are named.
const NAMED: usize = 20;

pub(super) struct Jobs<'a> {
    pub(super) health: &'a Health,
    pub(super) places: &'a Places,
    pub(super) types: &'a JobTypes,
    pub(super) now: Millis,
}

pub(super) fn look(jobs: &Jobs<'_>, deep: bool, tell: &mut dyn FnMut(Check)) {
    if deep {
        tell(or_bad("payloads", payloads(jobs)));
    }
    tell(or_bad("clock", clock(jobs)));
    tell(or_bad("leases", leases::check(jobs)));
    tell(or_bad("decided", decided(jobs)));
    tell(or_bad("waits", waits(jobs)));
    tell(or_bad("admission", admission(jobs)));
    tell(or_bad("holds", holds(jobs)));
}

fn payloads(jobs: &Jobs<'_>) -> Result<Check> {
    let (mut damaged, mut first, mut after) = (0, Vec::new(), Some(0));
    while let Some(seq) = after {
        after = jobs.health.check_payloads(seq, &mut |id| {
            damaged += 1;
            if first.len() < NAMED {
                first.push(id);
            }
        })?;
    }
    if damaged == 0 {
        return Ok(Check::ok("payloads", "every payload matches its hash"));
    }
    Ok(Check::bad(
        "payloads",
        format_args!(
            "{} no longer what was queued: {}",
            if damaged == 1 { "1 payload is".to_owned() } else { format!("{damaged} payloads are") },
            names(first.iter().map(String::as_str), damaged)
        ),
        "such a job fails when it is claimed; queue it again from where it came, and check the disk",
    ))
}

fn clock(jobs: &Jobs<'_>) -> Result<Check> {
    const NAME: &str = "clock";
    if let Some(ahead) = jobs.health.ahead_of(jobs.now.saturating_add(CLOCK_TOLERANCE))? {
        return Ok(Check::warn(
            NAME,
            format_args!(
                "{} of the future: {} is from {}, and it is {} now",
                if ahead.jobs == 1 { "1 job is".to_owned() } else { format!("{} jobs are", ahead.jobs) },
                ahead.id,
                rfc3339(ahead.at),
                rfc3339(jobs.now)
            ),
            "set the clock right; ages, delays and pruning go by it, order and leases do not",
        ));
    }
    if let Some(back) = jobs.health.backwards(CLOCK_TOLERANCE)? {
        return Ok(Check::warn(
            NAME,
            format_args!(
                "the clock was set back while jobs were there: {} ended before it began, such as {}",
                count(back.jobs, "job"),
                back.id
            ),
            "nothing is lost; let the clock be kept by NTP, so that ages and delays can be trusted",
        ));
    }
    Ok(Check::ok(NAME, "no job is of the future, and none ended before it began"))
}

fn decided(jobs: &Jobs<'_>) -> Result<Check> {
    let found = jobs.health.unapplied()?;
    let Some(first) = found.first() else {
        return Ok(Check::ok("decided", "no decided job waits for someone to apply it"));
    };
    let why = found.iter().find_map(|job| job.last_error.as_deref());
    Ok(Check::warn(
        "decided",
        format_args!(
            "{} decided, and nobody applies {}: {}{}",
            if first.of == 1 { "1 job is".to_owned() } else { format!("{} jobs are", first.of) },
            if first.of == 1 { "it" } else { "them" },
            names(found.iter().map(|job| job.id.as_str()), first.of),
            why.map(|why| format!(" ({why})")).unwrap_or_default()
        ),
        "see to the reason, if one is given; `jobq reclaim` or a worker then applies what is due",
    ))
}

fn waits(jobs: &Jobs<'_>) -> Result<Check> {
    let orphans = jobs.health.orphans()?;
    if let Some(first) = orphans.first() {
        return Ok(Check::bad(
            "waits",
            format_args!(
                "{} on a job that is cancelled or not there and will never complete: {} waits on {}",
                if first.of == 1 { "1 job waits".to_owned() } else { format!("{} jobs wait", first.of) },
                names(orphans.iter().map(|orphan| orphan.id.as_str()), first.of),
                first.waiting_on
            ),
            format_args!("`jobq cancel {}`, and queue it again without the wait if it is still wanted", first.id),
        ));
    }
    let blocked = jobs.health.blocked()?;
    let Some(first) = blocked.first() else {
        return Ok(Check::ok("waits", "no job waits on one that failed"));
    };
    let waiting: i64 = blocked.iter().map(|parent| parent.jobs).sum();
    let parents = i64::try_from(blocked.len()).unwrap_or(i64::MAX);
    Ok(Check::warn(
        "waits",
        format_args!(
            "{} on {} that failed: {} ({})",
            if waiting == 1 { "1 job waits".to_owned() } else { format!("{waiting} jobs wait") },
            if parents == 1 { "a job".to_owned() } else { format!("{parents} jobs") },
            names(blocked.iter().take(NAMED).map(|parent| parent.id.as_str()), parents),
            first.last_error.as_deref().unwrap_or("without a reason")
        ),
        format_args!("`jobq retry {0}` runs it again; `jobq cancel {0}` cancels what waits on it", first.id),
    ))
}

fn admission(jobs: &Jobs<'_>) -> Result<Check> {
    let found = jobs.health.unadmitted(jobs.now.saturating_sub(ADMISSION_TIME))?;
    if found.is_empty() {
        return Ok(Check::ok("admission", "no job waits for long to be admitted"));
    }
    let (known, unknown): (Vec<_>, Vec<_>) = found.iter().partition(|group| jobs.types.knows(&group.job_type));
    let groups = known.iter().chain(&unknown);
    let all: Vec<String> = groups
        .map(|group| format!("{} of type {} since {}", group.jobs, group.job_type, rfc3339(group.oldest)))
        .collect();
    let advice = match unknown.first() {
        None => "start a worker; any command that queues or runs jobs admits them".to_owned(),
        Some(group) => format!(
            "no jobq process that knows the type {} has run since; start one, or `jobq cancel` them if it is a mistake",
            group.job_type
        ),
    };
    Ok(Check::warn("admission", format_args!("jobs that no process has admitted: {}", all.join(", ")), advice))
}

fn holds(jobs: &Jobs<'_>) -> Result<Check> {
    let found = jobs.health.without_holds(jobs.types)?;
    let Some(first) = found.first() else {
        return Ok(Check::ok("holds", "every unfinished job has the holds that it needs"));
    };
    let all = i64::try_from(found.len()).unwrap_or(i64::MAX);
    let named = names(found.iter().take(NAMED).map(String::as_str), all);
    Ok(Check::bad(
        "holds",
        format_args!("{} without the holds that keep other jobs off the same files: {named}", count(all, "job")),
        format_args!(
            "another program wrote or changed these rows; `jobq cancel {first}`, then queue it again with jobq"
        ),
    ))
}
