//! What jobs wait on: as much of an id as names one job, as everywhere.

use jobq::{NewJob, Queue, Result};

/// A ULID has so many characters, and a UUID more.
const WHOLE: usize = 26;

/// With the whole id of what it waits on.
pub(super) fn resolved(job: NewJob, queue: &Queue) -> Result<NewJob> {
    let Some(parent) = job.parent() else { return Ok(job) };
    match queue.resolve(parent) {
        Ok(id) => Ok(job.after(id)),
        // It may be that of a job that comes with this one, which only the store can tell.
        Err(error) if error.is_not_found() && parent.len() >= WHOLE => Ok(job),
        Err(error) => Err(error),
    }
}
