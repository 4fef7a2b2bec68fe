//! How a worker hears that there may be work: a bell for its own threads, and a
//! watch on the folder for other processes.
//!
//! jobq's own writers open and close `.jobq/wake` after their COMMIT. Plain SQL
//! from other programs is noticed by the write to the WAL, which comes *before*
//! the commit can be seen, so the worker looks again a little later. Both are
//! hints: the poll is what nothing gets past.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::queue::Queue;

/// Wakes the dispatcher.
///
/// ```
/// use std::time::{Duration, Instant};
/// let bell = jobq::worker::Bell::default();
/// bell.ring();
/// bell.wait(Instant::now() + Duration::from_secs(3600)); // returns at once
/// ```
#[derive(Default)]
pub struct Bell {
    rung: Mutex<Rung>,
    changed: Condvar,
}

/// What has happened since the last wait.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rung {
    inside: bool,
    /// Ends became durable: what was held by them may be claimable.
    pub(super) settled: bool,
    /// Someone else wrote to the database, or is about to.
    pub(super) outside: bool,
}

impl Bell {
    /// Something in this process needs the dispatcher.
    pub fn ring(&self) {
        self.set(|rung| &mut rung.inside);
    }

    pub(super) fn ring_settled(&self) {
        self.set(|rung| &mut rung.settled);
    }

    fn ring_from_outside(&self) {
        self.set(|rung| &mut rung.outside);
    }

    fn set(&self, which: impl FnOnce(&mut Rung) -> &mut bool) {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(which(&mut rung), true) {
            self.changed.notify_one();
        }
    }

    /// Waits until it has been rung, or the time has come.
    pub fn wait(&self, until: Instant) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.saturating_duration_since(Instant::now());
        let quiet = |rung: &mut Rung| *rung == Rung::default();
        drop(self.changed.wait_timeout_while(rung, left, quiet).unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether ends became durable since `take` was last called.
    pub(super) fn is_settled(&self) -> bool {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner).settled
    }

    /// What has happened since this was last asked.
    pub(super) fn take(&self) -> Rung {
        std::mem::take(&mut *self.rung.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The watch on the folders another process writes to. Off while there is a
/// backlog: then nobody waits for a hint, and our own writes would make it work.
pub(super) struct Watch {
    watcher: Option<RecommendedWatcher>,
    on: bool,
}

impl Watch {
    pub(super) fn new(bell: &Arc<Bell>) -> Self {
        let bell = Arc::clone(bell);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| is_hint(&event)) {
                bell.ring_from_outside();
            }
        });
        let watcher = watcher
            .inspect_err(|error| tracing::warn!(%error, "cannot watch for other processes; polling instead"))
            .ok();
        Self { watcher, on: false }
    }

    /// True if it was off: what came meanwhile has not been heard.
    pub(super) fn turn_on(&mut self, queue: &Queue) -> bool {
        if self.on {
            return false;
        }
        self.on = true;
        let watched = self.each_folder(queue, |watcher, folder| watcher.watch(folder, RecursiveMode::NonRecursive));
        if let Err(error) = watched {
            tracing::warn!(%error, "cannot watch for other processes; polling instead");
            self.watcher = None;
        }
        true
    }

    pub(super) fn turn_off(&mut self, queue: &Queue) {
        if std::mem::take(&mut self.on) {
            let _ = self.each_folder(queue, notify::Watcher::unwatch);
        }
    }

    fn each_folder(
        &mut self,
        queue: &Queue,
        act: impl Fn(&mut RecommendedWatcher, &Path) -> notify::Result<()>,
    ) -> notify::Result<()> {
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        act(watcher, queue.state_folder())?;
        match queue.database().parent() {
            Some(folder) if folder != queue.state_folder() => act(watcher, folder),
            _ => Ok(()),
        }
    }
}

fn is_hint(event: &notify::Event) -> bool {
    let kind = matches!(
        event.kind,
        EventKind::Create(_) | EventKind::Modify(_) | EventKind::Access(AccessKind::Close(AccessMode::Write))
    );
    let named = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name == "wake" || name.ends_with("-wal")
    };
    kind && event.paths.iter().any(named)
}
