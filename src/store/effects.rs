//! What a decided job does to files, and who does it.

use super::{EnqueueJob, Failure, Lease};
use crate::clock::Millis;

/// What a job will do, recorded before any of it is visible.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// JSON for the `result` column.
    pub result: Option<String>,
    /// What happens to files.
    pub effects: Vec<PlannedEffect>,
    /// Jobs to queue when this one completes.
    pub follow_ups: Vec<EnqueueJob>,
}

/// One thing that happens to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEffect {
    /// Below the root, normalised.
    pub path: String,
    /// What happens.
    pub op: EffectOp,
    /// What must be there before.
    pub precondition: Precondition,
    /// How that looked at decide (size, times, inode), as JSON.
    pub observed: Option<String>,
}

/// What happens to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectOp {
    /// New content, carried by a staged file.
    Put {
        /// sha256 of the content.
        sha256: String,
        /// Its size in bytes.
        size: u64,
        /// The staged file, relative to the stage; none when the content was
        /// already there at decide.
        stage: Option<String>,
    },
    /// The file goes.
    Remove,
}

/// What must be at a path when an effect is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing.
    Absent,
    /// Content with this sha256.
    Sha256(String),
}

/// What an operator has seen at a path and takes as the ground to apply on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedPath {
    /// Below the root, normalised.
    pub path: String,
    /// What is there.
    pub precondition: Precondition,
    /// How it looks, as JSON.
    pub observed: Option<String>,
}

/// The one who changes files. Called inside the write transaction that
/// completes the job, so that "completed" is never ahead of the disk.
///
/// Folders are synced by [`sync`](Applier::sync), which comes before the COMMIT
/// and once for all jobs of a group.
pub trait Applier: Send + Sync {
    /// Applies all effects of one job, or says why not. `afresh`: an earlier
    /// sync of its folders failed, so nothing that is in place can be trusted to
    /// be durable and has to be written anew.
    fn apply(&self, lease: &Lease, effects: &[PlannedEffect], afresh: bool) -> ApplyReport;

    /// Makes everything applied so far durable.
    fn sync(&self) -> Result<(), Failure>;
}

/// The code of a commit that was taken back before it had changed anything.
pub const WITHDRAWN: &str = "withdrawn";

/// The code of a failure to sync folders: what is in place is not durable.
pub const SYNC_FAILED: &str = "sync_failed";

/// What applying came to.
#[derive(Clone, Debug)]
pub enum ApplyReport {
    /// All is in place; one stamp per effect.
    Applied(Vec<FileStamp>),
    /// The disk is not as it must be. `applied` lists effects (by index) that
    /// are already on disk.
    Conflict {
        /// Why, with both hashes.
        failure: Failure,
        /// What is on disk nevertheless.
        applied: Vec<(usize, FileStamp)>,
    },
    /// Not possible now (no room, no permission); try again after the delay, or
    /// after twice the last one, up to 30 s, if the job was put off before.
    Deferred {
        /// Why.
        failure: Failure,
        /// When to try again, in milliseconds, at the soonest.
        delay: Millis,
    },
}

/// A file as apply left it; all zero for a removed one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileStamp {
    /// Modification time in nanoseconds.
    pub mtime: i64,
    /// Inode number.
    pub inode: i64,
}

/// What became of a decided job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Application {
    /// Completed.
    Completed,
    /// Failed by conflict; the message says what differs.
    Conflict(String),
    /// Failed by conflict before anything was changed, and what waited on it is
    /// cancelled: it is as if it had not been accepted.
    Withdrawn(String),
    /// Still decided, now unowned; someone tries again later.
    Deferred(String),
}

impl Application {
    /// Put off because there is no room on the disk.
    pub(crate) fn is_disk_full(&self) -> bool {
        // The text of a failure begins with its code.
        matches!(self, Self::Deferred(why) if why.starts_with("disk_full: "))
    }
}
