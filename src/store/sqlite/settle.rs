//! The next step of claimed jobs, many in one transaction, each whole or not
//! at all and with an answer of its own.

use super::apply;
use super::complete;
use super::decide;
use super::fail;
use super::release;
use super::reschedule;
use super::tx::Tx;
use crate::clock::Millis;
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Lease, Settled, Step};

/// Only trouble with the database ends them all.
pub(super) fn settle(tx: &Tx<'_>, steps: &[(Lease, Step)]) -> Result<Vec<Result<Settled>>> {
    let mut answers = Vec::with_capacity(steps.len());
    while let Some((lease, step)) = steps.get(answers.len()) {
        let completions = complete::leading(&steps[answers.len()..]);
        if completions.is_empty() {
            let one = || one(tx, lease, step);
            answers.push(answer(if can_fail_half_way(step) { tx.atomically(one) } else { one() })?);
        } else {
            answers.extend(complete::all(tx, &completions)?);
        }
    }
    Ok(answers)
}

/// What answers one request, as opposed to what ends them all.
pub(super) fn answer<T>(result: Result<T>) -> Result<Result<T>> {
    match result {
        Err(error) if !error.is_answer() => Err(error),
        answer => Ok(answer),
    }
}

/// A savepoint copies every page that is touched, so only those steps get one
/// that may be refused after their first change.
fn can_fail_half_way(step: &Step) -> bool {
    match step {
        Step::Complete { follow_ups, .. } => !follow_ups.is_empty(),
        Step::Decide(decision) | Step::DecideIf(decision, _) => {
            decision.effects.len() > 1 || !decision.follow_ups.is_empty()
        }
        _ => false,
    }
}

fn one(tx: &Tx<'_>, lease: &Lease, step: &Step) -> Result<Settled> {
    let ending = match step {
        Step::Apply(applier) => return apply::apply(tx, lease, applier, false).map(Settled::Applied),
        Step::ApplyOrWithdraw(applier) => return apply::apply(tx, lease, applier, true).map(Settled::Applied),
        Step::Complete { result, follow_ups } => complete::complete(tx, (lease, result.as_deref()), follow_ups),
        Step::Decide(decision) => decide::decide(tx, lease, decision),
        Step::DecideIf(decision, still_so) if still_so(decision) => decide::decide(tx, lease, decision),
        Step::DecideIf(..) => Err(Error::new(
            ErrorKind::PathBusy,
            format!("job {}: a path has changed since it was looked at; look again", lease.id),
        )),
        Step::Reschedule { failure, delay } => {
            let delay = Millis::try_from(delay.as_millis()).unwrap_or(Millis::MAX);
            reschedule::reschedule(tx, lease, failure, delay)
        }
        Step::Fail(failure) => fail::fail(tx, lease, failure),
        Step::Release => release::release(tx, lease),
        Step::AcknowledgeCancel => fail::acknowledge_cancel(tx, lease),
    };
    ending.map(Settled::Ended)
}
