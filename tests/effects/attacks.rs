//! Paths that lead, or seem to lead, out of the root or to what is no file.
//! Each is tried with everything that takes a path; nothing outside the root may
//! change, and every refusal names the path.

use std::fs;
use std::os::unix::fs::symlink;

use jobq::effects::{Content, Expect, FileEffect, FileError, Files, Sight};
use jobq::store::{Applier as _, EffectOp, Precondition};

use super::mounts::{Mount, is_root};
use super::traps::{by_device, by_disk, by_letters};
use super::world::{World, applied, apply, conflict, forged, lease, listing, plan_puts, remove, sha};

#[test]
fn nothing_leads_out_of_the_root() {
    let mut traps = by_letters(&World::new());
    let letters = traps.len();
    traps.extend(by_disk());
    if is_root("devices as targets and as folders") {
        traps.extend(by_device());
    }
    for (index, (path, set)) in traps.iter().enumerate() {
        let world = World::new();
        set(&world);
        spring(&world, path, index < letters);
    }
    println!("{} paths refused, each by look, read, plan and apply, to put and to remove", traps.len());
    assert!(traps.len() >= 60);
}

/// Tries everything that takes a path.
fn spring(world: &World, path: &str, lexical: bool) {
    let (files, job) = (world.files(), lease("j"));
    let staged = files.stage_bytes(&job, 0, b"attack").unwrap();
    let before = (listing(&world.outside()), everything_but_stage(world));
    let put = || FileEffect::Put { path: path.into(), content: Content::Staged(staged.clone()), expect: Expect::Any };
    refused(path, files.look(path));
    refused(path, files.read(path, 1 << 20));
    refused(path, files.plan(put()));
    refused(path, files.plan(remove(path)));

    // As if the plan had been made before the trap was set, or forged.
    let op = EffectOp::Put { sha256: staged.sha256.clone(), size: staged.size, stage: Some(staged.stage.clone()) };
    let preconditions = ["old", "secret", "inner", "x"].map(|content| Precondition::Sha256(sha(content)));
    for precondition in preconditions.into_iter().chain([Precondition::Absent]) {
        for op in [op.clone(), EffectOp::Remove] {
            for afresh in [false, true] {
                let effect = forged(path, op.clone(), precondition.clone());
                let (failure, done) = conflict(files.apply(&job, &[effect], afresh));
                assert_eq!((failure.code.as_str(), done.len()), ("conflict", 0), "{path:?}");
                named(path, &failure.message);
                files.sync().unwrap();
            }
        }
    }
    assert_eq!((listing(&world.outside()), everything_but_stage(world)), before, "{path:?} changed something");
    // Said by looking at it, not by opening it: that can set a device going.
    let kind = if path.contains('/') { "a folder is needed here" } else { "only regular files are touched" };
    assert!(lexical || files.look(path).unwrap_err().message().contains(kind), "{path:?}");
    assert!(!lexical || files.look(path).unwrap_err().code() == "bad_target");
}

#[track_caller]
fn refused<T>(path: &str, answer: Result<T, FileError>) {
    let Err(error) = answer else { panic!("{path:?} was not refused") };
    assert!(error.is_permanent() && !error.is_disk_full(), "{error}");
    assert_eq!(error.code(), "bad_target");
    named(path, error.message());
}

/// The beginning of the path is there, without what would upset a terminal.
#[track_caller]
fn named(path: &str, message: &str) {
    let shown: String = jobq::printable(path).chars().take(80).collect();
    assert!(message.contains(&shown), "{path:?} is not named: {message}");
    assert!(message.len() > path.len().min(80) + 10, "nothing is said of {path:?}: {message}");
    assert!(message.len() < 900 && !message.contains(char::is_control), "{message}");
}

fn everything_but_stage(world: &World) -> Vec<(String, String)> {
    listing(&world.root()).into_iter().filter(|(name, _)| !name.starts_with(".jobq/stage")).collect()
}

#[rustfmt::skip]
const ODD_NAMES: [&str; 48] = [
    "...", "..a", "a..", ".. ", " ..", ".hidden", "~", "~root", "-rf", "--", "*", "$HOME", "`id`", "$(id)", "%2e%2e%2f",
    "..%2fx", "..\\x", "C:\\x", "a\\..\\b", "．．／x", "..\u{2215}x", "‥", "a\nb", "\r", "\t", "\u{1b}[31mred",
    "\u{7f}", "\u{202e}txt.exe", "\u{feff}x", "\u{fffd}", "é", "e\u{301}", "ß", "SS", "ı", "I", "readme", "README", "K",
    "\u{212a}", ".jobq2", "jobq", "x.jobq", ".\u{17f}obq", "con", "nul", "a:b", "👩\u{200d}👧",
];

