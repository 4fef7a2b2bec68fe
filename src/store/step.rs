//! The steps a claimed job can take, and where they lead.

use std::sync::Arc;
use std::time::Duration;

use super::{Application, Applier, Decision, EnqueueJob, Failure, Lease};

/// One step of a claimed job.
#[derive(Clone)]
pub enum Step {
    /// It has ended and has no file effects.
    Complete {
        /// JSON for the `result` column.
        result: Option<String>,
        /// Jobs to queue in the same transaction.
        follow_ups: Vec<EnqueueJob>,
    },
    /// What it will do is certain.
    Decide(Decision),
    /// The same, unless the disk has changed since it was looked at: asked inside
    /// the transaction, before anything is recorded, so that no other job can
    /// come between. The answer is then `PathBusy`, and the caller looks again.
    DecideIf(Decision, Arc<StillSo>),
    /// What was decided becomes visible.
    Apply(Arc<dyn Applier>),
    /// The same, by the one who has just accepted it and can still say no: a
    /// conflict before the first change takes all of it back.
    ApplyOrWithdraw(Arc<dyn Applier>),
    /// It failed and runs again after a while.
    Reschedule {
        /// Why it failed.
        failure: Failure,
        /// How long to wait.
        delay: Duration,
    },
    /// It failed for good.
    Fail(Failure),
    /// It goes back as if it had not been claimed.
    Release,
    /// It was asked to stop and did.
    AcknowledgeCancel,
}

/// Whether what a decision expects is still so. Called while the database is
/// locked for all others: it looks at no content.
pub type StillSo = dyn Fn(&Decision) -> bool + Send + Sync;

/// Where a step led.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// For every other step.
    Ended(Ending),
    /// For `Apply` and `ApplyOrWithdraw`.
    Applied(Application),
}

/// Where a verb on a claimed job left it. A cancel that was committed first
/// wins, so the answer may be `Cancelled` whatever was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As asked.
    Done,
    /// Failed instead of rescheduled: the attempts are used up.
    Failed,
    /// Cancelled instead: that request came first.
    Cancelled,
}

impl Settled {
    pub(super) fn ending(self) -> Ending {
        match self {
            Self::Ended(ending) => ending,
            Self::Applied(_) => unreachable!("only `Apply` is answered so"),
        }
    }

    pub(crate) fn application(self) -> Application {
        match self {
            Self::Applied(application) => application,
            Self::Ended(_) => unreachable!("`Apply` is never answered so"),
        }
    }
}

/// The end of a job without file effects.
#[derive(Clone, Debug)]
pub struct Completion {
    /// Whose.
    pub lease: Lease,
    /// JSON for the `result` column.
    pub result: Option<String>,
    /// Jobs to queue in the same transaction.
    pub follow_ups: Vec<EnqueueJob>,
}

impl Completion {
    pub(super) fn into_step(self) -> (Lease, Step) {
        (self.lease, Step::Complete { result: self.result, follow_ups: self.follow_ups })
    }
}
