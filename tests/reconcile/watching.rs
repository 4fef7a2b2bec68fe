//! Drift as it happens.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Duration;

use jobq::{DiskWatch, Drift, Finding, Queue, QueueOptions, ReconcileOptions, StopWatch};

use super::world::{World, put, remove};

/// A watch in a thread of its own. Everything is compared at its start and then
/// never again, unless a test says otherwise: what is seen is seen by hints.
struct Watched {
    news: Receiver<Drift>,
    stopper: StopWatch,
    thread: Option<JoinHandle<()>>,
}

impl Watched {
    fn start(world: &World, every: Duration) -> Self {
        Self::with(&world.queue, ReconcileOptions::default(), every)
    }

    fn with(queue: &Arc<Queue>, options: ReconcileOptions, every: Duration) -> Self {
        let queue = Arc::clone(queue);
        let watch = DiskWatch::start(&queue, options, every).unwrap();
        let (send, news) = mpsc::channel();
        let stopper = watch.stopper();
        let thread = std::thread::spawn(move || {
            watch.run(&queue, |drift| send.send(drift.clone()).is_ok()).unwrap();
        });
        Self { news, stopper, thread: Some(thread) }
    }

    fn next(&self) -> Drift {
        self.news.recv_timeout(Duration::from_secs(30)).expect("something to be told")
    }

    #[track_caller]
    fn drifts(&self, path: &str, finding: Finding) {
        match self.next() {
            Drift::Drifted(difference) => assert_eq!((difference.path.as_str(), difference.finding), (path, finding)),
            healed @ Drift::Healed(_) => panic!("{healed:?}"),
        }
    }

    #[track_caller]
    fn heals(&self, path: &str) {
        assert_eq!(self.next(), Drift::Healed(path.to_owned()));
    }

    /// Ends it; nothing more may have been told.
    fn end(mut self) {
        self.stopper.stop();
        self.thread.take().unwrap().join().unwrap();
        assert_eq!(self.news.try_iter().collect::<Vec<_>>(), []);
    }
}

/// In one step, so that there is no moment in between to be told of.
fn replace(world: &World, path: &str, content: &str) {
    let aside = world.path(".jobq/aside");
    std::fs::write(&aside, content).unwrap();
    std::fs::rename(aside, world.path(path)).unwrap();
}

const NEVER: Duration = Duration::from_secs(3_600);

#[test]
fn each_kind_of_drift_and_its_healing_is_told() {
    let world = World::new();
    for path in ["a/file", "a/gone", "a/kind"] {
        world.done(put(path, "content"));
    }
    world.done(remove("a/gone"));
    std::fs::write(world.path("a/kind"), "drifted before").unwrap();
    let watched = Watched::start(&world, NEVER);
    watched.drifts("a/kind", Finding::Changed);
    let file = world.path("a/file");

    replace(&world, "a/file", "other");
    watched.drifts("a/file", Finding::Changed);
    replace(&world, "a/file", "content");
    watched.heals("a/file");
    std::fs::remove_file(&file).unwrap();
    watched.drifts("a/file", Finding::Missing);
    std::fs::create_dir(&file).unwrap();
    watched.drifts("a/file", Finding::NotAFile);
    std::fs::remove_dir(&file).unwrap();
    watched.drifts("a/file", Finding::Missing);
    replace(&world, "a/gone", "again");
    watched.drifts("a/gone", Finding::Present);
    std::fs::remove_file(world.path("a/gone")).unwrap();
    watched.heals("a/gone");
    std::fs::rename(world.path("a"), world.path("b")).unwrap();
    watched.drifts("a/kind", Finding::Missing);
    std::fs::rename(world.path("b"), world.path("a")).unwrap();
    watched.drifts("a/kind", Finding::Changed);
    world.done(put("a/kind", "as it should be"));
    watched.heals("a/kind");
    std::fs::write(world.path("a/nobody's"), "no job has been here").unwrap();
    watched.end();
}

#[test]
fn work_of_jobs_is_not_told() {
    let world = World::new();
    world.done(put("x", "0"));
    let watched = Watched::start(&world, NEVER);
    for round in 1..20 {
        world.done(put("x", &round.to_string()));
    }
    std::fs::remove_file(world.path("x")).unwrap();
    watched.drifts("x", Finding::Missing);
    watched.end();
}

#[test]
fn ten_thousand_quick_changes_do_not_hide_the_end() {
    let world = World::new();
    world.queue.commit(|tx| (0..100).try_for_each(|n| tx.write(&format!("d/{n}"), "content"))).unwrap();
    let watched = Watched::start(&world, NEVER);
    for change in 0..10_000 {
        std::fs::write(world.path(&format!("d/{}", change % 100)), format!("{change}")).unwrap();
    }
    for n in 0..100 {
        std::fs::write(world.path(&format!("d/{n}")), "content").unwrap();
    }
    std::fs::remove_file(world.path("d/7")).unwrap();
    let mut drifted = std::collections::BTreeMap::new();
    // Whatever was told meanwhile, in the end this is how it stands.
    while drifted != std::collections::BTreeMap::from([("d/7".to_owned(), Finding::Missing)]) {
        match watched.next() {
            Drift::Drifted(difference) => drop(drifted.insert(difference.path, difference.finding)),
            Drift::Healed(path) => drop(drifted.remove(&path)),
        }
    }
    watched.end();
}

