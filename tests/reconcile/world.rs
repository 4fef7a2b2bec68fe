//! A queue whose jobs have run, and a disk that can be damaged.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use jobq::handlers::{CreateFile, DeleteFile};
use jobq::{
    Difference, Finding, NewJob, Queue, QueueOptions, ReconcileOptions, Reconciled, Registry, Shutdown, Worker,
    WorkerOptions,
};

pub struct World {
    pub queue: Arc<Queue>,
    folder: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let queue = QueueOptions::in_folder(folder.path()).create(true).open().unwrap();
        Self { queue: Arc::new(queue), folder }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Runs everything that there is.
    pub fn drain(&self) {
        let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
        Worker::new(Arc::clone(&self.queue), Registry::builtin(), options).unwrap().run(&Shutdown::new()).unwrap();
    }

    /// Queues a job, runs it and returns its id.
    pub fn done(&self, job: impl Into<NewJob>) -> String {
        let id = self.queue.enqueue(job).unwrap().id;
        self.drain();
        assert_eq!(self.queue.get(&id).unwrap().status, jobq::Status::Completed);
        id
    }

    pub fn reconcile(&self, options: &ReconcileOptions) -> (Vec<Difference>, Reconciled) {
        let mut found = Vec::new();
        let sums = self.queue.reconcile(options, |difference, _| {
            found.extend(difference.cloned());
            true
        });
        (found, sums.unwrap())
    }

    /// Path and finding of everything that differs.
    pub fn findings(&self, deep: bool) -> BTreeMap<String, Finding> {
        let options = ReconcileOptions { deep, ..ReconcileOptions::default() };
        let (found, sums) = self.reconcile(&options);
        assert_eq!(found.len() as u64, sums.findings + sums.in_flight);
        assert_eq!(sums.checked, sums.ok + sums.findings + sums.in_flight);
        let paths: Vec<_> = found.iter().map(|difference| difference.path.clone()).collect();
        assert!(paths.is_sorted(), "in order of path: {paths:?}");
        found.into_iter().map(|difference| (difference.path, difference.finding)).collect()
    }
}

pub fn put(path: &str, content: &str) -> CreateFile {
    CreateFile { overwrite: true, ..CreateFile::text(path, content) }
}

pub fn remove(path: &str) -> DeleteFile {
    DeleteFile::at(path)
}
