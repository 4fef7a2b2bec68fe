//! Watching the disk: what drifts and what is healed, as it happens. What the
//! system tells of changes are hints; a comparison of everything, now and then,
//! is the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use notify::RecommendedWatcher;

use super::check::Suspect;
use super::hint::{self, Hint};
use super::{Difference, ReconcileOptions};
use crate::effects::Files;
use crate::error::{ErrorKind, Result};
use crate::queue::Queue;
use crate::store::{ExpectedQuery, Store as _};

/// Changes tend to come together; after the first one, others are waited for this
/// long.
const GATHER: Duration = Duration::from_millis(50);
/// With more hints than this everything is compared instead.
const MOST_HINTS: usize = 5_000;

/// What has happened to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drift {
    /// It is no longer as the latest job left it, or differs in another way than
    /// before.
    Drifted(Difference),
    /// It is again as it should be.
    Healed(String),
}

/// A watch on the files of a queue.
pub struct DiskWatch {
    hints: Receiver<Hint>,
    stop: Sender<Hint>,
    every: Duration,
    options: ReconcileOptions,
    files: Arc<Files>,
    drifted: BTreeMap<String, Difference>,
    /// Heard as long as it is kept.
    watcher: Option<RecommendedWatcher>,
}

/// Ends a watch.
#[derive(Clone)]
pub struct StopWatch(Sender<Hint>);

impl StopWatch {
    /// The watch ends when it has finished what it is at.
    pub fn stop(&self) {
        let _ = self.0.send(Hint::Stop);
    }
}

impl DiskWatch {
    /// Watches from now on; everything is compared at the start and after every
    /// `every`.
    pub fn start(queue: &Queue, options: ReconcileOptions, every: Duration) -> Result<Self> {
        let (stop, hints) = mpsc::channel();
        let files = Arc::new(queue.files("watch")?);
        let watcher = hint::listen(queue, &stop);
        Ok(Self { hints, stop, every, options, files, drifted: BTreeMap::new(), watcher })
    }

    /// What ends it.
    #[must_use]
    pub fn stopper(&self) -> StopWatch {
        StopWatch(self.stop.clone())
    }

