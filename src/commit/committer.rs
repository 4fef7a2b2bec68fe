//! This process as one that commits: its lock, its stage, and what it could not
//! bring to an end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::draft::Change;
use crate::effects::{Files, Staged};
use crate::error::Result;
use crate::liveness::{self, OwnerLock};
use crate::queue::Queue;
use crate::store::{Applier, Lease, Owner};

/// Made with a queue's first commit, and gone with the queue.
pub(crate) struct Committer {
    lock: OwnerLock,
    files: Arc<Files>,
    /// Staged files so far: their names have to differ even if the same commit
    /// is submitted twice at once.
    numbers: AtomicUsize,
    doubts: Mutex<Vec<Doubt>>,
}

/// A commit whose acceptance or end this process could not see.
pub(super) struct Doubt {
    pub(super) id: String,
    pub(super) staged: Vec<Staged>,
}

impl Committer {
    pub(crate) fn new(queue: &Queue) -> Result<Self> {
        queue.store().expect_own_folder()?;
        let lock = OwnerLock::acquire(&queue.owners_folder())?;
        // It gives no signs of life between acceptance and apply; a worker with a short lease is to know that.
        if let Err(error) = lock.promise(liveness::LEASE) {
            tracing::warn!(%error, "cannot note the lease; workers with a shorter one may judge by theirs");
        }
        let files = Files::open(queue.root(), queue.state_folder(), &lock.owner().locked_by)?;
        let mut files = files.protecting(queue.database())?;
        files.policy = Arc::clone(&queue.policy);
        if let Some(watch) = queue.watch() {
            files = files.watched(move |act, what| watch(act, what));
        }
        Ok(Self { lock, files: Arc::new(files), numbers: AtomicUsize::new(0), doubts: Mutex::default() })
    }

    pub(super) fn owner(&self) -> &Owner {
        self.lock.owner()
    }

    pub(super) fn files(&self) -> &Arc<Files> {
        &self.files
    }

    pub(super) fn applier(&self) -> Arc<dyn Applier> {
        Arc::clone(&self.files) as _
    }

    /// Writes and syncs the new contents of a commit. Their names are not synced
    /// yet.
    pub(super) fn stage<'c>(&self, id: &str, changes: impl Iterator<Item = &'c Change>) -> Result<Staging<'_>> {
        // The token of a first claim; what a commit stages is known by its whole name.
        let lease = Lease { id: id.to_owned(), seq: 0, token: 1 };
        let mut staging = Staging { committer: self, files: Vec::new() };
        for change in changes {
            staging.files.push(match change {
                Change::Remove => None,
                Change::Write(content) => {
                    let number = self.numbers.fetch_add(1, Ordering::Relaxed);
                    Some(self.files.stage_bytes(&lease, number, content)?)
                }
            });
        }
        Ok(staging)
    }

    pub(super) fn doubt(&self, doubt: Doubt) {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner).push(doubt);
    }

    pub(super) fn take_doubts(&self) -> Vec<Doubt> {
        std::mem::take(&mut *self.doubts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The last thing: what it still has is free for others.
    pub(crate) fn sign_off(&self, queue: &Queue) {
        let _told = liveness::sign_off(&self.lock, queue.store(), queue.state_folder());
    }
}

/// The staged contents of one commit, one per change. Gone again when dropped,
/// unless they are kept.
pub(super) struct Staging<'c> {
    committer: &'c Committer,
    files: Vec<Option<Staged>>,
}

impl Staging<'_> {
    pub(super) fn files(&self) -> impl Iterator<Item = Option<&Staged>> {
        self.files.iter().map(Option::as_ref)
    }

    /// Whoever applies the commit needs them.
    pub(super) fn keep(mut self) -> Vec<Staged> {
        std::mem::take(&mut self.files).into_iter().flatten().collect()
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        for staged in self.files.iter().flatten() {
            self.committer.files.unstage(staged);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::HeldLease;

    /// By what workers go who have less patience.
    #[test]
    fn a_committer_says_for_how_long_it_may_be_silent() {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::init(folder.path()).unwrap();
        let committer = queue.committer().unwrap();
        let owner = committer.owner().clone();
        let lease = Lease { id: "c".into(), seq: 1, token: 1 };
        let held =
            HeldLease { lease, heartbeat: 0, decided: true, locked_by: owner.locked_by.clone(), owner: Some(owner) };
        assert_eq!(liveness::promised_lease(&held, &queue.owners_folder()), Some(liveness::LEASE));
    }
}
