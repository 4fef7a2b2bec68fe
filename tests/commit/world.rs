//! A queue in a folder of its own, and what is on its disk.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use jobq::effects::Act;
use jobq::{Accepted, Draft, Filter, Job, NewJob, Queue, QueueOptions, Result};

use crate::support::{note, types};

pub struct World {
    pub queue: Queue,
    folder: tempfile::TempDir,
    fault: Arc<Mutex<Option<Fault>>>,
}

/// Is asked before every change to a file.
type Fault = Box<dyn FnMut(Act, &str) -> io::Result<()> + Send>;

impl World {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fault: Arc<Mutex<Option<Fault>>> = Arc::default();
        let queue = open_with(folder.path(), &fault);
        Self { queue, folder, fault }
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// As another program would.
    pub fn edit(&self, path: &str, content: &str) {
        std::fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        std::fs::write(self.path(path), content).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    /// From now on every change to a file is put before this first.
    pub fn interpose(&self, fault: impl FnMut(Act, &str) -> io::Result<()> + Send + 'static) {
        *self.fault.lock().unwrap() = Some(Box::new(fault));
    }

    pub fn clear(&self) {
        *self.fault.lock().unwrap() = None;
    }

    /// The queue is closed and opened again, as after a restart.
    pub fn reopen(mut self) -> Self {
        self.queue = open_with(self.folder.path(), &self.fault);
        self
    }

    /// A write of one file with one job.
    pub fn save(&self, path: &str, content: &str) -> Result<Accepted> {
        self.queue.commit(|tx| save(tx, path, content))
    }

    /// Everything below the root but jobq's own.
    pub fn disk(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        collect(self.root(), "", &mut found);
        found
    }

    /// What is left in the stage.
    pub fn staged(&self) -> Vec<String> {
        let mut found = BTreeMap::new();
        let stage = self.path(".jobq/stage");
        if stage.exists() {
            collect(&stage, "", &mut found);
        }
        found.into_keys().collect()
    }

    pub fn jobs(&self) -> Vec<Job> {
        let mut jobs = self.queue.list(&Filter { limit: 10_000, ..Filter::default() }).unwrap();
        jobs.reverse();
        jobs
    }

    /// Something that must leave neither files nor jobs nor anything staged.
    pub fn unchanged<T>(&self, act: impl FnOnce(&Queue) -> T) -> T {
        let picture = || (self.disk(), format!("{:?}", self.jobs()), self.staged());
        let before = picture();
        let answer = act(&self.queue);
        assert_eq!(picture(), before, "nothing may have happened");
        answer
    }
}

pub fn save(tx: &mut Draft, path: &str, content: &str) -> Result<()> {
    tx.write(path, content)?;
    tx.enqueue(job(content))
}

pub fn job(text: &str) -> NewJob {
    NewJob::of(&note(text))
}

/// The same queue as another process has it.
pub fn open(folder: &Path) -> Queue {
    QueueOptions::in_folder(folder).types(types()).open().unwrap()
}

fn open_with(folder: &Path, fault: &Arc<Mutex<Option<Fault>>>) -> Queue {
    let fault = Arc::clone(fault);
    let watch = move |act: Act, what: &str| match &mut *fault.lock().unwrap() {
        None => Ok(()),
        Some(fault) => fault(act, what),
    };
    QueueOptions::in_folder(folder).create(true).types(types()).watched(watch).open().unwrap()
}

fn collect(folder: &Path, prefix: &str, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if name == ".jobq" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &format!("{name}/"), found);
        } else if entry.file_type().unwrap().is_symlink() {
            found.insert(name, format!("-> {}", std::fs::read_link(entry.path()).unwrap().display()));
        } else {
            found.insert(name, std::fs::read_to_string(entry.path()).unwrap());
        }
    }
}
