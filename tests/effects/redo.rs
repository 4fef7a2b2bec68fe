//! Applying again after whatever went wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jobq::effects::{Act, Files};
use jobq::store::{Applier as _, ApplyReport, PlannedEffect, SYNC_FAILED};
use rustix::io::Errno;

use super::world::{
    Log, World, applied, apply, chmod, claim, deferred, inode, lease, mode, once, os_error, plan_puts, remove, stamp_of,
};

/// One of everything: a new file in a new folder, a replaced one, a removed one,
/// one in place.
fn plan(world: &World, files: &Files) -> Vec<PlannedEffect> {
    world.write("goes", "old");
    world.write("same", "same");
    world.old("f", "old");
    let mut plan = plan_puts(files, &lease("j"), &[("a/b/new", "new"), ("f", "new"), ("same", "same")]);
    plan.push(files.plan(remove("goes")).unwrap());
    plan
}

fn assert_done(world: &World) {
    assert_eq!(world.content("a/b/new").as_deref(), Some("new"));
    assert_eq!(world.content("f").as_deref(), Some("new"));
    assert_eq!(world.content("same").as_deref(), Some("same"));
    assert_eq!(world.content("goes"), None);
}

/// Fails at the n-th thing that is done to the disk, for every n, with trouble
/// that passes; then the same process or another applies again.
#[test]
fn an_apply_that_stopped_anywhere_is_finished_by_the_next() {
    let mut steps = 0;
    for stop in 0.. {
        for errno in [Errno::NOSPC, Errno::IO, Errno::ACCESS, Errno::ROFS, Errno::MFILE] {
            let world = World::new();
            let plan = plan(&world, &world.files());
            let acts = Arc::new(AtomicUsize::new(0));
            let counted = acts.clone();
            let files = world.files_of("owner-2").watched(move |_, _| {
                if counted.fetch_add(1, Ordering::SeqCst) == stop { Err(os_error(errno)) } else { Ok(()) }
            });
            let report = files.apply(&claim("j", 2), &plan, false);
            let synced = files.sync();
            if acts.load(Ordering::SeqCst) <= stop {
                applied(report);
                synced.unwrap();
                steps = stop;
                break;
            }
            match report {
                ApplyReport::Applied(_) => assert_eq!(synced.unwrap_err().code, SYNC_FAILED),
                report => {
                    let failure = deferred(report);
                    let expected = if errno == Errno::NOSPC { "disk_full" } else { "apply_failed" };
                    assert_eq!(failure.code, expected, "{}", failure.message);
                    assert!(["a", "f", "goes", "same"].iter().any(|path| failure.message.starts_with(path)));
                }
            }
            let next = if stop % 2 == 0 { world.files_of("owner-3") } else { files };
            applied(apply(&next, &claim("j", 3), &plan));
            assert_done(&world);
            applied(apply(&next, &claim("j", 4), &plan));
        }
        if steps > 0 {
            break;
        }
    }
    println!("stopped at each of {steps} steps");
    assert!(steps >= 8, "two folders, two renames, an unlink and three folders synced, at least: {steps}");
}

#[test]
fn what_is_done_is_not_done_again() {
    let world = World::new();
    let log = Log::default();
    let files = world.files().watched(log.watch());
    let plan = plan(&world, &files);
    applied(apply(&files, &lease("j"), &plan));
    let before = ["a/b/new", "f", "same"].map(|path| inode(&world.path(path)));
    log.take();
    let stamps = applied(apply(&files, &claim("j", 2), &plan));
    assert!(log.take().iter().all(|(act, _)| *act == Act::SyncFolder));
    assert_eq!(before, ["a/b/new", "f", "same"].map(|path| inode(&world.path(path))));
    assert_eq!(stamps[..2], [stamp_of(&world.path("a/b/new")), stamp_of(&world.path("f"))]);
    assert_done(&world);
}

/// Whoever renamed may have died before the sync, also of folders it had made.
#[test]
fn what_is_found_done_is_synced_with_all_its_folders() {
    let world = World::new();
    let log = Log::default();
    let plan = {
        let dies = world.files_of("owner-dies");
        let mut plan = plan_puts(&dies, &lease("j"), &[("a/b/new", "new")]);
        world.old("c/d/goes", "old");
        plan.push(dies.plan(remove("c/d/goes")).unwrap());
        applied(dies.apply(&lease("j"), &plan, false));
        plan
    };
    let files = world.files().watched(log.watch());
    applied(apply(&files, &claim("j", 2), &plan));
    assert_eq!(log.synced(), [".", "a", "a/b", "c", "c/d"]);
}

