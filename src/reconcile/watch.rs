//! Watching the disk: what drifts and what is healed, as it happens. What the
//! system tells of changes are hints; a comparison of everything, now and then,
//! is the truth.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use notify::RecommendedWatcher;

use super::check::Suspect;
use super::hint::{self, Heard, Hints};
use super::places::Places;
use super::{Difference, ReconcileOptions};
use crate::effects::Files;
use crate::error::{ErrorKind, Result};
use crate::queue::Queue;
use crate::store::{ExpectedQuery, Store as _};

/// How often it is asked whether there is still something to watch: nobody would wait a day to be told.
const STILL_THERE: Duration = Duration::from_secs(2);

/// What has happened to a path.
///
/// ```
/// use jobq::Drift;
/// fn say(drift: &Drift) -> String {
///     match drift {
///         Drift::Drifted(difference) => format!("{}: {}", difference.path, difference.finding.as_str()),
///         Drift::Healed(path) => format!("{path}: as it should be again"),
///     }
/// }
/// assert_eq!(say(&Drift::Healed("a.txt".to_owned())), "a.txt: as it should be again");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drift {
    /// It is no longer as the latest job left it, or differs in another way than
    /// before.
    Drifted(Difference),
    /// It is again as it should be.
    Healed(String),
}

/// A watch on the files of a queue. What it remembers are the paths that are
/// drifted now, and hints up to a bound.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use std::time::Duration;
/// use jobq::{DiskWatch, Drift, Finding, ReconcileOptions};
/// queue.commit(|tx| tx.write("a.txt", "a"))?;
/// std::fs::remove_file(folder.path().join("a.txt")).unwrap();
/// let watch = DiskWatch::start(&queue, ReconcileOptions::default(), Duration::from_secs(3600))?;
/// watch.run(&queue, |drift| {
///     assert!(matches!(drift, Drift::Drifted(difference) if difference.finding == Finding::Missing));
///     false // enough seen
/// })?;
/// # Ok::<(), jobq::Error>(())
/// ```
pub struct DiskWatch {
    hints: Arc<Hints>,
    every: Duration,
    options: ReconcileOptions,
    files: Arc<Files>,
    /// With the number of the comparison that has last found it so.
    drifted: BTreeMap<String, (Difference, u64)>,
    comparison: u64,
    /// Where something was done that has not been looked at.
    places: Places,
    /// Heard as long as it is kept.
    watcher: Option<RecommendedWatcher>,
}

/// Ends a watch.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use std::time::Duration;
/// let watch = jobq::DiskWatch::start(&queue, jobq::ReconcileOptions::default(), Duration::from_secs(3600))?;
/// let stopper = watch.stopper();
/// std::thread::scope(|scope| {
///     let watching = scope.spawn(|| watch.run(&queue, |_| true));
///     stopper.stop();
///     watching.join().unwrap()
/// })?;
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone)]
pub struct StopWatch(Arc<Hints>);

impl StopWatch {
    /// The watch ends when it has finished with the path it is at.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl DiskWatch {
    /// Watches from now on; everything is compared at the start and after every
    /// `every`.
    pub fn start(queue: &Queue, options: ReconcileOptions, every: Duration) -> Result<Self> {
        let (hints, places) = (Arc::default(), Places::default());
        let files = Arc::new(queue.files()?);
        let watcher = hint::listen(queue, &hints);
        Ok(Self { hints, every, options, files, drifted: BTreeMap::new(), comparison: 0, places, watcher })
    }