/// Odd, but names like any other: they make a file of just that name, inside.
#[test]
fn odd_names_are_only_names() {
    let long = "x".repeat(255);
    let names: Vec<&str> = ODD_NAMES.into_iter().chain([long.as_str()]).collect();
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    let outside = listing(&world.outside());
    for folder in ["", "odd/", "odd/jobq/"] {
        for (number, name) in names.iter().enumerate() {
            let path = format!("{folder}{name}");
            let job = lease(&format!("{}-{number}", folder.len()));
            applied(apply(&files, &job, &plan_puts(&files, &job, &[(&path, name)])));
        }
        // All of them beside each other: none took another's place.
        for name in &names {
            assert_eq!(world.content(&format!("{folder}{name}")).as_deref(), Some(*name));
        }
        for name in &names {
            let plan = [files.plan(remove(&format!("{folder}{name}"))).unwrap()];
            applied(apply(&files, &job, &plan));
            assert_eq!(files.look(&format!("{folder}{name}")).unwrap(), Sight::Absent);
        }
    }
    assert_eq!(listing(&world.outside()), outside);
    println!("{} odd names written, read and removed", 3 * names.len());
}

/// A folder in a folder in a folder, to the longest path there may be.
#[test]
fn the_longest_path_works() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    let path = "d/".repeat(1535) + "ff";
    assert_eq!(path.len(), 3072);
    applied(apply(&files, &job, &plan_puts(&files, &job, &[(&path, "deep")])));
    assert_eq!(files.read(&path, 10).unwrap().as_deref(), Some(b"deep".as_slice()));
    let longer = format!("{path}f");
    assert!(files.look(&longer).unwrap_err().message().contains("is longer than 3072 bytes"));
}

/// Known by what it is, not by its name.
#[test]
fn the_folder_of_the_queue_is_off_limits_by_any_name() {
    let world = World::new();
    let state = world.path("data/queue");
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("jobq.db"), "x").unwrap();
    let files = Files::open(&world.root(), &state, "owner-1").unwrap();
    for path in ["data/queue/jobq.db", "data/queue/new", "data/queue/a/b"] {
        refused(path, files.look(path));
    }
    files.look("data/other").unwrap();
    if is_root("the queue's folder mounted at a second place") {
        fs::create_dir(world.path("alias")).unwrap();
        let _mount = Mount::bind(&state, &world.path("alias"));
        refused("alias/jobq.db", files.look("alias/jobq.db"));
    }
}

#[test]
fn another_filesystem_is_refused_and_named_as_such() {
    if !is_root("mount points below the root") {
        return;
    }
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    world.write("m/f", "under");
    world.write("same/f", "under");
    let file = world.old("single", "under");
    let _mounts = [
        Mount::tmpfs("size=1m", &world.path("m")),
        // The same filesystem, seen a second time: rename(2) keeps them apart.
        Mount::bind(&world.outside().join("folder"), &world.path("same")),
        Mount::bind(&world.outside().join("secret.txt"), &file),
    ];
    fs::write(world.path("m/there"), "there").unwrap();
    let outside = listing(&world.outside());
    for path in ["m/new", "m/there", "m/a/b", "same/f.txt", "same/new", "single"] {
        let staged = files.stage_bytes(&lease(&path.replace(['/', '.'], "-")), 0, b"new").unwrap();
        let content = Content::Staged(staged.clone());
        for effect in [FileEffect::Put { path: path.into(), content, expect: Expect::Any }, remove(path)] {
            let error = files.plan(effect).unwrap_err();
            assert!(error.is_permanent() && error.message().contains("another filesystem"), "{error}");
            named(path, error.message());
        }
        if path != "single" && path != "m/a/b" {
            let op = EffectOp::Put { sha256: staged.sha256, size: 3, stage: Some(staged.stage) };
            let found = match files.look(path).unwrap() {
                Sight::Absent => Precondition::Absent,
                Sight::File { sha256, .. } => Precondition::Sha256(sha256),
            };
            let (failure, _) = conflict(files.apply(&job, &[forged(path, op, found)], false));
            assert!(failure.message.contains("another filesystem"), "{}", failure.message);
        }
    }
    assert_eq!(listing(&world.outside()), outside);
}

/// The root itself may be reached by a link: that is the operator's choice.
#[test]
fn the_root_may_be_a_link() {
    let world = World::new();
    let link = world.outside().join("to-root");
    symlink(world.root(), &link).unwrap();
    let files = Files::open(&link, &link.join(".jobq"), "owner-1").unwrap();
    assert_eq!(files.root(), link);
    let job = lease("j");
    applied(apply(&files, &job, &plan_puts(&files, &job, &[("a/f", "new")])));
    // What the link points to later is of no interest: the folder is held.
    fs::remove_file(&link).unwrap();
    symlink(world.outside().join("folder"), &link).unwrap();
    let again = lease("k");
    applied(apply(&files, &again, &plan_puts(&files, &again, &[("f.txt", "new")])));
    assert_eq!(world.content("f.txt").as_deref(), Some("new"));
    assert_eq!(fs::read_to_string(world.outside().join("folder/f.txt")).unwrap(), "old");
}

#[test]
fn a_root_that_is_none_is_an_error() {
    let world = World::new();
    for (root, state) in [("nowhere", ".jobq"), (".", "nowhere"), ("file", ".jobq")] {
        world.write("file", "x");
        let error = Files::open(&world.path(root), &world.path(state), "o").err().unwrap();
        assert!(
            error.message().contains(world.path(if root == "." { state } else { root }).to_str().unwrap()),
            "{error}"
        );
    }
    for owner in ["", ".", "..", "a/b", "../x", "a b"] {
        assert!(Files::open(&world.root(), &world.state(), owner).err().unwrap().is_invalid(), "{owner:?}");
    }
}
