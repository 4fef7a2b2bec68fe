//! Recording what a job will do, before any of it is visible. After this the
//! handler is never run again.

use std::collections::HashSet;

use rusqlite::params;
use serde_json::value::RawValue;

use super::apply::planned_row;
use super::enqueue;
use super::events::{self, NewEvent};
use super::gates;
use super::lease::{self, End};
use super::row::read;
use super::tx::Tx;
use crate::error::{Error, ErrorKind, Result};
use crate::json::sha256_hex;
use crate::payload::Hold;
use crate::store::{Decision, EffectOp, Ending, EnqueueJob, Lease, PlannedEffect, Precondition};

/// The `outcome` column. Effects are rows of their own. Whatever else stands there is
/// damage: a version that adds something to it has another schema.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct OutcomeRecord {
    result: Option<Box<RawValue>>,
    follow_ups: Box<RawValue>,
    /// See [`OutcomeRecord::hash`]. A record without it is never applied.
    sha256: String,
}

/// All that a decided job is to do.
pub(super) struct Decided {
    pub(super) result: Option<Box<RawValue>>,
    pub(super) follow_ups: Vec<EnqueueJob>,
    /// What is not applied yet.
    pub(super) effects: Vec<PlannedEffect>,
}

impl OutcomeRecord {
    fn of(job_id: &str, decision: &Decision) -> Result<Self> {
        let result = decision.result.clone().map(RawValue::from_string).transpose();
        let result = result.map_err(|e| Error::invalid("result", e))?;
        let follow_ups = serde_json::value::to_raw_value(&decision.follow_ups);
        let follow_ups = follow_ups.map_err(|e| Error::invalid("follow_ups", e))?;
        let mut outcome = Self { result, follow_ups, sha256: String::new() };
        outcome.sha256 = outcome.hash(job_id, decision.effects.iter());
        Ok(outcome)
    }

    /// Over all that the job is to do, so that no damage to any of it is carried out:
    /// a file at another path, or nothing at all where a row cannot be found any more.
    /// Over texts as they are stored, because how another version of jobq would write
    /// the same is no damage. What a path must hold before is no part of it: `retry` may
    /// change that, and if it is damaged nothing on the disk is like it.
    fn hash<'e>(&self, job_id: &str, effects: impl Iterator<Item = &'e PlannedEffect>) -> String {
        let effect = |PlannedEffect { path, op, .. }: &'e PlannedEffect| match op {
            EffectOp::Put { sha256, size, stage } => serde_json::json!([path, sha256, size, stage]),
            EffectOp::Remove => serde_json::json!([path]),
        };
        let effects: Vec<_> = effects.map(effect).collect();
        let result = self.result.as_deref().map_or("null", RawValue::get);
        let all = [&*serde_json::json!([job_id, effects]).to_string(), result, self.follow_ups.get()];
        sha256_hex(all.join("\n").as_bytes())
    }
}

/// What a job has decided, as it is stored; `None` if that is not what was recorded.
pub(super) fn decided(tx: &Tx<'_>, lease: &Lease) -> Result<Option<Decided>> {
    let stored =
        tx.row("SELECT outcome FROM jobs WHERE seq = ?1", params![lease.seq], |row| read::<Option<String>>(row, 0))?;
    let stored = stored.flatten().and_then(|text| serde_json::from_str::<OutcomeRecord>(&text).ok());
    let Some(outcome) = stored else { return Ok(None) };
    // Also what an earlier apply has put in place before it got stuck.
    let rows =
        tx.rows(ALL_EFFECTS, params![lease.id], |row| Ok((planned_row(row)?, read::<Option<String>>(row, 6)?)))?;
    let is_known = rows.iter().all(|(_, state)| matches!(state.as_deref(), Some("planned" | "applied")));
    if !is_known || outcome.sha256 != outcome.hash(&lease.id, rows.iter().map(|(effect, _)| effect)) {
        return Ok(None);
    }
    let follow_ups = serde_json::from_str(outcome.follow_ups.get())
        .map_err(|e| Error::new(ErrorKind::Corrupt, format!("job {}: its follow-ups cannot be read: {e}", lease.id)))?;
    let planned = rows.into_iter().filter(|(_, state)| state.as_deref() == Some("planned"));
    Ok(Some(Decided { result: outcome.result, follow_ups, effects: planned.map(|(effect, _)| effect).collect() }))
}

const ALL_EFFECTS: &str = "SELECT path, precondition, observed, sha256, size, stage, state FROM effects
      WHERE job_id = ?1 ORDER BY number";

