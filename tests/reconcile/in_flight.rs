//! Work in flight is not drift.

use jobq::ReconcileOptions;
use jobq::effects::Act;

use super::world::{World, put};

#[test]
fn a_path_that_a_job_is_about_to_change_is_said_to_be() {
    let world = World::new();
    world.done(put("x", "1"));
    std::fs::write(world.path("x"), "an editor's").unwrap();
    let job = world.queue.enqueue(put("x", "2")).unwrap().id;
    let (found, sums) = world.reconcile(&ReconcileOptions::default());
    assert_eq!((sums.findings, sums.in_flight), (0, 1));
    assert_eq!(found[0].in_flight, Some(job));
}

/// Compared at every moment of a commit: before, between and after its renames.
#[test]
fn a_commit_that_is_being_applied_is_never_called_drift() {
    let folder = tempfile::tempdir().unwrap();
    jobq::Queue::init(folder.path())
        .unwrap()
        .commit(|tx| tx.write("a", "1").and_then(|()| tx.write("b", "1")))
        .unwrap();
    let root = folder.path().to_owned();
    let looks = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&looks);
    let watch = move |act: Act, what: &str| {
        if !matches!(act, Act::Replace | Act::Create | Act::SyncFolder) || what.starts_with(".jobq") {
            return Ok(());
        }
        // The write lock is held here, so the comparison waits at its confirmation; what it sees until then must not
        // be told.
        let other = jobq::QueueOptions::in_folder(&root)
            .recover(false)
            .busy_timeout(std::time::Duration::from_millis(20))
            .open()
            .unwrap();
        let answer = other.reconcile(&ReconcileOptions { deep: true, ..ReconcileOptions::default() }, |found, _| {
            assert!(found.is_none(), "{found:?}");
            true
        });
        if let Err(error) = answer {
            assert_eq!(error.kind(), jobq::ErrorKind::Busy, "{error}");
        }
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Ok(())
    };
    let queue = jobq::QueueOptions::in_folder(folder.path()).watched(watch).open().unwrap();
    queue.commit(|tx| tx.write("a", "2").and_then(|()| tx.write("b", "2"))).unwrap();
    assert!(looks.load(std::sync::atomic::Ordering::SeqCst) >= 3);
}

#[test]
fn a_worker_that_writes_all_the_time_is_never_called_drift() {
    let world = World::new();
    for n in 0..20 {
        world.done(put(&format!("{n}"), "0"));
    }
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..10 {
                for n in 0..20 {
                    world.queue.enqueue(put(&format!("{n}"), &format!("{round}"))).unwrap();
                }
                world.drain();
            }
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let mut compared = 0;
        while !done.load(std::sync::atomic::Ordering::SeqCst) || compared < 3 {
            let (found, _) =
                world.reconcile(&ReconcileOptions { deep: compared % 2 == 0, ..ReconcileOptions::default() });
            let drift: Vec<_> = found.iter().filter(|difference| difference.in_flight.is_none()).collect();
            assert!(drift.is_empty(), "{drift:?}");
            compared += 1;
        }
    });
}

/// Each look takes longer than the file stays as it is, so that no look is ever
/// confirmed.
#[test]
fn a_file_that_never_stands_still_while_a_job_has_it_is_not_called_drift() {
    let world = World::new();
    world.done(put("x", "1"));
    std::fs::write(world.path("x"), vec![0; 1 << 20]).unwrap();
    let job = world.queue.enqueue(put("x", "2")).unwrap().id;
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = std::fs::OpenOptions::new().append(true).open(world.path("x")).unwrap();
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                std::io::Write::write_all(&mut file, b"x").unwrap();
            }
        });
        while std::fs::metadata(world.path("x")).unwrap().len() == 1 << 20 {
            std::thread::yield_now();
        }
        // More than once, because a look may be lucky.
        let found: Vec<_> = (0..10).flat_map(|_| world.reconcile(&ReconcileOptions::default()).0).collect();
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(found.len(), 10);
        assert!(found.iter().all(|difference| difference.in_flight.as_ref() == Some(&job)), "{found:?}");
    });
}
