//! Commits that a process has accepted and not lived to apply.

use std::path::Path;
use std::sync::Arc;

use jobq::effects::{Content, Files};
use jobq::liveness::OwnerLock;
use jobq::store::{Commit, Committed, Dedup, EnqueueJob, Lease, Store as _};
use jobq::{Backoff, Expect, FileEffect, Queue, Unique, sha256_hex};

/// A queue with so many of them.
pub(crate) fn make(root: &Path, count: usize) {
    std::fs::create_dir(root).unwrap();
    let queue = Queue::init(root).unwrap();
    let lock = OwnerLock::acquire(&queue.owners_folder()).unwrap();
    let files = Files::open(root, queue.state_folder(), &lock.owner().locked_by).unwrap();
    let content = crate::bare_commit::content();
    let staged: Vec<_> = (0..count)
        .map(|n| {
            let lease = Lease { id: format!("commit-{n}"), seq: 0, token: 1 };
            files.stage_bytes(&lease, n, content.as_bytes()).unwrap()
        })
        .collect();
    files.sync_stage().unwrap();
    for (n, staged) in staged.into_iter().enumerate() {
        let path = format!("data/{n}.json");
        let put = FileEffect::Put { path: path.clone(), content: Content::Staged(staged), expect: Expect::Any };
        let commit = Commit {
            owner: lock.owner().clone(),
            files: job(n, &path),
            effects: vec![files.plan(put).unwrap()],
            jobs: Vec::new(),
            still_so: Arc::new(|| Ok(())),
        };
        assert!(matches!(queue.store().commit(commit).unwrap(), Committed::New { .. }));
    }
    // Dropped and not signed off: its owner is dead from here on.
    drop(lock);
}

fn job(n: usize, path: &str) -> EnqueueJob {
    let payload = format!("{{\"files\":[{{\"path\":\"{path}\"}}]}}");
    EnqueueJob {
        id: format!("commit-{n}"),
        id_given: true,
        job_type: "write_files".to_owned(),
        payload_hash: sha256_hex(payload.as_bytes()),
        payload,
        admitted: true,
        dedup: Dedup::None,
        unique: Unique::Active,
        holds: vec![format!("path:{path}")],
        priority: 0,
        run_at: None,
        max_attempts: 3,
        timeout: 300_000,
        backoff: Backoff::default(),
        waiting_on: None,
        correlation_id: None,
    }
}
