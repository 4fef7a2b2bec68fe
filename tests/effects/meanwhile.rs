//! What somebody else does between plan and apply, and between the last look and
//! the change.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use jobq::effects::Act;
use jobq::store::{Applier as _, EffectOp, PlannedEffect};

use super::mounts::{Mount, is_root};
use super::world::{World, applied, apply, conflict, lease, listing, once, plan_puts, put, remove, sha};

/// A world with `a/b/old` in it, and a plan to replace it, to remove its
/// neighbour and to make a new file.
fn planned() -> (World, jobq::effects::Files, Vec<PlannedEffect>) {
    let world = World::new();
    let files = world.files();
    world.write("a/b/goes", "old");
    world.old("a/b/old", "old");
    let job = lease("j");
    let mut plan = plan_puts(&files, &job, &[("a/b/old", "new"), ("a/b/c/new", "new")]);
    plan.push(files.plan(remove("a/b/goes")).unwrap());
    (world, files, plan)
}

/// Puts something in a place.
type Trap = fn(&World, &Path);

fn instead(path: &Path, make: impl FnOnce(&Path)) {
    if path.is_dir() && !path.is_symlink() {
        fs::rename(path, path.with_extension("moved")).unwrap();
    } else if path.symlink_metadata().is_ok() {
        fs::remove_file(path).unwrap();
    }
    make(path);
}

#[test]
fn traps_set_between_plan_and_apply_are_seen() {
    let places = ["a", "a/b", "a/b/old", "a/b/goes", "a/b/c", "a/b/c/new"];
    let mut traps: Vec<(&str, Trap)> = vec![
        ("link to a folder outside", |world, at| symlink(world.outside().join("folder"), at).unwrap()),
        ("link to the outside", |world, at| symlink(world.outside(), at).unwrap()),
        ("link to a file outside", |world, at| symlink(world.outside().join("folder/f.txt"), at).unwrap()),
        ("link to a missing file outside", |world, at| symlink(world.outside().join("not-yet"), at).unwrap()),
        ("link to where it was", |_, at| symlink(at.with_extension("moved"), at).unwrap()),
        ("link to itself", |_, at| symlink(at, at).unwrap()),
        ("FIFO", |_, at| assert!(Command::new("mkfifo").arg(at).status().unwrap().success())),
        ("socket", |_, at| drop(UnixListener::bind(at).unwrap())),
    ];
    if is_root("devices set between plan and apply") {
        traps.push(("device", |_, at| {
            assert!(Command::new("mknod").arg(at).args(["c", "1", "3"]).status().unwrap().success());
        }));
    }
    let mut count = 0;
    for place in places {
        for (name, set) in &traps {
            let (world, files, plan) = planned();
            if place.ends_with("/new") {
                fs::create_dir(world.path("a/b/c")).unwrap();
            }
            instead(&world.path(place), |at| set(&world, at));
            let before = (listing(&world.outside()), listing(&world.root()));
            let (failure, done) = conflict(apply(&files, &lease("j"), &plan));
            assert_eq!((failure.code.as_str(), done.len()), ("conflict", 0), "{name} at {place}");
            assert!(failure.message.contains(place), "{name} at {place}: {}", failure.message);
            assert_eq!((listing(&world.outside()), listing(&world.root())), before, "{name} at {place}");
            count += 1;
        }
    }
    println!("{count} traps set between plan and apply");
    assert!(count >= 48);
}

#[test]
fn a_file_where_a_folder_was_and_a_folder_where_a_file_was_are_conflicts() {
    for (place, is_folder) in [("a", false), ("a/b", false), ("a/b/c", false), ("a/b/old", true), ("a/b/c/new", true)] {
        let (world, files, plan) = planned();
        let at = world.path(place);
        if is_folder {
            instead(&at, |at| fs::create_dir_all(at).unwrap());
        } else {
            instead(&at, |at| fs::write(at, "in the way").unwrap());
        }
        let before = listing(&world.root());
        let (failure, _) = conflict(apply(&files, &lease("j"), &plan));
        assert!(failure.message.contains(place), "{}", failure.message);
        assert_eq!(listing(&world.root()), before);
    }
}

