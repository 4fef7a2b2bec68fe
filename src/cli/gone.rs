//! Jobs whose worker is gone, as those who look are told.

use std::collections::HashMap;

use jobq::store::Stuck;
use jobq::{Job, Queue, Result, Status};

/// What has happened, and what to do.
const GONE: &str = "its worker is gone: `jobq reclaim`, or any worker, takes it back";

#[derive(Default)]
pub(crate) struct Gone {
    /// Who had a job, by its id. Somebody else may have it by now.
    owners: HashMap<String, String>,
}

impl Gone {
    /// Which they are now, among all jobs.
    pub(crate) fn from(queue: &Queue) -> Result<Self> {
        Ok(Self { owners: queue.lost()?.into_iter().map(|held| (held.lease.id, held.locked_by)).collect() })
    }

    /// The same, for those who show only these.
    pub(crate) fn among(jobs: &[Job], queue: &Queue) -> Result<Self> {
        if jobs.iter().any(|job| job.status == Status::Claimed) { Self::from(queue) } else { Ok(Self::default()) }
    }

    fn had(&self, id: &str, owner: Option<&String>) -> bool {
        owner.is_some() && self.owners.get(id) == owner
    }

    pub(crate) fn has(&self, stuck: &Stuck) -> bool {
        self.had(&stuck.id, stuck.locked_by.as_ref())
    }

    /// The reason why this job does not get on, if that is it.
    pub(crate) fn why(&self, job: &Job) -> Option<&'static str> {
        self.had(&job.id, job.locked_by.as_ref()).then_some(GONE)
    }
}
