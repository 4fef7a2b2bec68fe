//! What dead processes left in the stage.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use jobq::effects::sweep_stage;
use jobq::liveness::OwnerLock;
use rustix::fs::{Mode, OFlags};

use super::world::{World, claim, listing};

fn sweep(world: &World, own: &str, planned: &[&str]) -> usize {
    sweep_stage(&world.state(), own, &mut |_, stage| Ok(planned.contains(&stage))).unwrap()
}

#[test]
fn only_what_the_dead_left_and_nobody_planned_goes() {
    let world = World::new();
    let owners = world.state().join("owners");
    let (alive, died) = (OwnerLock::acquire(&owners).unwrap(), OwnerLock::acquire(&owners).unwrap());
    let names = [&*alive.owner().locked_by, &*died.owner().locked_by, "without-lock", "own"].map(str::to_owned);
    for name in &names {
        let files = world.files_of(name);
        for number in 0..2 {
            files.stage_bytes(&claim("job", 3), number, b"x").unwrap();
        }
    }
    let [alive_name, died_name, lockless, own] = names.each_ref().map(String::as_str);
    let planned = format!("{died_name}/job.3.1");
    assert_eq!(sweep(&world, own, &[&planned]), 2, "of the one that never had a lock");
    drop(died);
    assert_eq!(sweep(&world, own, &[&planned]), 1);
    let mut left = vec![
        format!("{alive_name}/job.3.0"),
        format!("{alive_name}/job.3.1"),
        planned.clone(),
        format!("{own}/job.3.0"),
        format!("{own}/job.3.1"),
    ];
    left.sort();
    assert_eq!(world.staged(), left);
    assert!(!world.state().join("stage").join(lockless).exists());
    assert!(world.state().join("stage").join(died_name).exists(), "something in it is still needed");

    assert_eq!(sweep(&world, own, &[]), 1);
    assert!(!world.state().join("stage").join(died_name).exists());
    drop(alive);
    assert_eq!(sweep(&world, own, &[]), 2);
    assert_eq!(world.staged(), [format!("{own}/job.3.0"), format!("{own}/job.3.1")]);
}

#[test]
fn jobs_are_asked_for_by_their_id() {
    let world = World::new();
    let files = world.files_of("dead");
    files.stage_bytes(&claim("01J5", 12), 0, b"x").unwrap();
    fs::create_dir_all(world.state().join("stage/dead/01J6.7/sub")).unwrap();
    fs::write(world.state().join("stage/dead/01J6.7/out.txt"), "x").unwrap();
    fs::write(world.state().join("stage/dead/01J6.7/sub/a.b.c"), "x").unwrap();
    let asked = RefCell::new(Vec::new());
    let gone = sweep_stage(&world.state(), "own", &mut |job, stage| {
        asked.borrow_mut().push((job.to_owned(), stage.to_owned()));
        Ok(stage.ends_with("out.txt"))
    });
    assert_eq!(gone.unwrap(), 2);
    let mut asked = asked.into_inner();
    asked.sort();
    let expected = [("01J5", "dead/01J5.12.0"), ("01J6", "dead/01J6.7/out.txt"), ("01J6", "dead/01J6.7/sub/a.b.c")];
    assert_eq!(asked, expected.map(|(job, stage)| (job.to_owned(), stage.to_owned())));
    assert_eq!(world.staged(), ["dead/01J6.7/out.txt"]);
    assert!(!world.state().join("stage/dead/01J6.7/sub").exists());
    assert_eq!(sweep(&world, "own", &[]), 1);
    assert!(!world.state().join("stage/dead").exists());
}

#[test]
fn an_answer_that_fails_leaves_the_file() {
    let world = World::new();
    world.files_of("dead").stage_bytes(&claim("j", 1), 0, b"x").unwrap();
    let error = sweep_stage(&world.state(), "own", &mut |_, _| Err(jobq::Error::new(jobq::ErrorKind::Busy, "busy")));
    assert_eq!(error.unwrap_err().kind(), jobq::ErrorKind::Busy);
    assert_eq!(world.staged(), ["dead/j.1.0"]);
}

#[test]
fn links_in_the_stage_are_removed_and_not_followed() {
    let world = World::new();
    assert_eq!(sweep(&world, "own", &[]), 0, "no stage yet");
    fs::create_dir_all(world.state().join("stage/dead/j.1")).unwrap();
    let outside = listing(&world.outside());
    let stage = world.state().join("stage");
    symlink(world.outside(), stage.join("linked-owner")).unwrap();
    symlink(world.outside(), stage.join("dead/j.1.0")).unwrap();
    symlink(world.outside().join("folder"), stage.join("dead/j.1/folder")).unwrap();
    symlink(world.outside().join("secret.txt"), stage.join("dead/j.1.1")).unwrap();
    fs::write(stage.join("a-file"), "not an owner's").unwrap();
    assert_eq!(sweep(&world, "own", &[]), 3);
    assert_eq!(listing(&world.outside()), outside);
    assert!(stage.join("a-file").exists() && stage.join("linked-owner").is_symlink() && !stage.join("dead").exists());
}

/// It is ours by its place; a link there leads to what is somebody else's.
#[test]
fn a_stage_that_is_a_link_is_not_swept() {
    let world = World::new();
    let outside = listing(&world.outside());
    symlink(world.outside(), world.state().join("stage")).unwrap();
    let error = sweep_stage(&world.state(), "own", &mut |_, _| Ok(false)).unwrap_err();
    assert!(error.to_string().contains("stage"), "{error}");
    assert_eq!(listing(&world.outside()), outside);
}

/// Folders in folders without end, as a program gone wild may leave them.
#[test]
fn very_deep_folders_are_swept_without_running_out_of_anything() {
    let world = World::new();
    let top = world.state().join("stage/dead/j.1");
    fs::create_dir_all(&top).unwrap();
    // Deeper than there are handles, and than a path can be long.
    let mut folder = rustix::fs::open(&top, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..2100 {
        rustix::fs::mkdirat(&folder, "d", Mode::RWXU).unwrap();
        rustix::fs::openat(&folder, "f", OFlags::CREATE, Mode::RUSR).unwrap();
        folder = rustix::fs::openat(&folder, "d", OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    fs::write(top.join(OsStr::from_bytes(b"no text \xff")), "x").unwrap();
    assert_eq!(sweep(&world, "own", &[]), 2101);
    assert!(!world.state().join("stage/dead").exists());
}
