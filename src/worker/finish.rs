//! Taking ends to the store: many in one transaction, kept and tried again for
//! as long as the database fails.
//!
//! A job with file effects goes through twice. What is decided in one round is
//! applied in the next, together with what is decided then, so two steps cost
//! latency and not twice the fsyncs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::execute::Finished;
use super::hooks::{Call, Hooks};
use super::postponed::Postponed;
use super::report::{AttemptEnd, AttemptReport, WorkerEvent, WorkerSummary};
use super::seal::seal_stage;
use super::stop::ends_a_worker;
use super::trouble::Trouble;
use super::{Room, Shared};
use crate::error::{Error, ErrorKind, Result};
use crate::handler::{HandlerError, Run};
use crate::state::Status;
use crate::store::{Application, Applier, Beat, Ending, Failure, Progress, Settled, Step, Store as _};

/// Decisions, and as many that are applied, in one transaction: files are looked
/// at and renamed while the database is locked for all others, and that is to
/// take some 20 ms.
const MOST_WITH_FILES: usize = 64;
/// Steps of any kind in one transaction, for the same reason.
const MOST_STEPS: usize = 1000;

/// The thread that settles what the runners finish.
pub(super) struct Finisher {
    pub(super) shared: Arc<Shared>,
    applier: Arc<dyn Applier>,
    hooks: Hooks,
    summary: WorkerSummary,
    /// Decided, to be applied in the next round.
    decided: Vec<Finished>,
    /// There was no place for them in the last round.
    left: Vec<Finished>,
    pub(super) postponed: Postponed,
}

impl Finisher {
    pub(super) fn new(shared: Arc<Shared>, hooks: Hooks) -> Self {
        let applier: Arc<dyn Applier> = Arc::clone(&shared.files) as _;
        let (decided, left, postponed) = (Vec::new(), Vec::new(), Postponed::default());
        Self { shared, applier, hooks, summary: WorkerSummary::default(), decided, left, postponed }
    }

    /// If it ends by a bug, the dispatcher has to know: nobody else would.
    pub(super) fn run_guarded(mut self) -> WorkerSummary {
        let run = catch_unwind(AssertUnwindSafe(|| self.run()));
        if let Err(panic) = run {
            super::execute::forget(panic);
            self.leave(&[], Error::new(ErrorKind::Internal, "a panic in the worker's finisher; start it again"));
        }
        self.summary
    }

    fn run(&mut self) {
        loop {
            let now = Instant::now();
            let at_once = !(self.decided.is_empty() && self.left.is_empty());
            let hurried = self.shared.finished.is_hurried();
            let until = if at_once { Some(now) } else { self.postponed.until(now, hurried) };
            let come = self.shared.finished.take(until, hurried);
            // First what makes paths free, last what has just come. What is postponed stands
            // behind what was left, so that it cannot keep it from its turn; what has waited for
            // its time is tried when that has come.
            let mut round = std::mem::take(&mut self.decided);
            round.append(&mut self.postponed.take_damaged(Instant::now(), self.shared.finished.is_hurried()));
            round.append(&mut self.left);
            round.append(&mut self.postponed.take_soon());
            if come.is_none() && round.is_empty() {
                return self.give_up_the_rest();
            }
            let come = come.unwrap_or_default();
            self.look_over(&come);
            round.extend(come);
            self.left = round.split_off(fitting(round.iter().map(|end| &end.step)));
            if !self.round(round) {
                return;
            }
        }
    }

    /// What has just come to be applied was decided by somebody who is gone. What is large
    /// of it is hashed here and not by the dispatcher, who has to give signs of life.
    fn look_over(&self, come: &[Finished]) {
        for end in come.iter().filter(|end| matches!(end.step, Step::Apply(_))) {
            // What cannot be read now is told when it is applied.
            self.shared.files.look_over(&self.shared.queue.store().planned(&end.run.lease.id).unwrap_or_default());
        }
    }

