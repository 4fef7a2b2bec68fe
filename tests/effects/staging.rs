//! Staged files: whole and synced, or gone.

use std::fs;
use std::io::Write as _;

use jobq::effects::{Act, Content, Expect, FileEffect, Staged};
use rustix::io::Errno;

use super::world::{Log, World, claim, lease, mode, os_error, sha};

#[test]
fn a_staged_file_is_hashed_and_synced_as_it_is_written() {
    let world = World::new();
    let log = Log::default();
    let files = world.files().watched(log.watch());
    assert!(!world.state().join("stage").exists(), "made when it is needed");
    let mut writer = files.stage(&claim("01J", 7), 2).unwrap();
    for part in ["one ", "two ", "three"] {
        writer.write_all(part.as_bytes()).unwrap();
    }
    let staged = writer.finish().unwrap();
    let expected = Staged { stage: "owner-1/01J.7.2".into(), sha256: sha("one two three"), size: 13 };
    assert_eq!(staged, expected);
    assert_eq!(fs::read_to_string(world.state().join("stage/owner-1/01J.7.2")).unwrap(), "one two three");
    let names = |names: &[(Act, &str)]| names.iter().map(|(act, name)| (*act, (*name).to_owned())).collect::<Vec<_>>();
    assert_eq!(
        log.take(),
        names(&[
            (Act::SyncFolder, ".jobq/stage"),
            (Act::SyncFolder, ".jobq"),
            (Act::Stage, "01J.7.2"),
            (Act::SyncFile, "01J.7.2"),
        ])
    );
    files.stage_bytes(&claim("01J", 7), 3, b"").unwrap();
    assert_eq!(log.take(), names(&[(Act::Stage, "01J.7.3"), (Act::SyncFile, "01J.7.3")]));
}

/// What replaces a private file must not be public on its way there.
#[test]
fn the_stage_is_not_for_everybody() {
    let world = World::new();
    world.files().stage_bytes(&lease("j"), 0, b"x").unwrap();
    assert_eq!(mode(&world.state().join("stage")) & 0o007, 0);
    assert_eq!(mode(&world.state().join("stage/owner-1")) & 0o007, 0);
}

#[test]
fn a_file_that_is_not_finished_is_gone() {
    let world = World::new();
    let files = world.files();
    let mut writer = files.stage(&lease("j"), 0).unwrap();
    writer.write_all(b"half").unwrap();
    assert_eq!(world.staged(), ["owner-1/j.1.0"]);
    drop(writer);
    assert_eq!(world.staged(), [""; 0]);
    files.stage_bytes(&lease("j"), 0, b"again").unwrap();
}

#[test]
fn a_file_that_cannot_be_synced_is_gone_and_not_synced_again() {
    let world = World::new();
    let log = Log::default();
    let heard = log.watch();
    let files = world.files().watched(move |act, what| {
        heard(act, what)?;
        if act == Act::SyncFile { Err(os_error(Errno::IO)) } else { Ok(()) }
    });
    let error = files.stage_bytes(&lease("j"), 0, b"x").unwrap_err();
    assert!(!error.is_permanent() && !error.is_disk_full(), "{error}");
    assert!(error.message().contains("j.1.0"), "{error}");
    assert_eq!(world.staged(), [""; 0]);
    assert_eq!(log.take().iter().filter(|(act, _)| *act == Act::SyncFile).count(), 1);
}

#[test]
fn the_stage_folder_is_tried_again_when_it_could_not_be_made() {
    let world = World::new();
    let files = world.files().watched(super::world::once(Act::SyncFolder, ".jobq", || Err(os_error(Errno::NOSPC))));
    let error = files.stage_bytes(&lease("j"), 0, b"x").unwrap_err();
    assert!(error.is_disk_full() && error.message().contains("free some room"), "{error}");
    files.stage_bytes(&lease("j"), 0, b"x").unwrap();
}

