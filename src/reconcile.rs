//! The queue and the disk, side by side: for every path, is the disk as the
//! latest applied effect left it? Reports, never fixes.
//!
//! ```text
//! feed     pages of what is expected, in order of path, read without a lock
//! check    threads that look at the files; most agree by size, mtime and inode
//! confirm  each difference is looked at once more under the write lock, where
//!          nothing can be applied, before anybody is told
//! ```

mod check;
mod feed;
mod finding;
mod hint;
mod places;
mod repair;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

pub use finding::{Actual, Difference, Finding, Reconciled};
pub use repair::Repair;
pub use watch::{DiskWatch, Drift, StopWatch};

use self::check::{Checked, Suspect};
use self::feed::Page;
use crate::effects::{Files, Found, Inspector};
use crate::error::{Error, ErrorKind, Result};
use crate::queue::Queue;
use crate::store::{Confirmation, Store as _, Suspicion};

/// How to compare.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use std::sync::Arc;
/// use jobq::ReconcileOptions;
/// queue.commit(|tx| tx.write("notes/a.txt", "a").and_then(|()| tx.write("b.txt", "b")))?;
/// let only = ReconcileOptions {
///     deep: true,
///     paths: Some(Arc::new(|path: &str| path.starts_with("notes/"))),
///     ..ReconcileOptions::default()
/// };
/// assert_eq!(queue.reconcile(&only, |_, _| true)?.checked, 1);
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct ReconcileOptions {
    /// Hash every file, also those whose size, time and inode are as they were
    /// left.
    pub deep: bool,
    /// Only paths for which this says yes.
    pub paths: Option<Arc<PathFilter>>,
    /// Only what jobs of this type left.
    pub job_type: Option<String>,
    /// Threads that look; as many as there are cores if 0.
    pub threads: usize,
}

/// Which paths to compare.
pub type PathFilter = dyn Fn(&str) -> bool + Send + Sync;

/// How often a path that changes while it is compared is looked at.
const LOOKS: usize = 5;

impl Queue {
    /// Compares what completed jobs did with the disk. `tell` hears of every
    /// difference, in order of path, and of how far it is (`None`, with the sums so
    /// far); false from it ends the comparison.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path();
    /// # let queue = jobq::Queue::init(folder)?;
    /// use jobq::{Finding, ReconcileOptions};
    /// queue.commit(|tx| tx.write("a.txt", "a").and_then(|()| tx.write("b.txt", "b")))?;
    /// std::fs::write(folder.join("b.txt"), "somebody else's").unwrap();
    /// let mut found = Vec::new();
    /// let sums = queue.reconcile(&ReconcileOptions::default(), |difference, _| {
    ///     found.extend(difference.map(|difference| (difference.path.clone(), difference.finding)));
    ///     true
    /// })?;
    /// assert_eq!(found, [("b.txt".to_owned(), Finding::Changed)]);
    /// assert_eq!((sums.checked, sums.ok, sums.findings), (2, 1, 1));
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn reconcile(
        &self,
        options: &ReconcileOptions,
        tell: impl FnMut(Option<&Difference>, &Reconciled) -> bool,
    ) -> Result<Reconciled> {
        self.reconcile_with(&Arc::new(self.files()?), options, tell)
    }

    /// The same with the folder that is held, whatever is at its path by now.
    fn reconcile_with(
        &self,
        files: &Arc<Files>,
        options: &ReconcileOptions,
        mut tell: impl FnMut(Option<&Difference>, &Reconciled) -> bool,
    ) -> Result<Reconciled> {
        let mut sums = Reconciled::default();
        thread::scope(|scope| {
            let (pages, page) = mpsc::sync_channel::<Page>(4);
            let feeder = scope.spawn(move || feed::feed(self, options, &pages));
            let (done, checked) = mpsc::sync_channel::<Checked>(16);
            check::spawn(scope, files, options, page, &done);
            // The threads have their own; the last of them ends the line.
            drop(done);
            let mut waiting = BTreeMap::new();
            let mut next = 0;
            for page in checked {
                waiting.insert(page.number, page);
                // In order, whichever thread was faster.
                while let Some(page) = waiting.remove(&next) {
                    next += 1;
                    if !self.take_page(page, files, options, &mut sums, &mut tell)? {
                        return Ok(());
                    }
                }
            }
            feeder.join().unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "a panic while effects were read")))
        })?;
        Ok(sums)
    }

    fn take_page(
        &self,
        page: Checked,
        files: &Arc<Files>,
        options: &ReconcileOptions,
        sums: &mut Reconciled,
        tell: &mut impl FnMut(Option<&Difference>, &Reconciled) -> bool,
    ) -> Result<bool> {
        sums.checked += page.paths;
        sums.superseded += page.superseded;
        sums.ok += page.paths - page.suspects.len() as u64;
        for suspect in page.suspects {
            let Some(difference) = self.confirmed(suspect, files, options)? else {
                sums.ok += 1;
                continue;
            };
            if difference.in_flight.is_some() {
                sums.in_flight += 1;
            } else {
                sums.findings += 1;
                difference.log();
            }
            if !tell(Some(&difference), sums) {
                return Ok(false);
            }
        }
        Ok(tell(None, sums))
    }

    /// The difference, if it is one when nothing can be applied meanwhile. `None`:
    /// the disk agrees after all.
    fn confirmed(
        &self,
        Suspect { path }: Suspect,
        files: &Arc<Files>,
        options: &ReconcileOptions,
    ) -> Result<Option<Difference>> {
        let mut last = None;
        for _ in 0..LOOKS {
            let Some(expected) = self.store().expected_file(&path)? else { return Ok(None) };
            // A hint may be about any path, and a path may have got another job since its page was read.
            if options.job_type.is_some() && expected.job_type != options.job_type {
                return Ok(None);
            }
            let mut inspector = Inspector::new(files);
            let Some((difference, found)) = check::compare(&mut inspector, &path, &expected, options.deep) else {
                return Ok(None);
            };
            // Where a file was removed, jobs may have put others into a folder of its name. It stays when those go. The
            // plan is on record before the folder is made.
            if expected.stamp.size.is_none() && found == Found::Folder && self.store().touched_below(&path)? {
                return Ok(None);
            }
            let (eyes, place) = (Arc::clone(files), path.clone());
            let still_so = move || Inspector::new(&eyes).look(&place) == found;
            let suspicion =
                Suspicion { path: path.clone(), job_id: expected.job_id.clone(), still_so: Arc::new(still_so) };
            match self.store().confirm(suspicion)? {
                Confirmation::Confirmed { in_flight } => return Ok(Some(Difference { in_flight, ..difference })),
                Confirmation::Changed { by } => last = Some(Difference { in_flight: by, ..difference }),
            }
        }
        // It keeps changing: if jobs do that, or are about to, it is work in flight; else it is not as a job left it.
        Ok(last)
    }
}
