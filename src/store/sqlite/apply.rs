//! Completing a decided job: its effects become visible inside the very
//! transaction that says so, so "completed" is never ahead of the disk.

use std::sync::Arc;

use rusqlite::params;

use super::cancel;
use super::decide::{self, Decided};
use super::enqueue;
use super::events::{self, NewEvent};
use super::lease::{self, End, Held};
use super::row::read;
use super::tx::Tx;
use crate::clock::{Millis, rfc3339};
use crate::error::{Error, Result};
use crate::state::Status;
use crate::store::{
    Application, Applier, ApplyReport, EffectOp, EnqueueJob, Failure, FileStamp, Lease, PlannedEffect, Precondition,
    WITHDRAWN,
};

/// `withdraw`: a conflict that has changed nothing takes the job back, and what
/// waits on it.
pub(super) fn apply(tx: &Tx<'_>, lease: &Lease, applier: &Arc<dyn Applier>, withdraw: bool) -> Result<Application> {
    let held = lease::find(tx, lease)?;
    if held.status == Status::Completed {
        // Completed under this very token: the answer did not reach the owner.
        return Ok(Application::Completed);
    }
    let held = lease::current(tx, lease)?;
    if !held.decided {
        return Err(Error::wrong_state(format!("job {} is not decided; there is nothing to apply", lease.id)));
    }
    let Some(outcome) = decide::decided(tx, lease)? else {
        // Nothing of it can be relied on, so nothing of it is done, and the job ends alone, in nobody's way.
        let failure = Failure::new("plan_damaged", PLAN_DAMAGED);
        lease::end(tx, lease, &held, End { overtakes: false, ..End::failed(&failure) })?;
        return Ok(Application::Conflict(failure.text()));
    };
    let effects = &outcome.effects;
    let report = applier.apply(lease, effects, held.sync_failed);
    // In a group the folders are synced once, before its COMMIT. If that fails the
    // group is run again one by one, and the failure finds its job here.
    if tx.alone {
        if let Err(failure) = applier.sync() {
            return defer(tx, lease, &held, &failure, SYNC_AGAIN);
        }
    } else {
        tx.sync_before_commit(applier);
    }
    match report {
        ApplyReport::Applied(stamps) => {
            let event = complete(tx, lease, &held, &outcome)?;
            mark_applied(tx, lease, event, effects.iter().zip(stamps))?;
            Ok(Application::Completed)
        }
        ApplyReport::Conflict { failure, applied } if withdraw && applied.is_empty() => {
            let failure = Failure { code: WITHDRAWN.to_owned(), ..failure };
            // Nothing has happened, so nothing is in the way of those that failed before it.
            lease::end(tx, lease, &held, End { overtakes: false, ..End::failed(&failure) })?;
            cancel::cancel_waiters(tx, &lease.id)?;
            // Nobody will need what is staged for them.
            tx.execute("DELETE FROM effects WHERE job_id = ?1 AND state = 'planned'", params![lease.id])?;
            Ok(Application::Withdrawn(failure.message))
        }
        ApplyReport::Conflict { mut failure, applied } => {
            failure.message.push_str(HOW_TO_GO_ON);
            let event = lease::end(tx, lease, &held, End::failed(&failure))?;
            let on_disk = applied.into_iter().filter_map(|(index, stamp)| Some((effects.get(index)?, stamp)));
            mark_applied(tx, lease, event, on_disk)?;
            Ok(Application::Conflict(failure.text()))
        }
        ApplyReport::Deferred { failure, delay } => defer(tx, lease, &held, &failure, delay),
    }
}

/// What a person can do about a conflict.
const HOW_TO_GO_ON: &str = "; `jobq retry` applies again, with --accept-disk on top of what is there now";

/// The wait after a failed sync.
const SYNC_AGAIN: Millis = 5_000;

/// What waits grow to, unless a longer one is asked for.
const LONGEST: Millis = 30_000;

const PLAN_DAMAGED: &str = "what it is to do is not stored as it was decided, and was not done; `jobq doctor --deep` says \
                            what else is damaged; then ask for it again: queue the job, or commit the files, anew";

/// A row of [`PLANNED`]. Whatever stands there is read: that it is not what was
/// recorded shows by the hash, and costs this job alone.
pub(super) fn planned_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<PlannedEffect> {
    let precondition = read::<Option<String>>(row, 1)?.unwrap_or_default();
    let op = match read::<Option<String>>(row, 3)? {
        Some(sha256) => {
            let size = row.get_ref(4)?.as_i64().ok().and_then(|size| u64::try_from(size).ok());
            EffectOp::Put { sha256, size: size.unwrap_or(0), stage: read(row, 5)? }
        }
        None => EffectOp::Remove,
    };
    Ok(PlannedEffect {
        path: read::<Option<String>>(row, 0)?.unwrap_or_default(),
        op,
        precondition: if precondition == "absent" { Precondition::Absent } else { Precondition::Sha256(precondition) },
        observed: read(row, 2)?,
    })
}