#[test]
fn a_filesystem_mounted_between_plan_and_apply_is_a_conflict() {
    if !is_root("a filesystem mounted between plan and apply") {
        return;
    }
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    fs::create_dir(world.path("m")).unwrap();
    let plan = plan_puts(&files, &job, &[("m/f", "new")]);
    let _mount = Mount::tmpfs("size=1m", &world.path("m"));
    let (failure, _) = conflict(apply(&files, &job, &plan));
    assert!(failure.message.contains("m/f") && failure.message.contains("another filesystem"), "{}", failure.message);
    assert_eq!(listing(&world.path("m")).len(), 0);
}

#[test]
fn folders_that_are_gone_are_made_again() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    fs::create_dir_all(world.path("a/b")).unwrap();
    let plan = plan_puts(&files, &job, &[("a/b/f", "new")]);
    fs::remove_dir_all(world.path("a")).unwrap();
    applied(apply(&files, &job, &plan));
    assert_eq!(world.content("a/b/f").as_deref(), Some("new"));
}

/// After the last look only the system call itself can tell.
#[test]
fn a_file_that_comes_just_before_ours_is_not_overwritten() {
    for (act, content, fallback) in [(Act::Create, "theirs", false), (Act::Link, "theirs", true)] {
        let world = World::new();
        let theirs = world.path("f");
        let write = once(act, "f", move || fs::write(theirs, content));
        let files = world.files().watched(move |act, what| {
            write(act, what)?;
            if fallback && act == Act::Create { Err(std::io::Error::from_raw_os_error(22)) } else { Ok(()) }
        });
        let job = lease("j");
        let plan = plan_puts(&files, &job, &[("f", "ours")]);
        let (failure, done) = conflict(apply(&files, &job, &plan));
        assert_eq!((failure.code.as_str(), done.len()), ("conflict", 0));
        let details = failure.details.unwrap();
        assert_eq!((&details["found"], &details["new"]), (&sha("theirs").into(), &sha("ours").into()));
        assert_eq!(world.content("f").as_deref(), Some("theirs"));
        assert_eq!(world.staged(), ["owner-1/j.1.0"], "kept for a retry");
    }
}

#[test]
fn the_same_content_written_just_before_is_as_good() {
    let world = World::new();
    let theirs = world.path("f");
    let files = world.files().watched(once(Act::Create, "f", move || fs::write(theirs, "same")));
    let job = lease("j");
    let plan = plan_puts(&files, &job, &[("f", "same")]);
    assert_eq!(applied(apply(&files, &job, &plan)), [super::world::stamp_of(&world.path("f"))]);
}

/// A link that is slipped in at the last moment is itself replaced or removed;
/// what it points to is not touched.
#[test]
fn a_link_slipped_in_at_the_last_moment_leads_nowhere() {
    for act in [Act::Create, Act::Replace, Act::Unlink] {
        let world = World::new();
        if act != Act::Create {
            world.old("a/f.txt", "old");
        }
        let (at, target) = (world.path("a/f.txt"), world.outside().join("folder/f.txt"));
        let files = world.files().watched(once(act, "a/f.txt", move || {
            let _ = fs::remove_file(&at);
            symlink(target, at)
        }));
        let job = lease("j");
        let effect = if act == Act::Unlink { remove("a/f.txt") } else { put(&files, &job, 0, "a/f.txt", "new") };
        let plan = [files.plan(effect).unwrap()];
        let outside = listing(&world.outside());
        let report = files.apply(&job, &plan, false);
        assert_eq!(listing(&world.outside()), outside, "{act:?}: {report:?}");
    }
}