    /// Tells what happens until it is stopped. False from `tell` stops it, too.
    pub fn run(mut self, queue: &Queue, mut tell: impl FnMut(&Drift) -> bool) -> Result<()> {
        loop {
            match self.round(queue, &mut tell) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                // It was waited for, and that passes. What was not looked at is compared with everything else now.
                Err(error) if error.kind() == ErrorKind::Busy => {
                    tracing::warn!(%error, "the disk could not be compared; trying again");
                    if self.hints.try_iter().any(|hint| matches!(hint, Hint::Stop)) {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Compares everything, and then looks where hints point to, until it is time to
    /// do so again. False when it is time to end.
    fn round(&mut self, queue: &Queue, tell: &mut impl FnMut(&Drift) -> bool) -> Result<bool> {
        if !self.scan(queue, tell)? {
            return Ok(false);
        }
        let scan_at = Instant::now() + self.every;
        while let Some(hints) = self.gather(scan_at) {
            let Some(paths) = hints else { return Ok(false) };
            for path in paths {
                if !self.look_below(queue, &path, tell)? {
                    return Ok(false);
                }
            }
            // Hints may come without end.
            if Instant::now() >= scan_at {
                break;
            }
        }
        Ok(true)
    }

    /// Hints that have come together; `None` when it is time to compare everything,
    /// `Some(None)` when it is time to end.
    #[expect(clippy::option_option, reason = "the inner one is the end")]
    fn gather(&self, scan_at: Instant) -> Option<Option<BTreeSet<String>>> {
        let mut paths = BTreeSet::new();
        let mut until = scan_at;
        loop {
            match self.hints.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Hint::Path(path)) => {
                    if paths.is_empty() {
                        until = scan_at.min(Instant::now() + GATHER);
                    }
                    paths.insert(path);
                    if paths.len() > MOST_HINTS {
                        return None;
                    }
                }
                Ok(Hint::Rescan) => return None,
                Ok(Hint::Stop) => return Some(None),
                Err(RecvTimeoutError::Timeout) if paths.is_empty() => return None,
                Err(_) => return Some(Some(paths)),
            }
        }
    }

    /// There may be another folder at the root's path by now: of the one that is
    /// held, and heard of, nothing could be told any more.
    fn renew(&mut self, queue: &Queue) -> Result<()> {
        let files = Arc::new(queue.files("watch")?);
        if !files.same_root(&self.files) {
            self.watcher = hint::listen(queue, &self.stop);
        }
        self.files = files;
        Ok(())
    }

    fn scan(&mut self, queue: &Queue, tell: &mut impl FnMut(&Drift) -> bool) -> Result<bool> {
        self.renew(queue)?;
        let mut found = BTreeMap::new();
        queue.reconcile(&self.options, |difference, _| {
            found.extend(difference.map(|difference| (difference.path.clone(), difference.clone())));
            true
        })?;
        let healed: Vec<String> = self.drifted.keys().filter(|path| !found.contains_key(*path)).cloned().collect();
        // A look at stamps may miss what a hint has shown.
        for path in healed {
            if !self.look(queue, &path, tell)? {
                return Ok(false);
            }
        }
        Ok(found.into_iter().all(|(path, difference)| self.now(path, Some(difference), tell)))
    }

    /// A hint may be about a folder: everything below it is looked at.
    fn look_below(&mut self, queue: &Queue, path: &str, tell: &mut impl FnMut(&Drift) -> bool) -> Result<bool> {
        if !self.look(queue, path, tell)? {
            return Ok(false);
        }
        let below = format!("{path}/");
        let mut query = ExpectedQuery { after: below.clone(), limit: 1_000, ..ExpectedQuery::default() };
        loop {
            let page = queue.store().expected(&query)?;
            for expected in page.files {
                if !expected.path.starts_with(&below) {
                    return Ok(true);
                }
                if !self.look(queue, &expected.path, tell)? {
                    return Ok(false);
                }
            }
            match page.next {
                Some(next) => query.after = next,
                None => return Ok(true),
            }
        }
    }

    fn look(&mut self, queue: &Queue, path: &str, tell: &mut impl FnMut(&Drift) -> bool) -> Result<bool> {
        if self.options.paths.as_ref().is_some_and(|wanted| !wanted(path)) {
            return Ok(true);
        }
        // Something was done to it, so its stamp proves nothing.
        let options = ReconcileOptions { deep: true, ..self.options.clone() };
        let suspect = Suspect { path: path.to_owned() };
        let difference = queue.confirmed(suspect, &self.files, &options)?;
        Ok(self.now(path.to_owned(), difference, tell))
    }

    /// What is so now, told if it was not so before. Work in flight is neither.
    fn now(&mut self, path: String, difference: Option<Difference>, tell: &mut impl FnMut(&Drift) -> bool) -> bool {
        match difference {
            Some(difference) if difference.in_flight.is_some() => true,
            Some(difference) => {
                if self.drifted.get(&path) == Some(&difference) {
                    return true;
                }
                self.drifted.insert(path, difference.clone());
                tell(&Drift::Drifted(difference))
            }
            None => self.drifted.remove(&path).is_none() || tell(&Drift::Healed(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// An application that writes below the root all the time gives a new hint
    /// before the last one has been looked at.
    #[test]
    fn hints_without_end_do_not_keep_everything_from_being_compared() {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::init(folder.path()).unwrap();
        queue.commit(|tx| tx.write("x", "1")).unwrap();
        let (scans, looks) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        let (counted, hints) = (Arc::clone(&scans), Arc::new(OnceLock::<Sender<Hint>>::new()));
        let more = Arc::clone(&hints);
        let wanted = move |path: &str| {
            let enough = match path {
                "x" => counted.fetch_add(1, Ordering::SeqCst) == 1,
                _ => looks.fetch_add(1, Ordering::SeqCst) == 1_000,
            };
            let next = if enough { Hint::Stop } else { Hint::Path("noise".to_owned()) };
            more.get().unwrap().send(next).unwrap();
            true
        };
        let options = ReconcileOptions { paths: Some(Arc::new(wanted)), ..ReconcileOptions::default() };
        let watch = DiskWatch::start(&queue, options, Duration::ZERO).unwrap();
        hints.set(watch.stop.clone()).unwrap();
        watch.run(&queue, |_| true).unwrap();
        assert!(scans.load(Ordering::SeqCst) >= 2);
    }
}
