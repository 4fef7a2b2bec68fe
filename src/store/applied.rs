//! What the disk should hold because of jobs that have completed.

use std::sync::Arc;

use super::{EnqueueJob, Enqueued, FileStamp};
use crate::clock::Millis;
use crate::json::JsonText;
use crate::state::Status;

/// The latest applied effect of a path, as much of it as a look at the file's
/// stamp needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedStamp {
    /// Below the root.
    pub path: String,
    /// The size the file should have; `None` if there should be none.
    pub size: Option<u64>,
    /// The file as apply left it.
    pub stamp: FileStamp,
    /// sha256 of its content, if that was asked for.
    pub sha256: Option<String>,
    /// Applied effects that this one has replaced.
    pub superseded: u64,
}

/// Which paths to read.
#[derive(Clone, Debug, Default)]
pub struct ExpectedQuery {
    /// Only paths after this one, in order of their bytes: the cursor.
    pub after: String,
    /// Only those whose latest effect is of a job of this type.
    pub job_type: Option<String>,
    /// With the hashes of contents.
    pub hashes: bool,
    /// How many at most.
    pub limit: u32,
}

/// Some of what the disk should hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedPage {
    /// In order of path.
    pub files: Vec<ExpectedStamp>,
    /// Where to go on; `None` at the end.
    pub next: Option<String>,
}

/// All that is known of what a path should hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedFile {
    /// The job that left it so.
    pub job_id: String,
    /// Its type; `None` once it has been pruned.
    pub job_type: Option<String>,
    /// The file as apply left it, with its hash.
    pub stamp: ExpectedStamp,
    /// What an effect that is planned, and perhaps half-way applied, leaves: as
    /// good as what was there before.
    pub planned: Vec<Option<String>>,
}

/// A difference that was seen, to be looked at again while nothing can be
/// applied.
#[derive(Clone)]
pub struct Suspicion {
    /// Where.
    pub path: String,
    /// The job whose effect the disk was compared with.
    pub job_id: String,
    /// Whether the disk still looks as it did. Called while the database is locked
    /// for all others: it looks at no content.
    pub still_so: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// What became of a suspicion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// It is so.
    Confirmed {
        /// An unfinished job that has the path, if there is one: work in flight.
        in_flight: Option<String>,
    },
    /// The disk or the record has changed meanwhile: compare again.
    Changed {
        /// The job that has changed it, or has the path; `None` if it was none.
        by: Option<String>,
    },
}

/// A job that puts back what another left, if nothing has come after that.
#[derive(Clone)]
pub struct RepairJob {
    /// The job to queue.
    pub job: EnqueueJob,
    /// The path that is to be as it was.
    pub path: String,
    /// The job that left it so.
    pub left_by: String,
}

/// What became of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requeued {
    /// It is queued.
    Queued(Enqueued),
    /// An unfinished job has the path, or another has changed it since: what was
    /// to be put back is no longer what should be there.
    Overtaken {
        /// That job; `None` if nothing is known of the path any more.
        by: Option<String>,
    },
}

/// One thing that a job did to a path, or is about to do.
#[derive(Clone, Debug)]
pub struct PathEffect {
    /// The job.
    pub job_id: String,
    /// Its type and status, unless it has been pruned.
    pub job: Option<(String, Status)>,
    /// When it ended.
    pub at: Option<Millis>,
    /// sha256 of the content it left; `None` if it removed the file.
    pub sha256: Option<String>,
    /// The size of that content.
    pub size: Option<u64>,
    /// What it found there: a sha256, or nothing.
    pub before: Option<String>,
    /// Whether it has been done.
    pub applied: bool,
    /// What the job was asked for, unless it has been pruned.
    pub payload: Option<JsonText>,
}
