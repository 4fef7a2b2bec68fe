//! From what the application asked for to what the store is asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::committer::Staging;
use super::draft::{Change, Draft};
use super::ids;
use crate::effects::{Content, Expect, FileEffect, Files, Staged};
use crate::error::{Error, Result, printable};
use crate::handlers::{CommittedFile, WriteFiles};
use crate::json::{MAX_JSON_BYTES, sha256_hex};
use crate::new_job::{NewJob, Unique};
use crate::payload::{Hold, Payload as _};
use crate::queue::Queue;
use crate::store::{Dedup, EnqueueJob, PlannedEffect, Precondition, StillThere};

/// The job that stands for the commit: what it does to which file, not the
/// contents. The same commit submitted again has the same payload.
pub(super) fn files_job(queue: &Queue, id: &str, draft: &Draft) -> Result<EnqueueJob> {
    let file = |(path, change): &(String, Change)| {
        let content = match change {
            Change::Write(content) => Some(content),
            Change::Remove => None,
        };
        let (sha256, size) = (content.map(|content| sha256_hex(content)), content.map(|content| content.len() as u64));
        CommittedFile { path: path.clone(), sha256, size }
    };
    let meanings = draft.jobs.iter().enumerate().map(|(index, job)| job.meaning().map_err(|e| e.in_item(index)));
    let meanings = meanings.collect::<Result<Vec<_>>>()?;
    let jobs_sha256 = (!meanings.is_empty()).then(|| sha256_hex(serde_json::json!(meanings).to_string().as_bytes()));
    let payload = WriteFiles { files: draft.changes.iter().map(file).collect(), jobs_sha256 };
    let payload = serde_json::to_string(&payload).map_err(|e| Error::invalid("payload", e))?;
    if payload.len() > MAX_JSON_BYTES {
        return Err(Error::invalid("writes", "are too many for one commit; split it"));
    }
    let mut holds = Vec::with_capacity(draft.changes.len());
    for (path, _) in &draft.changes {
        holds.push(Hold::path(path)?.as_str().to_owned());
    }
    let defaults = queue.types().defaults(WriteFiles::TYPE);
    Ok(EnqueueJob {
        id: id.to_owned(),
        id_given: true,
        job_type: WriteFiles::TYPE.to_owned(),
        payload_hash: sha256_hex(payload.as_bytes()),
        payload,
        admitted: true,
        dedup: Dedup::None,
        unique: Unique::Active,
        holds,
        priority: 0,
        run_at: None,
        max_attempts: defaults.max_attempts,
        timeout: i64::try_from(defaults.timeout.as_millis()).unwrap_or(i64::MAX),
        backoff: defaults.backoff,
        waiting_on: None,
        correlation_id: Some(id.to_owned()),
    })
}

/// The commit's jobs, with every check done that needs no database.
pub(super) fn jobs(queue: &Queue, id: &str, jobs: Vec<NewJob>, wait: bool) -> Result<Vec<EnqueueJob>> {
    let named = |(number, job): (usize, NewJob)| job.in_commit(id, wait, || ids::job_id(id, number));
    queue.prepare_many(jobs.into_iter().enumerate().map(named))
}

/// What the disk holds, and what is to become of it.
pub(super) struct Plan {
    pub(super) effects: Vec<PlannedEffect>,
    /// What was seen at each path that counts.
    seen: Vec<Seen>,
}

struct Seen {
    path: String,
    precondition: Precondition,
    observed: Option<String>,
}

impl Plan {
    /// Looks at every path and refuses what is not as expected. What is staged
    /// is durable afterwards.
    pub(super) fn make(files: &Arc<Files>, draft: &Draft, staging: &Staging<'_>) -> Result<Self> {
        let effect = |((path, _), staged): (&(String, Change), Option<&Staged>)| match staged {
            Some(staged) => {
                let content = Content::Staged(staged.clone());
                FileEffect::Put { path: path.clone(), content, expect: Expect::Any }
            }
            None => FileEffect::Remove { path: path.clone(), expect: Expect::Any },
        };
        let effects = files.plan_all(draft.changes.iter().zip(staging.files()).map(effect).collect())?;
        let mut seen = Vec::with_capacity(effects.len());
        for PlannedEffect { path, precondition, observed, .. } in &effects {
            seen.push(Seen { path: path.clone(), precondition: precondition.clone(), observed: observed.clone() });
        }
        for path in draft.expectations.keys().filter(|path| !draft.changes_path(path)) {
            let (precondition, observed) = files.look(path)?.into_precondition();
            seen.push(Seen { path: path.clone(), precondition, observed });
        }
        for Seen { path, precondition, .. } in &seen {
            expected(path, draft.expectation(path), precondition)?;
        }
        if effects.iter().any(|effect| !matches!(effect.op, crate::store::EffectOp::Remove)) {
            files.sync_stage()?;
            files.confirm_staged(&effects)?;
        }
        Ok(Self { effects, seen })
    }

    /// The question whether all that is still there, and whether it was ever
    /// answered with no: then a new look is worth it.
    pub(super) fn still_so(&self, files: &Arc<Files>) -> (Arc<StillThere>, Arc<AtomicBool>) {
        let changed = Arc::new(AtomicBool::new(false));
        let seen: Vec<_> = self
            .seen
            .iter()
            .map(|seen| (seen.path.clone(), seen.precondition.clone(), seen.observed.clone()))
            .collect();
        let (files, tell) = (Arc::clone(files), Arc::clone(&changed));
        let still_so = move || {
            for (path, precondition, observed) in &seen {
                if !files.still_holds(path, precondition, observed.as_deref()) {
                    tell.store(true, Ordering::Release);
                    return Err(Error::stale(format!("{} has just changed", printable(path))));
                }
            }
            Ok(())
        };
        (Arc::new(still_so), changed)
    }
}

/// Exactly: content that happens to be the new one is still not what was read.
fn expected(path: &str, expect: &Expect, found: &Precondition) -> Result<()> {
    let why = match (expect, found) {
        (Expect::Any, _) | (Expect::Absent, Precondition::Absent) => return Ok(()),
        (Expect::Sha256(expected), Precondition::Sha256(found)) if expected == found => return Ok(()),
        (Expect::Absent, Precondition::Sha256(found)) => format!("is there, with sha256 {found}, and was to be absent"),
        (Expect::Sha256(expected), Precondition::Sha256(found)) => {
            format!("was expected to have sha256 {expected}, but has {found}; read it again")
        }
        (Expect::Sha256(expected), Precondition::Absent) => {
            format!("was expected to have sha256 {expected}, but there is no such file")
        }
    };
    let path = printable(path);
    Err(Error::stale(format!("{path} {why}; nothing was written and nothing is queued")))
}
