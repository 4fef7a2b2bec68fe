//! The store's contract: the verbs of a job's life, each durable when it
//! returns. `sqlite` is the implementation; the conformance suite in `tests/`
//! is what any implementation has to pass.
//!
//! Rules that hold for every verb:
//! - it happens whole or not at all, together with the events that tell of it;
//! - `Ok` means durable;
//! - a verb on a claimed job names the [`Lease`]; if that lease is no longer
//!   the current one the answer is `LeaseLost` and nothing has changed.

mod effects;
mod model;
mod reading;
pub mod sqlite;

use std::sync::Arc;
use std::time::Duration;

pub use effects::*;
pub use model::*;
pub use reading::*;

use crate::error::Result;
use crate::job::Job;

/// A place where jobs are kept.
pub trait Store: Send + Sync {
    /// Accepts jobs, all or none, in this order.
    fn enqueue(&self, jobs: Vec<EnqueueJob>) -> Result<Vec<Enqueued>>;

    /// Validates and admits jobs that other programs inserted. Every verb that
    /// takes or checks holds does this first; calling it alone is never needed
    /// for correctness. Returns how many were looked at.
    fn admit(&self) -> Result<usize>;

    /// Takes up to `limit` claimable jobs, best first.
    fn claim(&self, request: ClaimRequest) -> Result<Vec<ClaimedJob>>;

    /// Takes decided jobs that nobody owns, to be applied.
    fn take_over(&self, owner: Owner, limit: u32) -> Result<Vec<ClaimedJob>>;

    /// Says that jobs are alive, with progress and checkpoints if there are any.
    fn heartbeat(&self, beats: Vec<Beat>) -> Result<Vec<Pulse>>;

    /// Records durably what a job will do. From here on it is never run again.
    fn decide(&self, lease: Lease, decision: Decision) -> Result<Ending>;

    /// Makes a decided job's effects visible by `applier` and completes it.
    fn apply(&self, lease: Lease, applier: Arc<dyn Applier>) -> Result<Application>;

    /// Ends jobs that have no file effects. One answer per job: a lost lease
    /// does not stop the others.
    fn complete(&self, completions: Vec<Completion>) -> Result<Vec<Result<Ending>>>;

    /// Back to pending after a failed attempt, to run again after `delay`.
    fn reschedule(&self, lease: Lease, failure: Failure, delay: Duration) -> Result<Ending>;

    /// Gives a job up.
    fn fail(&self, lease: Lease, failure: Failure) -> Result<Ending>;

    /// Back to pending, as if it had not been claimed; the token stays used.
    fn release(&self, lease: Lease) -> Result<Ending>;

    /// Ends a claimed job that was asked to stop and did.
    fn acknowledge_cancel(&self, lease: Lease) -> Result<Ending>;

    /// Takes jobs back from owners that are dead or have gone silent.
    fn reclaim(&self, request: Reclaim) -> Result<Reclaimed>;

    /// Who has what at the moment: what a reclaimer judges.
    fn leases(&self) -> Result<Vec<HeldLease>>;

    /// Calls a job off, and what waits on it.
    fn cancel(&self, id: &str) -> Result<Cancellation>;

    /// Brings a failed or cancelled job back.
    fn retry(&self, id: &str) -> Result<Job>;

    /// One job by its id.
    fn get(&self, id: &str) -> Result<Job>;

    /// The one job whose id starts with this.
    fn resolve(&self, prefix: &str) -> Result<String>;

    /// Jobs, newest first.
    fn list(&self, filter: &Filter) -> Result<Vec<Job>>;

    /// The six questions, answered.
    fn stats(&self) -> Result<Stats>;

    /// Deletes a bounded number of old finished jobs; call it until it says 0.
    fn prune(&self, request: PruneRequest) -> Result<u64>;

    /// Events after a global id, oldest first.
    fn events(&self, query: &EventQuery) -> Result<Vec<Event>>;
}