/// Without hints at all: the periodic comparison is enough.
#[test]
fn what_no_hint_tells_is_found_by_comparing_everything() {
    let world = World::new();
    world.done(put("x", "1"));
    let watched = Watched::start(&world, Duration::from_millis(50));
    let conn = crate::support::raw(world.queue.database());
    conn.execute("UPDATE effects SET sha256 = 'other', mtime = 0", []).unwrap();
    watched.drifts("x", Finding::Changed);
    watched.end();
}

#[test]
fn hints_about_what_jobs_of_other_types_left_are_not_told() {
    let world = World::new();
    world.queue.commit(|tx| tx.write("d/committed", "1")).unwrap();
    world.done(put("d/created", "1"));
    let options = ReconcileOptions { job_type: Some("create_file".to_owned()), ..ReconcileOptions::default() };
    let watched = Watched::with(&world.queue, options, NEVER);
    std::fs::remove_file(world.path("d/committed")).unwrap();
    std::fs::remove_file(world.path("d/created")).unwrap();
    watched.drifts("d/created", Finding::Missing);
    std::fs::rename(world.path("d"), world.path("e")).unwrap();
    replace(&world, "e/created", "1");
    std::fs::rename(world.path("e"), world.path("d")).unwrap();
    watched.heals("d/created");
    watched.end();
}

/// A folder of another inode at the same path: what is held of the old one tells
/// nothing any more.
#[test]
fn a_root_that_is_replaced_is_watched_as_it_is_now() {
    let folder = tempfile::tempdir().unwrap();
    let (root, aside) = (folder.path().join("root"), folder.path().join("aside"));
    std::fs::create_dir(&root).unwrap();
    std::fs::create_dir(&aside).unwrap();
    let queue = QueueOptions::at(folder.path().join("app.db")).root(&root).create(true).open().unwrap();
    queue.commit(|tx| tx.write("a", "1").and_then(|()| tx.write("b", "1"))).unwrap();
    std::fs::write(aside.join("a"), "other").unwrap();
    std::fs::write(aside.join("b"), "1").unwrap();
    let watched = Watched::with(&Arc::new(queue), ReconcileOptions::default(), Duration::from_millis(100));
    let swap = |one: &std::path::Path, other: &std::path::Path| {
        let cwd = rustix::fs::CWD;
        rustix::fs::renameat_with(cwd, one, cwd, other, rustix::fs::RenameFlags::EXCHANGE).unwrap();
    };
    swap(&root, &aside);
    watched.drifts("a", Finding::Changed);
    std::fs::remove_file(aside.join("b")).unwrap();
    std::fs::rename(aside.join("a"), root.join("a")).unwrap();
    watched.heals("a");
    watched.end();
}

/// Somebody keeps the write lock for longer than a writer waits. That passes, and
/// whoever watches for days should not have to be there.
#[test]
fn a_database_that_is_locked_for_a_while_does_not_end_a_watch() {
    let world = World::new();
    world.done(put("x", "1"));
    std::fs::remove_file(world.path("x")).unwrap();
    let impatient = QueueOptions::at(world.queue.database()).busy_timeout(Duration::from_millis(10)).open().unwrap();
    let conn = crate::support::raw(world.queue.database());
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (scanned, scans) = mpsc::channel();
    let paths = move |_: &str| {
        let _ = scanned.send(());
        true
    };
    let options = ReconcileOptions { paths: Some(Arc::new(paths)), ..ReconcileOptions::default() };
    let watched = Watched::with(&Arc::new(impatient), options, NEVER);
    for _ in 0..2 {
        scans.recv_timeout(Duration::from_secs(30)).expect("another comparison");
    }
    conn.execute_batch("COMMIT").unwrap();
    watched.drifts("x", Finding::Missing);
    watched.end();
}

/// Whoever moves a project away finds nothing made anew where it was.
#[test]
fn a_root_that_is_gone_is_not_made_again() {
    let world = World::new();
    world.done(put("x", "1"));
    let watch = DiskWatch::start(&world.queue, ReconcileOptions::default(), Duration::ZERO).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::rename(world.path(""), elsewhere.path().join("moved")).unwrap();
    let end = watch.run(&world.queue, |_| false);
    assert!(!world.path("").exists());
    assert_eq!(end.unwrap_err().kind(), jobq::ErrorKind::NoDatabase);
}
