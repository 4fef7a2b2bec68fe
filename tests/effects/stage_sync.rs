//! Many threads, one sync of the stage: it helps those who were there before it
//! began, and its failure is everybody's who relied on it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use jobq::effects::{Act, Content, Expect, FileEffect, Files, Staged};
use rustix::io::Errno;

use super::world::{World, lease, os_error};

/// Syncs of the stage folder stop and wait to be let through, with an answer.
struct Gate {
    begun: Receiver<()>,
    answer: Sender<bool>,
    syncs: Arc<AtomicUsize>,
    open: Arc<AtomicBool>,
}

fn gated(world: &World) -> (Files, Gate) {
    let (tell, begun) = channel();
    let (answer, told) = channel();
    let ends = Mutex::new((tell, told));
    let (syncs, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(true)));
    let (counted, is_open) = (syncs.clone(), open.clone());
    let files = world.files().watched(move |act, what| {
        if act != Act::SyncFolder || what != ".jobq/stage" || is_open.load(Ordering::SeqCst) {
            return Ok(());
        }
        counted.fetch_add(1, Ordering::SeqCst);
        let (begun, answer) = &*ends.lock().unwrap();
        begun.send(()).unwrap();
        if answer.recv_timeout(Duration::from_secs(30)).unwrap() { Ok(()) } else { Err(os_error(Errno::IO)) }
    });
    (files, Gate { begun, answer, syncs, open })
}

impl Gate {
    fn close(&self) {
        self.open.store(false, Ordering::SeqCst);
    }

    fn await_sync(&self) {
        self.begun.recv_timeout(Duration::from_secs(30)).unwrap();
    }
}

fn plan(files: &Files, staged: &Staged) -> Result<(), jobq::effects::FileError> {
    let content = Content::Staged(staged.clone());
    files.plan(FileEffect::Put { path: staged.sha256.clone(), content, expect: Expect::Any }).map(drop)
}

/// Waits until all but one of these threads are asleep in a lock.
fn await_sleepers(names: &str, count: usize) {
    let asleep = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        tasks
            .filter(|task| {
                let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
                let state = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
                name.starts_with(names) && state.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
            })
            .count()
    };
    let start = Instant::now();
    while asleep() < count {
        assert!(start.elapsed() < Duration::from_secs(30), "{} of {count} wait", asleep());
        thread::yield_now();
    }
}

#[test]
fn all_who_come_during_a_sync_share_the_next_one() {
    let world = World::new();
    let (files, gate) = gated(&world);
    files.stage_bytes(&lease("first"), 0, b"x").unwrap();
    gate.close();
    thread::scope(|scope| {
        let first = scope.spawn(|| files.sync_stage());
        gate.await_sync();
        let rest: Vec<_> = (0..16)
            .map(|n| {
                let files = &files;
                thread::Builder::new()
                    .name("shares".into())
                    .spawn_scoped(scope, move || {
                        let staged = files.stage_bytes(&lease(&format!("n{n}")), 0, &[n]).unwrap();
                        (files.sync_stage(), staged)
                    })
                    .unwrap()
            })
            .collect();
        await_sleepers("shares", 16);
        assert!(
            !first.is_finished() && rest.iter().all(|thread| !thread.is_finished()),
            "none before the sync is over"
        );
        gate.answer.send(true).unwrap();
        first.join().unwrap().unwrap();
        // Theirs began after their files were there.
        gate.await_sync();
        assert!(rest.iter().all(|thread| !thread.is_finished()), "the first sync was not theirs");
        gate.answer.send(true).unwrap();
        for thread in rest {
            let (answer, staged) = thread.join().unwrap();
            answer.unwrap();
            plan(&files, &staged).unwrap();
        }
    });
    assert_eq!(gate.syncs.load(Ordering::SeqCst), 2);
}

#[test]
fn a_failed_sync_is_everybodys_who_shared_it_and_spoils_all_that_was_there() {
    let world = World::new();
    let (files, gate) = gated(&world);
    let synced = files.stage_bytes(&lease("synced"), 0, b"0").unwrap();
    files.sync_stage().unwrap();
    let late = files.stage_bytes(&lease("late"), 0, b"1").unwrap();
    gate.close();
    let slow = thread::scope(|scope| {
        let first = scope.spawn(|| files.sync_stage());
        gate.await_sync();
        let rest: Vec<_> = (0..8)
            .map(|_| thread::Builder::new().name("fails".into()).spawn_scoped(scope, || files.sync_stage()).unwrap())
            .collect();
        await_sleepers("fails", 8);
        gate.answer.send(true).unwrap();
        first.join().unwrap().unwrap();
        gate.await_sync();
        files.stage_bytes(&lease("during"), 0, b"2").unwrap();
        let slow = files.stage(&lease("slow"), 0).unwrap();
        gate.answer.send(false).unwrap();
        for thread in rest {
            let error = thread.join().unwrap().unwrap_err();
            assert!(!error.is_permanent() && error.message().contains("cannot sync the stage folder"), "{error}");
        }
        slow
    });
    gate.open.store(true, Ordering::SeqCst);
    // A later sync succeeds, and proves nothing for what was there before.
    let after = files.stage_bytes(&lease("after"), 0, b"3").unwrap();
    files.sync_stage().unwrap();
    plan(&files, &synced).unwrap();
    plan(&files, &late).unwrap();
    plan(&files, &after).unwrap();
    let error = slow.finish().unwrap_err();
    assert!(error.message().contains("stage it anew"), "{error}");
    let during = Staged { stage: "owner-1/during.1.0".into(), ..after };
    let error = plan(&files, &during).unwrap_err();
    assert!(!error.is_permanent() && error.message().contains("stage it anew"), "{error}");
    files.discard(&lease("during"));
    files.stage_bytes(&lease("during"), 0, b"4").unwrap();
}

#[test]
fn without_anything_staged_there_is_nothing_to_sync() {
    let world = World::new();
    let log = super::world::Log::default();
    world.files().watched(log.watch()).sync_stage().unwrap();
    assert_eq!(log.take(), []);
}