    /// One transaction. False when it had to be left undone.
    fn round(&mut self, mut round: Vec<Finished>) -> bool {
        seal_stage(&self.shared.files, &mut round);
        let mut trouble = Trouble::default();
        let answers = loop {
            match self.settle(&round) {
                Ok(answers) => break answers,
                Err(error) if error.is_about_one() => break self.one_by_one(&round),
                Err(error) if ends_a_worker(error.kind()) => return self.leave(&round, error),
                Err(error) => {
                    let retry_in = trouble.failed(self.shared.ticks.now());
                    self.shared.tell(&WorkerEvent::Trouble { error: error.to_string(), retry_in });
                    if !self.shared.finished.pause(retry_in) {
                        return self.leave(&round, error);
                    }
                }
            }
        };
        if trouble.over() {
            self.shared.tell(&WorkerEvent::TroubleOver);
        }
        self.take_note(&round, &answers);
        for (end, answer) in round.into_iter().zip(answers) {
            self.answered(end, answer);
        }
        self.look_whether_it_is_over();
        true
    }

    fn settle(&self, round: &[Finished]) -> Result<Vec<Result<Settled>>> {
        self.flush_progress(round)?;
        self.shared.queue.store().settle(round.iter().map(|end| end.request(&self.shared.files)).collect())
    }

    fn leave(&self, round: &[Finished], error: Error) -> bool {
        let jobs = round.len() + self.left.len();
        tracing::error!(jobs, %error, "ends could not be recorded; other workers will run or apply these jobs");
        self.shared.finished.leave(error);
        self.shared.bell.ring();
        false
    }

    /// What the dispatcher goes by: how long attempts take, and whether there is
    /// room on the disk.
    fn take_note(&self, round: &[Finished], answers: &[Result<Settled>]) {
        let mut pace = self.shared.pace.lock().unwrap_or_else(PoisonError::into_inner);
        for (end, answer) in round.iter().zip(answers) {
            if answer.is_ok() && end.slot.is_some() && !matches!(end.step, Step::Apply(_)) {
                pace.took(end.duration);
            }
        }
        let mut applied = answers.iter().filter_map(|answer| match answer {
            Ok(Settled::Applied(application)) => Some(application),
            _ => None,
        });
        if round.iter().any(|end| end.disk_full) || applied.clone().any(Application::is_disk_full) {
            self.shared.room.store(Room::Full as u8, Ordering::Release);
        } else if applied.any(|application| *application == Application::Completed) {
            self.shared.room.store(Room::Found as u8, Ordering::Release);
        }
    }

    /// One of them makes the whole transaction fail: each by itself.
    fn one_by_one(&self, round: &[Finished]) -> Vec<Result<Settled>> {
        let one = |end: &Finished| {
            if let Err(error) = self.flush_progress(std::slice::from_ref(end)) {
                tracing::warn!(job_id = end.job.id, %error, "the last progress is not recorded");
            }
            let (lease, step) = end.request(&self.shared.files);
            self.shared.queue.store().one(lease, step)
        };
        round.iter().map(one).collect()
    }

    /// The last progress of a job is never lost: it goes before the end, which
    /// waits for it.
    fn flush_progress(&self, round: &[Finished]) -> Result<()> {
        let told: Vec<_> = round.iter().filter_map(|end| Some((&end.run, end.run.take_progress(true)?))).collect();
        if told.is_empty() {
            return Ok(());
        }
        let beat = |(run, progress): &(&Arc<Run>, Progress)| Beat {
            lease: run.lease.clone(),
            progress: Some(progress.clone()),
            checkpoint: None,
        };
        let answer = self.shared.queue.store().heartbeat(told.iter().map(beat).collect());
        answer.map(drop).inspect_err(|_| {
            for (run, progress) in told {
                run.put_back_progress(progress);
            }
        })
    }

