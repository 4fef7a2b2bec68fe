//! Folders are synced before COMMIT: all that were touched, each once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jobq::effects::Act;
use jobq::store::{Applier as _, SYNC_FAILED};
use rustix::io::Errno;

use super::world::{Log, World, applied, inode, lease, os_error, plan_puts, remove};

#[test]
fn every_folder_that_got_or_lost_an_entry_is_synced_once() {
    let world = World::new();
    let log = Log::default();
    let files = world.files().watched(log.watch());
    world.write("gone/f", "old");
    world.write("b/old", "old");
    world.old("b/other", "old");
    let (one, two) = (lease("one"), lease("two"));
    let mut plan = plan_puts(&files, &one, &[("a/b/new", "new"), ("a/b/new2", "new"), ("b/old", "new")]);
    plan.push(files.plan(remove("gone/f")).unwrap());
    let second = plan_puts(&files, &two, &[("b/other", "new"), ("a/b/c/d", "new")]);
    log.take();
    applied(files.apply(&one, &plan, false));
    applied(files.apply(&two, &second, false));
    assert_eq!(log.synced(), [""; 0], "not before the end of the group");
    files.sync().unwrap();
    assert_eq!(log.synced(), [".", "a", "a/b", "a/b/c", "b", "gone"]);
    files.sync().unwrap();
    assert_eq!(log.synced(), [""; 0], "each once");
}

/// Existing folders are not synced for nothing: each sync waits for the disk.
#[test]
fn only_the_folder_itself_is_synced_when_no_folder_was_made() {
    let world = World::new();
    let log = Log::default();
    let files = world.files().watched(log.watch());
    world.old("a/b/f", "old");
    let job = lease("j");
    let plan = plan_puts(&files, &job, &[("a/b/f", "new")]);
    log.take();
    applied(files.apply(&job, &plan, false));
    files.sync().unwrap();
    assert_eq!(log.synced(), ["a/b"]);
}

/// After a failed sync a second one may succeed without having written anything.
/// So the folders are forgotten, and their jobs are written afresh even if the
/// store, which runs a group again job by job, does not know of it yet.
#[test]
fn a_failed_sync_is_never_just_repeated() {
    let world = World::new();
    let log = Log::default();
    let broken = Arc::new(AtomicBool::new(false));
    let (heard, fails) = (log.watch(), broken.clone());
    let files = world.files().watched(move |act, what| {
        heard(act, what)?;
        if act == Act::SyncFolder && what == "a" && fails.load(Ordering::SeqCst) {
            Err(os_error(Errno::IO))
        } else {
            Ok(())
        }
    });
    let (one, two) = (lease("one"), lease("two"));
    let plan = plan_puts(&files, &one, &[("a/f", "new"), ("b/f", "new")]);
    let other = plan_puts(&files, &two, &[("c/f", "new")]);
    broken.store(true, Ordering::SeqCst);
    applied(files.apply(&one, &plan, false));
    let failure = files.sync().unwrap_err();
    assert_eq!(failure.code, SYNC_FAILED);
    assert!(failure.message.starts_with("a: cannot sync the folder"), "{}", failure.message);
    log.take();
    files.sync().unwrap();
    assert_eq!(log.synced(), [""; 0], "forgotten");
    broken.store(false, Ordering::SeqCst);

    let before = ["a/f", "b/f"].map(|path| inode(&world.path(path)));
    applied(files.apply(&two, &other, false));
    applied(files.apply(&one, &plan, false));
    files.sync().unwrap();
    let acts = log.take();
    assert_eq!(acts.iter().filter(|(act, _)| *act == Act::Replace).count(), 2, "{acts:?}");
    assert_eq!(acts.iter().filter(|(act, _)| *act == Act::SyncFile).count(), 2, "{acts:?}");
    for (path, before) in ["a/f", "b/f"].into_iter().zip(before) {
        assert_ne!(inode(&world.path(path)), before);
    }
    // It is durable now, and only what is not is written again.
    applied(files.apply(&one, &plan, false));
    files.sync().unwrap();
    assert!(log.take().iter().all(|(act, _)| *act == Act::SyncFolder));
}

#[test]
fn a_job_in_very_many_folders_does_not_use_up_the_handles() {
    let world = World::new();
    let log = Log::default();
    let files = world.files().watched(log.watch());
    let job = lease("j");
    let paths: Vec<String> = (0..400).map(|n| format!("d{n}/f")).collect();
    let puts: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "new")).collect();
    let plan = plan_puts(&files, &job, &puts);
    log.take();
    applied(files.apply(&job, &plan, false));
    let early = log.synced();
    assert!(early.len() >= 400 - 128, "{} synced before the end", early.len());
    files.sync().unwrap();
    let mut all: Vec<String> = log.synced().into_iter().chain(early).filter(|folder| folder != ".").collect();
    all.sort();
    let mut expected: Vec<String> = (0..400).map(|n| format!("d{n}")).collect();
    expected.sort();
    assert_eq!(all, expected);
}

#[test]
fn a_sync_that_failed_early_is_told_at_the_end() {
    let world = World::new();
    let files = world
        .files()
        .watched(|act, what| if act == Act::SyncFolder && what == "d7" { Err(os_error(Errno::IO)) } else { Ok(()) });
    let job = lease("j");
    let paths: Vec<String> = (0..200).map(|n| format!("d{n}/f")).collect();
    let puts: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "new")).collect();
    let plan = plan_puts(&files, &job, &puts);
    applied(files.apply(&job, &plan, false));
    let failure = files.sync().unwrap_err();
    assert!(failure.message.starts_with("d7: "), "{}", failure.message);
}
