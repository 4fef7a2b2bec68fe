//! What the system tells of changes below the root.

use std::path::Path;
use std::sync::mpsc::Sender;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::queue::Queue;

/// What a watch is woken by.
pub(super) enum Hint {
    /// Something was done here.
    Path(String),
    /// Something was missed.
    Rescan,
    Stop,
}

/// Sends hints as long as the answer is kept; `None` if the system has none to give.
pub(super) fn listen(queue: &Queue, hints: &Sender<Hint>) -> Option<RecommendedWatcher> {
    watch(queue, hints)
        .inspect_err(|error| tracing::warn!(%error, "cannot watch the root; comparing now and then instead"))
        .ok()
}

fn watch(queue: &Queue, hints: &Sender<Hint>) -> notify::Result<RecommendedWatcher> {
    let root = std::fs::canonicalize(queue.root())?;
    let (hints, below) = (hints.clone(), root.clone());
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let rescan = || drop(hints.send(Hint::Rescan));
        match event {
            Err(_) => rescan(),
            Ok(event) if event.need_rescan() => rescan(),
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
            Ok(event) => {
                for path in event.paths.iter().filter_map(|path| relative(path, &below)) {
                    let _ = hints.send(Hint::Path(path));
                }
            }
        }
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