/// It died after it had made the folders and before it renamed.
#[test]
fn folders_of_a_run_that_died_are_synced_by_the_next() {
    let world = World::new();
    let log = Log::default();
    let dies = world.files_of("dies").watched(once(Act::Create, "a/b/new", || Err(os_error(Errno::IO))));
    let plan = plan_puts(&dies, &lease("j"), &[("a/b/new", "new")]);
    deferred(dies.apply(&lease("j"), &plan, false));
    drop(dies);
    let files = world.files().watched(log.watch());
    applied(apply(&files, &claim("j", 2), &plan));
    assert_eq!(log.synced(), [".", "a", "a/b"]);
}

/// A folder that could not be synced: what is in place is written anew.
#[test]
fn after_a_failed_sync_content_is_written_afresh() {
    let world = World::new();
    let log = Log::default();
    let files = world.files().watched(log.watch());
    let plan = plan(&world, &files);
    applied(apply(&files, &lease("j"), &plan));
    chmod(&world.path("f"), 0o640);
    let before = ["a/b/new", "f", "same"].map(|path| inode(&world.path(path)));
    log.take();

    let job = claim("j", 2);
    let stamps = applied(files.apply(&job, &plan, true));
    files.sync().unwrap();
    let acts = log.take();
    for (path, before) in ["a/b/new", "f", "same"].into_iter().zip(before) {
        assert_ne!(inode(&world.path(path)), before, "{path} is still the old file");
        assert!(acts.contains(&(Act::Replace, path.to_owned())), "{acts:?}");
    }
    let synced_files = acts.iter().filter(|(act, _)| *act == Act::SyncFile).count();
    assert_eq!(synced_files, 3, "each copy is synced before it goes to its place");
    for folder in [".", "a", "a/b"] {
        assert!(acts.contains(&(Act::SyncFolder, folder.to_owned())), "{acts:?}");
    }
    assert_eq!(mode(&world.path("f")), 0o640);
    assert_eq!(stamps[1], stamp_of(&world.path("f")));
    assert_done(&world);
    files.discard(&job);
    assert_eq!(world.staged(), [""; 0]);
}

/// The store knows that content has to be written afresh by the code of the last
/// failure; so that must stay until it has been.
#[test]
fn trouble_while_writing_afresh_does_not_make_it_forgotten() {
    for act in [Act::Stage, Act::SyncFile, Act::Replace] {
        let world = World::new();
        let plan = plan_puts(&world.files(), &lease("j"), &[("f", "new")]);
        applied(apply(&world.files(), &lease("j"), &plan));
        let files = world
            .files_of("owner-2")
            .watched(move |now, _| if now == act { Err(os_error(Errno::NOSPC)) } else { Ok(()) });
        let failure = deferred(files.apply(&claim("j", 2), &plan, true));
        assert_eq!(failure.code, SYNC_FAILED, "{act:?}");
        assert!(failure.message.contains("free some room"), "{}", failure.message);
        assert_eq!(world.content("f").as_deref(), Some("new"));
        assert_eq!(world.staged(), [""; 0], "{act:?}: the copy is not left behind");
    }
}

/// What the user has put there meanwhile is not copied over itself.
#[test]
fn writing_afresh_notices_a_change() {
    let world = World::new();
    let users = world.path("f");
    let plan = plan_puts(&world.files(), &lease("j"), &[("f", "new")]);
    applied(apply(&world.files(), &lease("j"), &plan));
    let files = world
        .files_of("owner-2")
        .watched(move |act, _| if act == Act::Stage { std::fs::write(&users, "the user's") } else { Ok(()) });
    let (failure, _) = super::world::conflict(files.apply(&claim("j", 2), &plan, true));
    assert_eq!(failure.code, "conflict");
    assert_eq!(world.content("f").as_deref(), Some("the user's"));
    assert_eq!(world.staged(), [""; 0]);
}
