//! The store's contract: the verbs of a job's life, each durable when it
//! returns. `sqlite` is the implementation; the conformance suite in `tests/`
//! is what any implementation has to pass.
//!
//! Rules that hold for every verb:
//! - it happens whole or not at all, together with the events that tell of it;
//! - `Ok` means durable;
//! - a verb on a claimed job names the [`Lease`]; if that lease is no longer
//!   the current one the answer is `LeaseLost` and nothing has changed.

mod applied;
mod commit;
mod effects;
mod model;
mod reading;
pub mod sqlite;
mod step;

use std::sync::Arc;
use std::time::Duration;

pub use applied::*;
pub use commit::*;
pub use effects::*;
pub use model::*;
pub use reading::*;
pub use step::*;

use crate::error::{Error, ErrorKind, Result};
use crate::job::Job;

/// A place where jobs are kept.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::store::{Limits, Store};
/// queue.enqueue(jobq::handlers::CreateFile::text("a.txt", "a"))?;
/// let outlook = queue.store().outlook(&["create_file".to_owned()], &Limits::new())?;
/// assert!(outlook.claimable && !outlook.decided);
/// # Ok::<(), jobq::Error>(())
/// ```
pub trait Store: Send + Sync {
    /// Accepts jobs, all or none, in this order.
    fn enqueue(&self, jobs: Vec<EnqueueJob>) -> Result<Vec<Enqueued>>;

    /// Accepts files to write and the jobs that wait on them, all or none: one
    /// job, claimed by its owner and decided, to be applied next. A commit whose
    /// id is known with the same content is answered with what is there.
    fn commit(&self, commit: Commit) -> Result<Committed>;

    /// Validates and admits jobs that other programs inserted. Every verb that
    /// takes or checks holds does this first; calling it alone is never needed
    /// for correctness. Returns how many were looked at.
    fn admit(&self) -> Result<usize>;

    /// Takes up to `limit` claimable jobs, best first; none of a type that is
    /// paused, and of one that has a limit no more than may run at once, whoever
    /// runs the others.
    fn claim(&self, request: ClaimRequest) -> Result<Vec<ClaimedJob>>;

    /// Takes decided jobs that nobody owns, to be applied.
    fn take_over(&self, owner: Owner, limit: u32) -> Result<Vec<ClaimedJob>>;

    /// Makes decided jobs that nobody owns due, whatever their backoff. Returns how many had one.
    fn hasten(&self) -> Result<usize>;

    /// Says that jobs are alive, with progress and checkpoints if there are any.
    fn heartbeat(&self, beats: Vec<Beat>) -> Result<Vec<Pulse>>;

    /// Takes each of these jobs one step further, all in one transaction. One
    /// answer per job: a lost lease or a refusal does not stop the others.
    fn settle(&self, steps: Vec<(Lease, Step)>) -> Result<Vec<Result<Settled>>>;

    /// Takes jobs back from owners that are dead or have gone silent.
    fn reclaim(&self, request: Reclaim) -> Result<Reclaimed>;

    /// Who has what at the moment: what a reclaimer judges.
    fn leases(&self) -> Result<Vec<HeldLease>>;

    /// Owners on record that have nothing claimed.
    fn idle_owners(&self) -> Result<Vec<Owner>>;

    /// Strikes these owners from the record, except those that have claimed
    /// something meanwhile. Returns how many went.
    fn forget_owners(&self, locked_by: Vec<String>) -> Result<u64>;

    /// Ends the pause of a type before its time; false if there was none.
    fn resume(&self, job_type: &str) -> Result<bool>;

    /// What a worker that runs these types could do now, and when there will
    /// be more. Takes no lock.
    fn outlook(&self, types: &[String], limits: &Limits) -> Result<Outlook>;

    /// The types of jobs that could run now if someone knew how.
    fn waiting_types(&self) -> Result<Vec<String>>;

    /// Which of an owner's jobs were asked to stop, by seq and token.
    fn cancel_requests(&self, locked_by: &str) -> Result<Vec<(i64, i64)>>;

    /// What of a job's effects is still to be applied.
    fn planned(&self, job_id: &str) -> Result<Vec<PlannedEffect>>;

    /// What the disk should hold, in order of path.
    fn expected(&self, query: &ExpectedQuery) -> Result<ExpectedPage>;

    /// All that is known of what one path should hold; `None` if no job ever did
    /// anything there.
    fn expected_file(&self, path: &str) -> Result<Option<ExpectedFile>>;

    /// Whether any job did something below this folder, or is about to.
    fn touched_below(&self, folder: &str) -> Result<bool>;

    /// What completed jobs of a type were about, newest first. Of those on one hold
    /// the first is the latest: they end in order of seq.
    fn completed(&self, query: &CompletedQuery) -> Result<Vec<CompletedJob>>;