    /// What ends it.
    #[must_use]
    pub fn stopper(&self) -> StopWatch {
        StopWatch(Arc::clone(&self.hints))
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
                    if self.hints.is_stopped() {
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
        // Stamps prove nothing where something was done: hints that led to this comparison are looked at all the same.
        if !self.scan(queue, tell)? || !self.look_at_places(queue, tell)? {
            return Ok(false);
        }
        let scan_at = Instant::now() + self.every;
        loop {
            match self.hints.wait(scan_at.min(Instant::now() + STILL_THERE), &mut self.places) {
                Heard::End => return Ok(false),
                Heard::Everything => return Ok(true),
                Heard::Places | Heard::Nothing => {}
            }
            queue.still_there()?;
            queue.store().expect_root()?;
            if !self.look_at_places(queue, tell)? {
                return Ok(false);
            }
            // Hints may come without end.
            if Instant::now() >= scan_at {
                return Ok(true);
            }
        }
    }

    /// There may be another folder at the root's path by now: of the one that is
    /// held, and heard of, nothing could be told any more.
    fn renew(&mut self, queue: &Queue) -> Result<()> {
        let files = Arc::new(queue.files()?);
        if !files.same_root(&self.files) {
            self.watcher = hint::listen(queue, &self.hints);
        }
        self.files = files;
        Ok(())
    }

    /// By stamps, unless everything is to be hashed. What kept size, mtime and inode
    /// is missed here if its hint was lost by the system; to hash all files each
    /// time that happens would take longer than it takes to happen again.
    fn scan(&mut self, queue: &Queue, tell: &mut impl FnMut(&Drift) -> bool) -> Result<bool> {
        self.renew(queue)?;
        self.comparison += 1;
        let (options, hints) = (self.options.clone(), Arc::clone(&self.hints));
        // What hints lead to from now on is looked at in the folder that is compared, or one would contradict the other.
        let files = Arc::clone(&self.files);
        let mut goes_on = true;
        queue.reconcile_with(&files, &options, |difference, _| {
            let told = difference.is_none_or(|found| self.now(&found.path, Some(found), tell));
            goes_on = told && !hints.is_stopped();
            goes_on
        })?;
        // What was not found again is healed, or was shown by a hint and is missed by a look at stamps.
        let mut last = String::new();
        while goes_on && let Some(path) = self.unseen_after(&last) {
            goes_on = self.look(queue, &path, tell)?;
            last = path;
        }
        Ok(goes_on)
    }

    /// The next drifted path that the last comparison has not found.
    fn unseen_after(&self, path: &str) -> Option<String> {
        let mut after = self.drifted.range::<str, _>((Bound::Excluded(path), Bound::Unbounded));
        after.find(|(_, (_, seen))| *seen != self.comparison).map(|(path, _)| path.clone())
    }

    /// What an error has kept from being looked at is looked at the next time.
    fn look_at_places(&mut self, queue: &Queue, tell: &mut impl FnMut(&Drift) -> bool) -> Result<bool> {
        match std::mem::take(&mut self.places) {
            Places::Few(mut paths) => {
                while let Some(path) = paths.pop_first() {
                    let looked = self.look_below(queue, &path, tell);
                    if !matches!(looked, Ok(true)) {
                        paths.insert(path);
                        self.places = Places::Few(paths);
                        return looked;
                    }
                }
                Ok(true)
            }
            Places::Many(blur) => {
                let looked = self.look_along(queue, "", |path| blur.touches(path), tell);
                if looked.is_err() {
                    self.places = Places::Many(blur);
                }
                looked
            }
        }
    }

    /// A hint may be about a folder: everything below it is looked at.
    fn look_below(&mut self, queue: &Queue, path: &str, tell: &mut impl FnMut(&Drift) -> bool) -> Result<bool> {
        Ok(self.look(queue, path, tell)? && self.look_along(queue, &format!("{path}/"), |_| true, tell)?)
    }

    /// Looks at those of the paths that begin like this which are wanted.
    fn look_along(
        &mut self,
        queue: &Queue,
        beginning: &str,
        wanted: impl Fn(&str) -> bool,
        tell: &mut impl FnMut(&Drift) -> bool,
    ) -> Result<bool> {
        let mut query = ExpectedQuery { after: beginning.to_owned(), limit: 1_000, ..ExpectedQuery::default() };
        loop {
            let page = queue.store().expected(&query)?;
            for expected in page.files {
                if !expected.path.starts_with(beginning) {
                    return Ok(true);
                }
                if wanted(&expected.path) && !self.look(queue, &expected.path, tell)? {
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
        if self.hints.is_stopped() {
            return Ok(false);
        }
        if self.options.paths.as_ref().is_some_and(|wanted| !wanted(path)) {
            return Ok(true);
        }
        // Something was done to it, so its stamp proves nothing.
        let options = ReconcileOptions { deep: true, ..self.options.clone() };
        let suspect = Suspect { path: path.to_owned() };
        let difference = queue.confirmed(suspect, &self.files, &options)?;
        Ok(self.now(path, difference.as_ref(), tell))
    }

    /// What is so now, told if it was not so before. Work in flight is neither.
    fn now(&mut self, path: &str, found: Option<&Difference>, tell: &mut impl FnMut(&Drift) -> bool) -> bool {
        let Some(found) = found else {
            return self.drifted.remove(path).is_none() || tell(&Drift::Healed(path.to_owned()));
        };
        let known = self.drifted.get_mut(path).map(|(known, seen)| {
            *seen = self.comparison;
            known
        });
        if found.in_flight.is_some() || known.is_some_and(|known| known == found) {
            return true;
        }
        self.drifted.insert(path.to_owned(), (found.clone(), self.comparison));
        tell(&Drift::Drifted(found.clone()))
    }
}

#[cfg(test)]
mod tests;