#[test]
fn a_folder_swapped_at_the_last_moment_leads_nowhere() {
    for act in [Act::Create, Act::Replace, Act::Unlink, Act::MakeFolder] {
        let world = World::new();
        if matches!(act, Act::Replace | Act::Unlink) {
            world.old("a/f.txt", "old");
        } else if act == Act::Create {
            fs::create_dir(world.path("a")).unwrap();
        }
        let (at, target) = (world.path("a"), world.outside().join("folder"));
        let what = if act == Act::MakeFolder { "a" } else { "a/f.txt" };
        let files = world.files().watched(once(act, what, move || {
            let _ = fs::rename(&at, at.with_extension("moved"));
            symlink(target, at)
        }));
        let job = lease("j");
        let effect = if act == Act::Unlink { remove("a/f.txt") } else { put(&files, &job, 0, "a/f.txt", "new") };
        let plan = [files.plan(effect).unwrap()];
        let outside = listing(&world.outside());
        let report = files.apply(&job, &plan, false);
        assert_eq!(listing(&world.outside()), outside, "{act:?}: {report:?}");
        let moved = fs::read_to_string(world.path("a.moved/f.txt")).ok();
        let expected = match act {
            Act::Create | Act::Replace => Some("new"),
            _ => None,
        };
        assert_eq!(moved.as_deref(), expected, "{act:?}: it went to the folder that was held");
    }
}

/// The stage is jobq's, but a handler's program can write there.
#[test]
fn a_staged_file_that_is_not_as_recorded_is_a_conflict() {
    let traps: Vec<(&str, Trap)> = vec![
        ("gone", |_, _| ()),
        ("link to a file of that size outside", |world, at| symlink(world.outside().join("folder/f.txt"), at).unwrap()),
        ("two names", |world, at| fs::hard_link(world.outside().join("folder/f.txt"), at).unwrap()),
        ("shorter", |_, at| fs::write(at, "ne").unwrap()),
        ("longer", |_, at| fs::write(at, "new!").unwrap()),
        ("folder", |_, at| fs::create_dir(at).unwrap()),
        ("FIFO", |_, at| assert!(Command::new("mkfifo").arg(at).status().unwrap().success())),
        ("socket", |_, at| drop(UnixListener::bind(at).unwrap())),
    ];
    for (name, set) in traps {
        for existing in [false, true] {
            let world = World::new();
            let (files, job) = (world.files(), lease("j"));
            if existing {
                world.old("f", "old");
            }
            world.old("first", "old");
            let plan = plan_puts(&files, &job, &[("first", "new"), ("f", "new")]);
            let at = world.state().join("stage/owner-1/j.1.1");
            fs::remove_file(&at).unwrap();
            set(&world, &at);
            let before = (listing(&world.root()), listing(&world.outside()));
            let (failure, done) = conflict(apply(&files, &job, &plan));
            assert_eq!((failure.code.as_str(), done.len()), ("conflict", 0), "{name}");
            assert!(failure.message.contains("f: its staged content (owner-1/j.1.1)"), "{name}: {}", failure.message);
            assert_eq!((listing(&world.root()), listing(&world.outside())), before, "{name}");
        }
    }
}

/// Its size is right: a FIFO has none.
#[test]
fn a_fifo_in_the_place_of_an_empty_staged_file_is_a_conflict() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    let plan = plan_puts(&files, &job, &[("f", "")]);
    let at = world.state().join("stage/owner-1/j.1.0");
    fs::remove_file(&at).unwrap();
    assert!(Command::new("mkfifo").arg(at).status().unwrap().success());
    conflict(apply(&files, &job, &plan));
    assert!(!world.path("f").exists());
}

#[test]
fn a_recorded_stage_name_cannot_lead_out_of_the_stage() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    let plan = plan_puts(&files, &job, &[("f", "new")]);
    fs::write(world.state().join("stage/old"), "new").unwrap();
    fs::write(world.state().join("new"), "new").unwrap();
    let secret = world.outside().join("secret.txt");
    symlink(world.outside().join("folder"), world.state().join("stage/link")).unwrap();
    let absolute = secret.to_str().unwrap();
    for stage in [
        "",
        "old",
        "../new",
        "owner-1/../../new",
        "./../new",
        "owner-1/..",
        absolute,
        "/",
        "link/f.txt",
        "owner-1//j.1.0",
    ] {
        let mut forged = plan.clone();
        forged[0].op = EffectOp::Put { sha256: sha("new"), size: 3, stage: Some(stage.to_owned()) };
        let (failure, _) = conflict(apply(&files, &job, &forged));
        assert!(failure.message.contains("f: its staged content"), "{stage:?}: {}", failure.message);
        assert_eq!(world.content("f"), None, "{stage:?}");
    }
    applied(apply(&files, &job, &plan));
}