    fn answered(&mut self, mut end: Finished, answer: Result<Settled>) {
        let settled = match answer {
            Ok(settled) => settled,
            Err(error) => return self.refused(end, error),
        };
        self.taken(&mut end, &settled);
        let how = match (&end.step, settled) {
            (_, Settled::Ended(Ending::Cancelled)) => AttemptEnd::Cancelled,
            (_, Settled::Ended(Ending::Failed)) => AttemptEnd::Failed,
            (Step::Decide(_), Settled::Ended(Ending::Done)) => {
                self.shared.tell(&WorkerEvent::Decided { job_id: end.job.id.clone() });
                end.step = Step::Apply(Arc::clone(&self.applier));
                self.decided.push(end);
                return;
            }
            (Step::Reschedule { .. }, _) => AttemptEnd::Rescheduled,
            (Step::Fail(_), _) => AttemptEnd::Failed,
            (Step::Release, _) => AttemptEnd::Released,
            (_, Settled::Applied(Application::Conflict(message) | Application::Withdrawn(message))) => {
                end.failure = Some(Failure::new("conflict", message));
                AttemptEnd::Failed
            }
            (_, Settled::Applied(Application::Deferred(message))) => {
                end.failure = Some(Failure::new("deferred", message));
                AttemptEnd::Deferred
            }
            (_, Settled::Ended(Ending::Done) | Settled::Applied(Application::Completed)) => AttemptEnd::Completed,
        };
        self.ended(end, how);
    }

    /// The store did not take the step.
    fn refused(&mut self, mut end: Finished, error: Error) {
        match error.kind() {
            ErrorKind::LeaseLost | ErrorKind::NotFound => {
                end.failure = Some(Failure::new("lease_lost", error.to_string()));
                self.ended(end, AttemptEnd::LeaseLost);
            }
            ErrorKind::PathBusy => {
                let since = *end.busy_since.get_or_insert_with(Instant::now);
                if self.shared.finished.is_hurried() {
                    end.step = Step::Release;
                } else if since.elapsed() >= end.patience() {
                    // Two jobs may each wait for a path of the other. One of them has to let go of its own.
                    end.come_to_nothing(HandlerError::retry(error).with_code("path_busy"));
                }
                self.postponed.soon(end);
            }
            ErrorKind::Busy | ErrorKind::DiskFull | ErrorKind::Io | ErrorKind::ReadOnly | ErrorKind::OutcomeUnknown => {
                self.postponed.soon(end);
            }
            ErrorKind::Corrupt => self.keep(end, error),
            // What was to be decided or queued is not possible: the attempt has failed.
            _ if end.has_an_outcome() => {
                let failure = Failure::new("invalid_outcome", error.to_string());
                end.failure = Some(failure.clone());
                end.step = Step::Fail(failure);
                self.postponed.soon(end);
            }
            // A row that no rule allows is not written, and may be damage.
            ErrorKind::Internal => self.keep(end, error),
            // The job is not in a state that allows it; in which it is, the next look at what is claimed here tells.
            _ => {
                tracing::error!(job_id = end.job.id, %error, "a job cannot be brought to its end now; it is tried again");
                end.failure = Some(Failure::new("internal_error", error.to_string()));
                // Without its slot, which says until then that it was run.
                self.shared.pool.set_aside(&end.run, end.slot.take());
                self.ended(end, AttemptEnd::Unrecorded);
            }
        }
    }

    fn ended(&mut self, end: Finished, how: AttemptEnd) {
        self.discard_stage(&end, how);
        let (run, slot) = (Arc::clone(&end.run), end.slot);
        // Claimed and given back before it began: there was no attempt to tell of.
        if how != AttemptEnd::Released || slot.is_some() {
            self.tell(end, how);
        }
        // Last: one by one, the next job waits for those who are told of this one.
        self.shared.pool.settled(&run, slot);
    }

    /// A job that is still to be applied, by someone or after a retry, needs what is staged for it.
    pub(super) fn discard_stage(&self, end: &Finished, how: AttemptEnd) {
        let keeps_stage = matches!(end.step, Step::Apply(_)) && how != AttemptEnd::Completed;
        if !keeps_stage && end.run.staged.load(Ordering::Relaxed) > 0 {
            self.shared.files.discard(&end.run.lease);
        }
    }

