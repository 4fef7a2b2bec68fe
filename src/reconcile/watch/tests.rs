use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps};

use super::super::places::MOST;
use super::*;

/// A queue whose commit has written these, each with its name as content.
fn with_files(names: &[&str]) -> (tempfile::TempDir, Queue) {
    let folder = tempfile::tempdir().unwrap();
    let queue = Queue::init(folder.path()).unwrap();
    queue.commit(|tx| names.iter().try_for_each(|name| tx.write(name, *name))).unwrap();
    (folder, queue)
}

/// An application that writes below the root all the time gives a new hint
/// before the last one has been looked at.
#[test]
fn hints_without_end_do_not_keep_everything_from_being_compared() {
    let (_folder, queue) = with_files(&["x"]);
    let (scans, looks) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let (counted, hints) = (Arc::clone(&scans), Arc::new(OnceLock::<Arc<Hints>>::new()));
    let more = Arc::clone(&hints);
    let wanted = move |path: &str| {
        let enough = match path {
            "x" => counted.fetch_add(1, Ordering::SeqCst) == 1,
            _ => looks.fetch_add(1, Ordering::SeqCst) == 1_000,
        };
        let hints = more.get().unwrap();
        if enough {
            hints.stop();
        } else {
            hints.add("noise".to_owned());
        }
        true
    };
    let options = ReconcileOptions { paths: Some(Arc::new(wanted)), ..ReconcileOptions::default() };
    let watch = DiskWatch::start(&queue, options, Duration::ZERO).unwrap();
    assert!(hints.set(Arc::clone(&watch.hints)).is_ok());
    watch.run(&queue, |_| true).unwrap();
    assert!(scans.load(Ordering::SeqCst) >= 2);
}

/// What so many rounds tell, with no hints but those of the test. A round ends as
/// soon as hints have been looked at.
fn rounds(watch: &mut DiskWatch, queue: &Queue, rounds: usize, mut act: impl FnMut()) -> Vec<String> {
    let mut told = Vec::new();
    for _ in 0..rounds {
        let mut tell = |drift: &Drift| {
            told.push(match drift {
                Drift::Drifted(difference) => format!("drifted {}", difference.path),
                Drift::Healed(path) => format!("healed {path}"),
            });
            act();
            true
        };
        assert!(watch.round(queue, &mut tell).unwrap());
    }
    told
}

fn deaf(queue: &Queue) -> DiskWatch {
    let watch = DiskWatch::start(queue, ReconcileOptions::default(), Duration::ZERO).unwrap();
    // A watcher that is dropped ends a little later: what it still hears goes to hints that nobody reads.
    DiskWatch { watcher: None, hints: Arc::default(), ..watch }
}

/// More hints than are kept one by one: all of their paths are hashed, and those
/// below a folder that was hinted at.
#[test]
fn a_change_that_left_no_trace_but_a_hint_is_found_among_very_many() {
    let (folder, queue) = with_files(&["file", "folder/deep/file", "other"]);
    let mut watch = deaf(&queue);
    for name in ["file", "folder/deep/file"] {
        let path = folder.path().join(name);
        let before = std::fs::metadata(&path).unwrap();
        std::fs::write(&path, name.to_uppercase()).unwrap();
        set_mtime(&path, &before);
    }
    assert_eq!(rounds(&mut watch, &queue, 2, || ()), [""; 0], "stamps do not tell");
    for path in (0..2 * MOST).map(|n| format!("noise {n}")).chain(["folder".to_owned(), "file".to_owned()]) {
        watch.hints.add(path);
    }
    let told = rounds(&mut watch, &queue, 3, || ());
    assert_eq!(told, ["drifted file", "drifted folder/deep/file"]);
}

fn set_mtime(path: &std::path::Path, before: &std::fs::Metadata) {
    use std::os::unix::fs::MetadataExt as _;
    let time = Timespec { tv_sec: before.mtime(), tv_nsec: before.mtime_nsec() };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::empty()).unwrap();
}

/// They are not collected first: `b` is in order again by the time it is looked at.
#[test]
fn differences_are_told_as_they_are_found() {
    let (folder, queue) = with_files(&["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    let heal = || std::fs::write(folder.path().join("b"), "b").unwrap();
    assert_eq!(rounds(&mut deaf(&queue), &queue, 1, heal), ["drifted a", "drifted c"]);
}

#[test]
fn each_comparison_tells_only_what_is_new() {
    let (folder, queue) = with_files(&["a", "b"]);
    for name in ["a", "b"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    let mut watch = deaf(&queue);
    assert_eq!(rounds(&mut watch, &queue, 2, || ()), ["drifted a", "drifted b"]);
    std::fs::write(folder.path().join("a"), "a").unwrap();
    assert_eq!(rounds(&mut watch, &queue, 2, || ()), ["healed a"]);
}