pub(super) fn decide(tx: &Tx<'_>, lease: &Lease, decision: &Decision) -> Result<Ending> {
    let mut held = lease::current(tx, lease)?;
    if held.decided {
        // The same owner again, after an answer that did not reach it.
        return Ok(Ending::Done);
    }
    if held.cancel_requested {
        lease::end(tx, lease, &held, End::cancelled())?;
        return Ok(Ending::Cancelled);
    }
    let outcome = OutcomeRecord::of(&lease.id, decision)?;
    let outcome = serde_json::to_string(&outcome).map_err(|e| Error::invalid("follow_ups", e))?;
    enqueue::rehearse(tx, &decision.follow_ups)?;
    hold_paths(tx, lease, &mut held.holds, &decision.effects)?;
    rename_former_bearer(tx, &lease.id)?;
    for (number, effect) in (0..).zip(&decision.effects) {
        plan(tx, &lease.id, number, effect)?;
    }
    tx.execute(
        "UPDATE OR FAIL jobs SET outcome = ?3, holds = ?4, event_seq = event_seq + (event_seq < 9223372036854775807)
          WHERE seq = ?1 AND token = ?2 AND status = 'claimed'",
        params![
            lease.seq,
            lease.token,
            outcome,
            (!held.holds.is_empty()).then(|| serde_json::json!(held.holds).to_string()),
        ],
    )?;
    let data = serde_json::json!({ "effects": decision.effects.len(), "follow_ups": decision.follow_ups.len() });
    let event = NewEvent {
        job_id: &lease.id,
        seq: held.event_seq.saturating_add(1),
        attempt: held.attempts,
        event_type: "decided",
        data: Some(data.to_string()),
    };
    events::write(tx, &event)?;
    Ok(Ending::Done)
}

/// A job decides once. What is there under its id was done by a job that has been
/// pruned since, whose id was given again; it is still what the disk should hold.
/// Hardly ever there is any, and to look costs less than an UPDATE that finds nothing.
fn rename_former_bearer(tx: &Tx<'_>, id: &str) -> Result<()> {
    if tx.row("SELECT 1 FROM effects WHERE job_id = ?1 LIMIT 1", params![id], |_| Ok(()))?.is_some() {
        tx.execute("UPDATE effects SET job_id = job_id || '~' || applied_in WHERE job_id = ?1", params![id])?;
    }
    Ok(())
}

/// Paths that became known only now are held from here on. If another job is
/// at work on one, this decision has to wait for it.
fn hold_paths(tx: &Tx<'_>, lease: &Lease, holds: &mut Vec<String>, effects: &[PlannedEffect]) -> Result<()> {
    // Not asked of the list: a commit may have thousands, and others wait for the database.
    let mut known: HashSet<String> = holds.iter().cloned().collect();
    for effect in effects {
        let key = Hold::path(&effect.path)?.as_str().to_owned();
        if !known.insert(key.clone()) {
            continue;
        }
        let busy = tx.row("SELECT job_id FROM job_holds WHERE key = ?1 AND active = 1", params![key], |row| {
            row.get::<_, String>(0)
        })?;
        if let Some(other) = busy {
            return Err(Error::new(
                ErrorKind::PathBusy,
                format!(
                    "job {}: path {} is held by job {other}, which is running; decide again when it has ended",
                    lease.id, effect.path
                ),
            ));
        }
        let keys = [key];
        gates::take_holds(tx, lease.seq, &lease.id, &keys, true)?;
        gates::demote_others(tx, lease.seq, &keys)?;
        holds.extend(keys);
    }
    Ok(())
}

fn plan(tx: &Tx<'_>, job_id: &str, number: i64, effect: &PlannedEffect) -> Result<()> {
    let (op, sha256, size, stage) = match &effect.op {
        EffectOp::Put { sha256, size, stage } => {
            let size = i64::try_from(*size).map_err(|_| Error::invalid("size", "is out of range"))?;
            ("put", Some(sha256), Some(size), stage.as_ref())
        }
        EffectOp::Remove => ("remove", None, None, None),
    };
    tx.execute(
        "INSERT INTO effects (job_id, number, path, op, precondition, observed, sha256, size, stage)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            job_id,
            number,
            effect.path,
            op,
            precondition(&effect.precondition),
            effect.observed,
            sha256,
            size,
            stage
        ],
    )?;
    Ok(())
}

/// As the column has it.
pub(super) fn precondition(precondition: &Precondition) -> &str {
    match precondition {
        Precondition::Absent => "absent",
        Precondition::Sha256(hash) => hash,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is decided by one version is applied by the next: a hash that comes out
    /// differently fails every job that is decided at that moment.
    #[test]
    fn the_hash_of_a_plan_stays_what_it_is() {
        let record = r#"{"result":{"a": 1.0},"follow_ups":[ {"anything":"a later version writes"} ],"sha256":""}"#;
        let record: OutcomeRecord = serde_json::from_str(record).unwrap();
        let effect = |path: &str, op| PlannedEffect {
            path: path.to_owned(),
            op,
            precondition: Precondition::Absent,
            observed: None,
        };
        let put = EffectOp::Put { sha256: "00ff".to_owned(), size: 3, stage: Some("owner/job.1.0".to_owned()) };
        let effects = [effect("a/b.json", put), effect("gone", EffectOp::Remove)];
        let expected = "06ef581a41932785d6e4f1306bdcfb50b6278880fc68fb022c9765a176a2c752";
        assert_eq!(record.hash("job", effects.iter()), expected);
    }
}