    pub(super) fn tell(&mut self, end: Finished, how: AttemptEnd) {
        self.summary.count(how);
        let failure = if how == AttemptEnd::Completed { None } else { end.failure };
        self.shared.tell(&WorkerEvent::Attempt(AttemptReport {
            job_id: end.job.id.clone(),
            job_type: end.job.job_type.clone(),
            attempt: end.job.attempts,
            retries: end.job.attempts.saturating_sub(1),
            duration: end.duration,
            outcome: how,
            status: status_after(how),
            error: failure.clone(),
            correlation_id: end.job.correlation_id.clone(),
        }));
        if matches!(how, AttemptEnd::Completed | AttemptEnd::Failed)
            && let Some(handler) = self.shared.registry.get(&end.job.job_type)
        {
            let failure = (how == AttemptEnd::Failed)
                .then(|| failure.unwrap_or_else(|| Failure::new("internal_error", "the job failed")));
            let call = Call { handler: Arc::clone(handler), job: end.job, result: end.result, failure };
            self.hooks.tell(call);
        }
    }
}

/// How many of these steps go into one transaction, from the first on.
fn fitting<'s>(steps: impl Iterator<Item = &'s Step>) -> usize {
    let (mut decides, mut applies) = (0, 0);
    let fits = |step: &&Step| {
        match step {
            Step::Decide(_) | Step::DecideIf(..) => decides += 1,
            Step::Apply(_) => applies += 1,
            _ => {}
        }
        decides <= MOST_WITH_FILES && applies <= MOST_WITH_FILES
    };
    steps.take(MOST_STEPS).take_while(fits).count()
}

fn status_after(end: AttemptEnd) -> Option<Status> {
    match end {
        AttemptEnd::Completed => Some(Status::Completed),
        AttemptEnd::Rescheduled | AttemptEnd::Released => Some(Status::Pending),
        AttemptEnd::Failed => Some(Status::Failed),
        AttemptEnd::Cancelled => Some(Status::Cancelled),
        AttemptEnd::Deferred => Some(Status::Claimed),
        AttemptEnd::LeaseLost | AttemptEnd::Unrecorded => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{ApplyReport, Decision, Lease, PlannedEffect};

    struct Nobody;

    impl Applier for Nobody {
        fn apply(&self, _: &Lease, _: &[PlannedEffect], _: bool) -> ApplyReport {
            unreachable!("nothing is applied here")
        }

        fn sync(&self) -> std::result::Result<(), Failure> {
            Ok(())
        }
    }

    /// So many of each, in this order, cut into rounds.
    fn rounds(parts: &[(&Step, usize)]) -> Vec<usize> {
        let steps: Vec<&Step> = parts.iter().flat_map(|(step, times)| std::iter::repeat_n(*step, *times)).collect();
        let mut rest = &steps[..];
        let mut rounds = Vec::new();
        while !rest.is_empty() {
            let fit = fitting(rest.iter().copied());
            rounds.push(fit);
            rest = &rest[fit..];
        }
        rounds
    }

    #[test]
    fn a_round_is_no_longer_than_others_can_wait_for_the_database() {
        let decide = &Step::Decide(Decision::default());
        let apply = &Step::Apply(Arc::new(Nobody));
        let release = &Step::Release;
        assert_eq!(rounds(&[]), [0; 0]);
        assert_eq!(rounds(&[(release, 2500)]), [1000, 1000, 500]);
        assert_eq!(rounds(&[(decide, 150)]), [64, 64, 22]);
        assert_eq!(rounds(&[(apply, 64), (decide, 64), (release, 10)]), [138], "decisions ride with what is applied");
        assert_eq!(rounds(&[(apply, 65), (release, 10)]), [64, 11]);
        assert_eq!(rounds(&[(release, 999), (decide, 64)]), [1000, 63], "the order is kept");
    }
}
