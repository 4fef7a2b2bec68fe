//! What a handler returned, made ready to be recorded; what cannot come true is
//! refused here, before anything is decided.

use std::collections::HashSet;

use super::Shared;
use crate::effects::{Content, Expect, FileEffect};
use crate::handler::{HandlerError, Prepared, Run};
use crate::job::Job;
use crate::store::{Decision, Lease, Step};

/// The step, and which of its effects take what is there, whatever it is.
pub(super) fn prepare(
    shared: &Shared,
    run: &Run,
    job: &Job,
    prepared: Prepared,
) -> Result<(Step, Vec<usize>), HandlerError> {
    let mut follow_ups = Vec::with_capacity(prepared.follow_ups.len());
    for (number, follow_up) in (1..).zip(prepared.follow_ups) {
        let mut follow_up = shared.queue.prepare(follow_up).map_err(|error| {
            let is_invalid = error.is_invalid();
            let error = HandlerError::from(error.context(format_args!("follow-up job {number}")));
            // The job's own payload is in order.
            if is_invalid { error.with_code("invalid_outcome") } else { error }
        })?;
        // One cause, from the first job to the last.
        follow_up.correlation_id = follow_up.correlation_id.or_else(|| job.correlation_id.clone());
        follow_ups.push(follow_up);
    }
    if prepared.effects.is_empty() {
        return Ok((Step::Complete { result: prepared.result, follow_ups }, Vec::new()));
    }
    check_staged(&run.lease, &prepared.effects)?;
    let is_open = |effect: &FileEffect| match effect {
        FileEffect::Put { expect, .. } | FileEffect::Remove { expect, .. } => *expect == Expect::Any,
    };
    let take_any = (0..prepared.effects.len()).filter(|index| is_open(&prepared.effects[*index])).collect();
    let effects = shared.files.plan_all(prepared.effects)?;
    Ok((Step::Decide(Decision { result: prepared.result, effects, follow_ups }), take_any))
}

/// A staged file is moved to its place, so it can be used once, and by the
/// attempt that staged it: what others have staged goes when they end.
fn check_staged(lease: &Lease, effects: &[FileEffect]) -> Result<(), HandlerError> {
    let claim = format!("{}.{}", lease.id, lease.token);
    let is_own = |stage: &str| {
        let name = stage.split_once('/').and_then(|(_, name)| name.strip_prefix(&claim));
        name.is_some_and(|rest| rest.starts_with(['.', '/']))
    };
    let mut used = HashSet::new();
    for effect in effects {
        let FileEffect::Put { path, content: Content::Staged(staged), .. } = effect else { continue };
        let wrong = if !is_own(&staged.stage) {
            "its content was staged by another attempt; stage it in this one"
        } else if !used.insert(staged.stage.as_str()) {
            "its content was staged once and is used twice; stage it for each file"
        } else {
            continue;
        };
        let message = format!("{}: {wrong}", crate::printable(path));
        return Err(HandlerError::permanent(message).with_code("invalid_outcome"));
    }
    Ok(())
}
