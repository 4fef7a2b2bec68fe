//! A commit as the store sees it: one job that writes files, and the jobs that
//! wait on it, accepted in one transaction.

use std::sync::Arc;

use super::{EnqueueJob, Enqueued, Lease, Owner, PlannedEffect};
use crate::error::Result;
use crate::job::Job;

/// Files to write and jobs to queue, with every check done that needs neither
/// the database nor its lock.
#[derive(Clone)]
pub struct Commit {
    /// Who accepts it, and applies it if nothing comes between.
    pub owner: Owner,
    /// The job that writes the files; its id is the commit's.
    pub files: EnqueueJob,
    /// What it does to them.
    pub effects: Vec<PlannedEffect>,
    /// The jobs that wait on it.
    pub jobs: Vec<EnqueueJob>,
    /// Whether the disk is still as it was when this was planned. Asked inside
    /// the transaction, before anything is recorded.
    pub still_so: Arc<StillThere>,
}

/// An error if the disk has changed.
pub type StillThere = dyn Fn() -> Result<()> + Send + Sync;

/// The answer to a commit.
#[derive(Clone, Debug)]
pub enum Committed {
    /// Accepted: claimed by its owner, decided, to be applied.
    New {
        /// The right to apply it.
        lease: Lease,
        /// Its jobs, in the order they were given.
        jobs: Vec<Enqueued>,
    },
    /// The same commit had been accepted before.
    Existing(Box<Job>),
}
