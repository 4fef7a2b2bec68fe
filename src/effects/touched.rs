//! Folders that got or lost an entry, to be synced before the COMMIT that says
//! so: each once for a whole group of jobs.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::error::FileError;
use super::{Files, FolderId};
use crate::store::{Failure, SYNC_FAILED};

/// Handles kept at most; more are synced at once.
const MAX_FOLDERS: u64 = 128;

/// A process that may have few files open keeps fewer: a commit of many folders
/// would run out of handles at the same place each time it is tried.
fn most_folders() -> u64 {
    static MOST: OnceLock<u64> = OnceLock::new();
    *MOST.get_or_init(|| {
        let allowed = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        allowed.map_or(MAX_FOLDERS, |allowed| (allowed / 8).min(MAX_FOLDERS))
    })
}

#[derive(Default)]
pub(super) struct Touched(Mutex<State>);

#[derive(Default)]
struct State {
    folders: HashMap<FolderId, (Arc<OwnedFd>, String)>,
    /// Jobs applied since the last sync.
    jobs: Vec<String>,
    /// Jobs whose sync failed. The store tells that only to the next who claims
    /// them; a group that is run again at once, job by job, has to know it here.
    suspects: HashSet<String>,
    failed: Option<FileError>,
}

impl Touched {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job is about to be applied; returns whether its last sync failed.
    pub(super) fn begin(&self, job_id: &str) -> bool {
        let mut state = self.state();
        state.jobs.push(job_id.to_owned());
        state.suspects.contains(job_id)
    }

    pub(super) fn remember(&self, files: &Files, folder: Arc<OwnedFd>, id: FolderId, path: &str) {
        let mut state = self.state();
        state.folders.entry(id).or_insert_with(|| (folder, path.to_owned()));
        if state.folders.len() as u64 > most_folders() {
            state.flush(files);
        }
    }

    /// Syncs all of them. Whatever comes of it they are forgotten: a second sync
    /// after a failed one may succeed without having written anything.
    pub(super) fn sync(&self, files: &Files) -> Result<(), Failure> {
        let mut state = self.state();
        state.flush(files);
        let jobs = std::mem::take(&mut state.jobs);
        match state.failed.take() {
            None => {
                for job in jobs {
                    state.suspects.remove(&job);
                }
                Ok(())
            }
            Some(error) => {
                state.suspects.extend(jobs);
                Err(Failure::new(SYNC_FAILED, error.message()))
            }
        }
    }
}

impl State {
    fn flush(&mut self, files: &Files) {
        // In an order that is the same each time, so that what goes wrong at one can be made to do so again.
        let mut folders: Vec<(Arc<OwnedFd>, String)> = std::mem::take(&mut self.folders).into_values().collect();
        folders.sort_by(|(_, one), (_, other)| one.cmp(other));
        for (folder, path) in folders {
            if self.failed.is_some() {
                return;
            }
            self.failed = files.sync_folder(&folder, &path).err().map(|e| FileError::os(&path, "sync the folder", e));
        }
    }
}
