//! Comparing files with what is expected of them.

use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope};

use super::ReconcileOptions;
use super::feed::Page;
use super::finding::{Actual, Difference, Finding};
use crate::effects::{Files, Found, Inspector};
use crate::store::{ExpectedFile, ExpectedStamp};

/// A page, looked at.
pub(super) struct Checked {
    pub(super) number: usize,
    pub(super) paths: u64,
    pub(super) superseded: u64,
    pub(super) suspects: Vec<Suspect>,
}

/// A path that does not look as it was left.
pub(super) struct Suspect {
    pub(super) path: String,
}

/// The threads that look. They end with the pages.
pub(super) fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    files: &Arc<Files>,
    options: &ReconcileOptions,
    pages: Receiver<Page>,
    done: &SyncSender<Checked>,
) {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = if options.threads == 0 { cores } else { options.threads };
    let pages = Arc::new(Mutex::new(pages));
    for _ in 0..threads {
        let (files, pages, done, deep) = (Arc::clone(files), Arc::clone(&pages), done.clone(), options.deep);
        scope.spawn(move || {
            let mut inspector = Inspector::new(&files);
            loop {
                let page = pages.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(page) = page else { return };
                if done.send(check(&mut inspector, page, deep)).is_err() {
                    return;
                }
            }
        });
    }
}

fn check(inspector: &mut Inspector<'_>, page: Page, deep: bool) -> Checked {
    inspector.forget();
    let mut superseded = 0;
    let paths = page.paths.len() as u64;
    let mut suspects = Vec::new();
    for expected in page.paths {
        superseded += expected.superseded;
        let agrees = if deep && expected.size.is_some() {
            inspector.hash(&expected.path).is_ok_and(|(sha256, _)| Some(sha256) == expected.sha256)
        } else {
            agrees(&expected, &inspector.look(&expected.path))
        };
        if !agrees {
            suspects.push(Suspect { path: expected.path });
        }
    }
    Checked { number: page.number, paths, superseded, suspects }
}

/// By its stamp alone.
fn agrees(expected: &ExpectedStamp, found: &Found) -> bool {
    match (expected.size, found) {
        (None, Found::Absent) => true,
        (Some(size), Found::File { size: there, stamp, .. }) => size == *there && *stamp == expected.stamp,
        _ => false,
    }
}

/// The difference, and what was seen; `None` if there is none.
pub(super) fn compare(
    inspector: &mut Inspector<'_>,
    path: &str,
    expected: &ExpectedFile,
    deep: bool,
) -> Option<(Difference, Found)> {
    let found = inspector.look(path);
    if !deep && agrees(&expected.stamp, &found) {
        return None;
    }
    let wanted = expected.stamp.sha256.as_ref();
    let in_order = |content: Option<&String>| {
        content == wanted || expected.planned.iter().any(|planned| planned.as_ref() == content)
    };
    let other = |what: &str| Actual::Other(what.to_owned());
    let (finding, actual, found) = match found {
        Found::Absent | Found::Blocked(_) if in_order(None) => return None,
        Found::Absent => (Finding::Missing, Actual::Nothing, found),
        Found::Blocked(ref what) => (Finding::NotAFile, other(what), found),
        Found::Folder if wanted.is_some() => (Finding::NotAFile, other("is a folder"), found),
        Found::Folder => (Finding::Present, other("is a folder"), found),
        Found::NotAFile(ref what) if wanted.is_some() => (Finding::NotAFile, other(what), found),
        Found::NotAFile(ref what) => (Finding::Present, other(what), found),
        Found::Unreadable(ref why) => (Finding::Unreadable, other(why), found),
        Found::File { .. } => match inspector.hash(path) {
            Ok((sha256, _)) if in_order(Some(&sha256)) => return None,
            Ok((sha256, now)) if wanted.is_some() => (Finding::Changed, Actual::Content(sha256), now),
            Ok((sha256, now)) => (Finding::Present, Actual::Content(sha256), now),
            // Something should be there that nobody may read; or nothing should, and something is.
            Err(Found::Unreadable(why)) if wanted.is_some() => (Finding::Unreadable, Actual::Other(why), found),
            Err(Found::Unreadable(why)) => (Finding::Present, Actual::Other(why), found),
            // It has changed since the look a moment ago, which the confirmation finds out.
            Err(_) => (Finding::Changed, Actual::Nothing, found),
        },
    };
    let (path, job_id) = (path.to_owned(), expected.job_id.clone());
    Some((Difference { path, finding, job_id, expected: wanted.cloned(), actual, in_flight: None }, found))
}