    /// The unfinished job that has a hold, after admitting what other programs
    /// inserted; of several the one that runs or will run first.
    fn holder(&self, key: &str) -> Result<Option<String>>;

    /// Looks at a difference once more, while nothing can be applied, after
    /// admitting what other programs inserted: that is work in flight, too.
    fn confirm(&self, suspicion: Suspicion) -> Result<Confirmation>;

    /// Queues a repair, unless the path has got newer work since. Looked at in the
    /// transaction that queues it: a repair must never undo what came after it was
    /// asked for.
    fn repair(&self, repair: RepairJob) -> Result<Requeued>;

    /// What jobs did to a path, newest first.
    fn history(&self, path: &str) -> Result<Vec<PathEffect>>;

    /// Calls a job off, and what waits on it.
    fn cancel(&self, id: &str) -> Result<Cancellation>;

    /// Brings a failed or cancelled job back. A decided one is applied again:
    /// on top of what it was planned on, except for the paths in `accepted`.
    fn retry_on(&self, id: &str, accepted: Vec<AcceptedPath>) -> Result<Job>;

    /// One job by its id.
    fn get(&self, id: &str) -> Result<Job>;

    /// The one job whose id starts with this.
    fn resolve(&self, prefix: &str) -> Result<String>;

    /// Jobs, newest first.
    fn list(&self, filter: &Filter) -> Result<Vec<Job>>;

    /// The six questions, answered.
    fn stats(&self) -> Result<Stats>;

    /// What has ended lately: cheap enough to be asked every second.
    fn recent(&self, query: &RecentQuery) -> Result<Recent>;

    /// Deletes a bounded number of old finished jobs; call it until it says 0. The
    /// latest effect on each path stays known, unless it is to be forgotten.
    fn prune(&self, request: PruneRequest) -> Result<u64>;

    /// Deletes the events of a bounded number of old finished jobs and leaves the
    /// jobs. Returns how far it came; call it again from there until it says
    /// `None`.
    fn prune_events(&self, request: PruneEvents) -> Result<Option<EndedAt>>;

    /// Events after a global id, oldest first.
    fn events(&self, query: &EventQuery) -> Result<Vec<Event>>;

    /// Brings a failed or cancelled job back.
    fn retry(&self, id: &str) -> Result<Job> {
        self.retry_on(id, Vec::new())
    }

    /// Whether a staged file of a job is still to be applied.
    fn is_planned(&self, job_id: &str, stage: &str) -> Result<bool> {
        let carries =
            |effect: &PlannedEffect| matches!(&effect.op, EffectOp::Put { stage: Some(known), .. } if known == stage);
        Ok(self.planned(job_id)?.iter().any(carries))
    }

    /// Records durably what a job will do. From here on it is never run again.
    fn decide(&self, lease: Lease, decision: Decision) -> Result<Ending> {
        self.one(lease, Step::Decide(decision)).map(Settled::ending)
    }

    /// Makes a decided job's effects visible by `applier` and completes it.
    fn apply(&self, lease: Lease, applier: Arc<dyn Applier>) -> Result<Application> {
        self.one(lease, Step::Apply(applier)).map(Settled::application)
    }

    /// Ends jobs that have no file effects.
    fn complete(&self, completions: Vec<Completion>) -> Result<Vec<Result<Ending>>> {
        let steps = completions.into_iter().map(Completion::into_step).collect();
        let answers = self.settle(steps)?;
        Ok(answers.into_iter().map(|answer| answer.map(Settled::ending)).collect())
    }

    /// Back to pending after a failed attempt, to run again after `delay`. The attempt
    /// is given back if the failure pauses the type.
    fn reschedule(&self, lease: Lease, failure: Failure, delay: Duration) -> Result<Ending> {
        self.one(lease, Step::Reschedule { failure, delay }).map(Settled::ending)
    }

    /// Gives a job up.
    fn fail(&self, lease: Lease, failure: Failure) -> Result<Ending> {
        self.one(lease, Step::Fail(failure)).map(Settled::ending)
    }

    /// Back to pending, as if it had not been claimed; the token stays used.
    fn release(&self, lease: Lease) -> Result<Ending> {
        self.one(lease, Step::Release).map(Settled::ending)
    }

    /// Ends a claimed job that was asked to stop and did.
    fn acknowledge_cancel(&self, lease: Lease) -> Result<Ending> {
        self.one(lease, Step::AcknowledgeCancel).map(Settled::ending)
    }

    /// One job's step.
    fn one(&self, lease: Lease, step: Step) -> Result<Settled> {
        let mut answers = self.settle(vec![(lease, step)])?;
        answers.pop().unwrap_or_else(|| Err(Error::new(ErrorKind::Internal, "a step was answered without an answer")))
    }
}
