//! What the system tells of changes below the root. However much that is while
//! nobody listens, it takes a bounded space.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::places::Places;
use crate::queue::Queue;

/// Changes tend to come together; after the first one, others are waited for this
/// long.
const GATHER: Duration = Duration::from_millis(50);

/// Where hints are left, and waited for.
#[derive(Default)]
pub(super) struct Hints {
    inbox: Mutex<Inbox>,
    bell: Condvar,
}

#[derive(Default)]
struct Inbox {
    places: Places,
    /// Something was done, and it is not known where.
    lost: bool,
    stop: bool,
}

/// What a wait has ended with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// These places are to be looked at.
    Places,
    /// It is time to compare everything: because hints were lost, or because there are
    /// more than can be looked at one by one.
    Everything,
    /// The time is over.
    Nothing,
    /// It is time to end.
    End,
}

impl Hints {
    /// Something was done here.
    pub(super) fn add(&self, path: String) {
        let mut inbox = self.lock();
        let first = inbox.places.are_none();
        inbox.places.add(path);
        if first || inbox.places.are_many() {
            self.bell.notify_all();
        }
    }

    /// Something was missed.
    fn lose(&self) {
        self.lock().lost = true;
        self.bell.notify_all();
    }

    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.bell.notify_all();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.lock().stop
    }

    /// Waits for hints that come together, no longer than `until`; they are added to
    /// `places`.
    pub(super) fn wait(&self, until: Instant, places: &mut Places) -> Heard {
        let mut inbox = self.lock();
        let (mut due, mut first) = (until, true);
        while !inbox.stop && !inbox.lost && !inbox.places.are_many() {
            let now = Instant::now();
            if now >= due {
                break;
            }
            if first && !inbox.places.are_none() {
                (due, first) = (until.min(now + GATHER), false);
            }
            let waited = self.bell.wait_timeout(inbox, due.saturating_duration_since(now));
            inbox = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if inbox.stop {
            return Heard::End;
        }
        let Inbox { places: heard, lost, .. } = std::mem::take(&mut *inbox);
        let (everything, nothing) = (lost || heard.are_many(), heard.are_none());
        places.add_all(heard);
        if everything || places.are_many() {
            Heard::Everything
        } else if nothing {
            Heard::Nothing
        } else {
            Heard::Places
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leaves hints as long as the answer is kept; `None` if the system has none to give.
pub(super) fn listen(queue: &Queue, hints: &Arc<Hints>) -> Option<RecommendedWatcher> {
    watch(queue, hints)
        .inspect_err(|error| tracing::warn!(%error, "cannot watch the root; comparing now and then instead"))
        .ok()
}

fn watch(queue: &Queue, hints: &Arc<Hints>) -> notify::Result<RecommendedWatcher> {
    let root = std::fs::canonicalize(queue.root())?;
    let (hints, below) = (Arc::clone(hints), root.clone());
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| match event {
        Err(_) => hints.lose(),
        Ok(event) if event.need_rescan() => hints.lose(),
        Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
        Ok(event) => event.paths.iter().filter_map(|path| relative(path, &below)).for_each(|path| hints.add(path)),
    })?;
    watcher.watch(&root, RecursiveMode::Recursive)?;
    Ok(watcher)
}

/// As jobs name it; `None` for what is jobq's own.
fn relative(path: &Path, root: &Path) -> Option<String> {
    let path = path.strip_prefix(root).ok()?.to_str()?;
    let own = path == ".jobq" || path.starts_with(".jobq/");
    (!own && !path.is_empty()).then(|| path.to_owned())
}
