//! A power cut, as a model: what was not synced is gone. Whatever the database
//! says was made sure before it says so.

use super::disk::{Disk, is_log, is_sync};
use super::strace::{self, Call};
use super::world::{World, after};

#[test]
fn the_log_is_written_when_all_it_speaks_of_is_sure() {
    if !strace::is_there() {
        return;
    }
    let world = World::new();
    let calls = strace::census(&world.committer("commit"), &world.root(), &world.outside("log"));
    let mut disk = Disk::default();
    let (mut log_is_sure, mut acceptances, mut ends) = (true, 0, 0);
    let mut renames = 0;
    for call in &calls {
        if is_log(call) && call.name.starts_with("pwrite") {
            // Written is as good as committed: the log may reach the disk at any time from here.
            let Disk { contents, names, .. } = &disk;
            assert!(disk.is_sure(), "the log is written, and could be lost: {contents:?} {names:?}");
            // What is told apart by it: staged so far, or all in place.
            if log_is_sure && disk.changes > 0 {
                *(if renames == 0 { &mut acceptances } else { &mut ends }) += 1;
            }
            log_is_sure = false;
        } else if is_log(call) && is_sync(call) {
            log_is_sure = true;
        }
        if call.name.starts_with("rename") {
            renames += 1;
            assert!(log_is_sure && acceptances > 0, "changed before it was accepted: {call:?}");
        }
        disk.see(call, &world.root());
    }
    assert!(acceptances > 0 && ends > 0 && renames == 2, "{acceptances} {ends} {renames}: {calls:#?}");
    // Two folders and two files of the stage with their contents; then two folders, two files and one that goes.
    assert!(disk.changes >= 11, "only {} changes were seen: {calls:#?}", disk.changes);
    assert_eq!(world.tree(), after());
}

#[test]
fn after_a_power_cut_between_acceptance_and_apply_the_accepted_bytes_are_there() {
    if !strace::is_there() {
        return;
    }
    let example = World::new();
    let calls = strace::census(&example.committer("commit"), &example.root(), &example.outside("log"));
    let rename = calls.iter().find(|call| call.name.starts_with("rename")).unwrap();
    let world = World::new();
    let made = strace::killed_at(&world.committer("commit"), rename, &world.root(), &world.outside("log"));
    let acceptance = made.iter().rposition(|call| is_log(call) && is_sync(call)).unwrap();
    cut(&world, &made[..acceptance]);
    assert!(world.all_or_nothing(), "it was accepted");
}

/// Takes away what was not sure when these calls had been made.
fn cut(world: &World, calls: &[Call]) {
    let mut disk = Disk::default();
    for call in calls {
        disk.see(call, &world.root());
    }
    assert!(disk.changes >= 6, "what was staged has been seen: {calls:#?}");
    for path in &disk.contents {
        std::fs::write(path, "").unwrap();
    }
    for path in disk.names.iter().filter(|path| path.starts_with(world.root().join(".jobq/stage"))) {
        let _ = std::fs::remove_dir_all(path).or_else(|_| std::fs::remove_file(path));
    }
}
