//! Ends that meet damage of the database. What came of a job is kept and tried again; in the end the job fails for it;
//! and where not even that can be written, the job stays this worker's own, so that nobody runs it again: what it did
//! was done, and may have been paid for.

use std::time::{Duration, Instant};

use super::execute::Finished;
use super::finish::Finisher;
use super::report::{AttemptEnd, WorkerEvent};
use crate::error::Error;
use crate::store::{Failure, Settled, Step};

/// For so long, to be judged by the clock and not by the number of tries. What was misread may be read well then. What
/// is broken on the disk is not mended while a worker has it open, and others wait for the slot.
const KEPT: Duration = Duration::from_secs(15);

/// What damage has done to an end.
#[derive(Default)]
pub(super) struct Hurt {
    /// When it was first refused.
    since: Option<Instant>,
    /// Why its step was refused; none if that was not tried yet.
    refused: Option<String>,
}

impl Finisher {
    /// Other jobs are not run only to share its fate, and it does not fail before it is certain.
    pub(super) fn keep(&mut self, mut end: Finished, error: Error) {
        let what = if matches!(end.step, Step::Apply(_)) { "what was decided for" } else { "what came of" };
        let error = error.context(format_args!("{what} job {} cannot be recorded", end.job.id));
        if end.hurt.refused.replace(error.to_string()).is_none() {
            tracing::error!(job_id = end.job.id, %error, "the database is damaged");
        }
        let now = Instant::now();
        if self.shared.finished.is_hurried() {
            return self.give_up(end);
        }
        let since = *end.hurt.since.get_or_insert(now);
        // What is decided is not lost, and what did not run has nothing to lose.
        let is_outcome = !matches!(end.step, Step::Apply(_) | Step::Release);
        let waits = if is_outcome && now.saturating_duration_since(since) < KEPT {
            let waits = self.postponed.keep(end, now);
            self.shared.doubt().kept(self.postponed.unrecorded());
            // What is claimed ahead goes back.
            self.shared.bell.ring();
            waits.map(|retry_in| (error.to_string(), retry_in))
        } else if end.has_an_outcome() {
            return self.lose(end, &error);
        } else {
            let first = self.shared.pool.set_aside(&end.run, end.slot);
            if first && is_outcome {
                self.shared.doubt().lost(now);
            }
            let waits = self.postponed.set_aside(end, now);
            waits.map(|retry_in| (format!("{error}; this worker does not run it again"), retry_in))
        };
        if let Some((error, retry_in)) = waits {
            self.shared.tell(&WorkerEvent::Trouble { error, retry_in });
        }
    }

    /// It has been kept for long enough; perhaps that it is lost can be recorded.
    fn lose(&mut self, mut end: Finished, error: &Error) {
        let failure = Failure::new("database_damaged", error.to_string());
        end.failure = Some(failure.clone());
        end.step = Step::Fail(failure);
        end.hurt.refused = None;
        self.shared.doubt().lost(Instant::now());
        self.postponed.soon(end);
    }

    /// The store has taken a step, and what that says of the damage.
    pub(super) fn taken(&mut self, end: &mut Finished, settled: &Settled) {
        let hurt = std::mem::take(&mut end.hurt);
        let is_lost = hurt.since.is_some() && hurt.refused.is_none();
        if hurt.refused.is_some() {
            self.postponed.healed();
        }
        if end.slot.is_some() && !is_lost && !matches!(settled, Settled::Applied(_)) {
            self.shared.doubt().taken(!matches!(end.step, Step::Release));
        }
    }

    /// After a round.
    pub(super) fn look_whether_it_is_over(&mut self) {
        if self.shared.doubt().kept(self.postponed.unrecorded()) {
            self.shared.bell.ring();
        }
        if self.postponed.is_over() && !self.shared.finished.is_hurried() {
            self.shared.tell(&WorkerEvent::TroubleOver);
        }
    }

    /// There is no more time for them.
    pub(super) fn give_up_the_rest(&mut self) {
        for end in self.postponed.give_up() {
            self.give_up(end);
        }
    }

    /// Its slot stays, which tells the next worker that this attempt was made.
    fn give_up(&mut self, mut end: Finished) {
        self.shared.pool.set_aside(&end.run, end.slot);
        self.discard_stage(&end, AttemptEnd::Unrecorded);
        if end.slot.is_none() && matches!(end.step, Step::Release) {
            return;
        }
        let why = end.hurt.refused.take().unwrap_or_default();
        end.failure = Some(Failure::new("database_damaged", why));
        self.tell(end, AttemptEnd::Unrecorded);
    }
}