#[test]
fn one_number_is_one_file() {
    let world = World::new();
    let files = world.files();
    let kept = files.stage_bytes(&lease("j"), 0, b"first").unwrap();
    assert!(files.stage_bytes(&lease("j"), 0, b"second").is_err());
    assert_eq!(fs::read_to_string(world.state().join("stage").join(kept.stage)).unwrap(), "first");
    for id in ["", ".", "..", "a/b", "../x", "a.b", "a b", "a\0"] {
        assert!(files.stage_bytes(&lease(id), 0, b"x").unwrap_err().is_permanent(), "{id:?}");
    }
    assert_eq!(world.staged(), ["owner-1/j.1.0"]);
}

#[test]
fn discarding_takes_this_claim_and_earlier_ones_of_the_same_job() {
    let world = World::new();
    let files = world.files();
    for (id, token, number) in [("j", 1, 0), ("j", 2, 0), ("j", 2, 1), ("j", 3, 0), ("j2", 2, 0), ("i", 2, 0)] {
        files.stage_bytes(&claim(id, token), number, b"x").unwrap();
    }
    let others = world.files_of("owner-2");
    others.stage_bytes(&claim("j", 2), 0, b"x").unwrap();
    files.discard(&claim("j", 2));
    let left = ["owner-1/i.2.0", "owner-1/j.3.0", "owner-1/j2.2.0", "owner-2/j.2.0"];
    assert_eq!(world.staged(), left);
    files.discard(&claim("j", 2));
    files.discard(&claim("unknown", 1));
    world.files_of("owner-3").discard(&claim("j", 9));
    assert_eq!(world.staged(), left);
}

#[test]
fn a_stage_folder_that_somebody_has_removed_is_made_again() {
    let world = World::new();
    let log = Log::default();
    let files = world.files().watched(log.watch());
    let gone = files.stage_bytes(&lease("a"), 0, b"gone").unwrap();
    files.sync_stage().unwrap();
    fs::remove_dir_all(world.state().join("stage")).unwrap();
    log.take();
    let staged = files.stage_bytes(&lease("b"), 0, b"new").unwrap();
    let folders = log.take().into_iter().filter(|(act, _)| *act == Act::SyncFolder);
    assert_eq!(folders.map(|(_, what)| what).collect::<Vec<_>>(), [".jobq/stage", ".jobq"], "as at first");
    assert_eq!(world.staged(), ["owner-1/b.1.0"]);
    files.sync_stage().unwrap();
    let put = |staged| FileEffect::Put { path: "x".into(), content: Content::Staged(staged), expect: Expect::Any };
    let planned = files.plan_all(vec![put(staged)]).unwrap();
    files.confirm_staged(&planned).unwrap();
    // What was in the old one is not there any more, however well it was synced.
    let error = files.plan_all(vec![put(gone)]).unwrap_err();
    assert!(!error.is_permanent() && error.message().contains("stage it anew"), "{error}");
}

/// It is still held open; but whoever goes on after a crash looks for it by its name.
#[test]
fn what_is_in_a_stage_folder_that_somebody_has_moved_is_not_relied_on() {
    let world = World::new();
    let files = world.files();
    let put = |staged| FileEffect::Put { path: "x".into(), content: Content::Staged(staged), expect: Expect::Any };
    let moved = files.plan_all(vec![put(files.stage_bytes(&lease("a"), 0, b"moved").unwrap())]).unwrap();
    fs::rename(world.state().join("stage"), world.state().join("elsewhere")).unwrap();
    files.sync_stage().unwrap();
    let error = files.confirm_staged(&moved).unwrap_err();
    assert!(!error.is_permanent() && error.message().contains("stage it anew"), "{error}");
    let again = files.plan_all(vec![put(files.stage_bytes(&lease("b"), 0, b"new").unwrap())]).unwrap();
    files.sync_stage().unwrap();
    files.confirm_staged(&again).unwrap();
    assert_eq!(world.staged(), ["owner-1/b.1.0"]);
}