pub(super) const PLANNED: &str = "SELECT path, precondition, observed, sha256, size, stage FROM effects
      WHERE job_id = ?1 AND state <> 'applied' ORDER BY number";

/// Returns the id of the completing event, by which applied effects are ordered.
fn complete(tx: &Tx<'_>, lease: &Lease, held: &Held, outcome: &Decided) -> Result<i64> {
    let end = End {
        status: Status::Completed,
        result: outcome.result.as_deref().map(serde_json::value::RawValue::get),
        last_error: None,
        data: None,
        overtakes: true,
    };
    let event = lease::end(tx, lease, held, end)?;
    // After the end: a job that queues itself again must not be its own duplicate.
    let refused = queue_follow_ups(tx, &outcome.follow_ups)?;
    if !refused.is_empty() {
        let text = format!("follow-up jobs refused: {}", refused.join("; "));
        tracing::warn!(job_id = lease.id, "{}", crate::printable(&text));
        tx.execute("UPDATE OR FAIL jobs SET last_error = ?2 WHERE seq = ?1", params![lease.seq, text])?;
    }
    Ok(event)
}

/// They could be queued when the job was decided. If the world has changed
/// since, the job still completes, and says what could not be queued.
fn queue_follow_ups(tx: &Tx<'_>, jobs: &[EnqueueJob]) -> Result<Vec<String>> {
    let mut refused = Vec::new();
    for job in jobs {
        match tx.atomically(|| enqueue::enqueue(tx, std::slice::from_ref(job))) {
            Ok(_) => {}
            Err(error) if error.is_answer() => refused.push(format!("{} {}: {error}", job.job_type, job.id)),
            Err(error) => return Err(error),
        }
    }
    Ok(refused)
}

fn mark_applied<'e>(
    tx: &Tx<'_>,
    lease: &Lease,
    event: i64,
    effects: impl Iterator<Item = (&'e PlannedEffect, FileStamp)>,
) -> Result<()> {
    for (effect, stamp) in effects {
        tx.execute(
            "UPDATE effects SET state = 'applied', applied_in = ?3, mtime = ?4, inode = ?5, applied_at = ?6
              WHERE path = ?1 AND job_id = ?2",
            params![effect.path, lease.id, event, stamp.mtime, stamp.inode, tx.now],
        )?;
    }
    Ok(())
}

/// Stays decided, owned by nobody, to be tried again by whoever comes. Never
/// exhausted: the work is done and paid for, only its place is missing. But each
/// wait is twice as long as the one before: what is missing may be so for days.
fn defer(tx: &Tx<'_>, lease: &Lease, held: &Held, failure: &Failure, delay: Millis) -> Result<Application> {
    let delay = delay.max(last_delay(tx, &lease.id)?.saturating_mul(2).min(LONGEST));
    let run_at = tx.now.saturating_add(delay);
    let mut data = serde_json::json!(failure);
    data["run_at"] = rfc3339(run_at).into();
    data["delay"] = delay.into();
    tx.execute(
        "UPDATE OR FAIL jobs SET locked_by = NULL, locked_at = NULL, run_at = ?3, backoff_max = ?4, last_error = ?5,
                event_seq = event_seq + (event_seq < 9223372036854775807)
          WHERE seq = ?1 AND token = ?2 AND status = 'claimed'",
        params![lease.seq, lease.token, run_at, held.backoff_max.max(delay), failure.text()],
    )?;
    let event = NewEvent {
        job_id: &lease.id,
        seq: held.event_seq.saturating_add(1),
        attempt: held.attempts,
        event_type: "rescheduled",
        data: Some(data.to_string()),
    };
    events::write(tx, &event)?;
    Ok(Application::Deferred(failure.text()))
}

/// How long the job was put off the last time; 0 if it was not, since it was
/// decided or retried. The event says it, so the row needs no column for it.
fn last_delay(tx: &Tx<'_>, job_id: &str) -> Result<Millis> {
    let data = tx.row(
        "SELECT data FROM job_events WHERE job_id = ?1 AND type IN ('decided', 'retried', 'rescheduled')
          ORDER BY seq DESC LIMIT 1",
        params![job_id],
        |row| row.get::<_, Option<String>>(0),
    )?;
    let data = data.flatten().and_then(|data| serde_json::from_str::<serde_json::Value>(&data).ok());
    Ok(data.and_then(|data| data.get("delay")?.as_i64()).unwrap_or(0))
}
