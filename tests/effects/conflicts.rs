//! The disk is not as it must be: what is said, and what is left alone.

use std::fs;
use std::os::unix::fs::symlink;

use jobq::effects::Act;
use jobq::store::{Applier as _, EffectOp, FileStamp, Precondition};
use rustix::io::Errno;

use super::mounts::{Mount, is_root};
use super::world::{
    World, applied, apply, claim, conflict, deferred, forged, lease, listing, once, os_error, plan_puts, put, remove,
    set_mtime, sha, stamp_of,
};

#[test]
fn other_content_than_planned_is_left_alone_and_both_hashes_are_told() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    world.write("first", "old");
    world.write("goes", "old");
    world.old("f", "old");
    let mut plan = plan_puts(&files, &job, &[("first", "new"), ("made/new", "new"), ("f", "new")]);
    plan.push(files.plan(remove("goes")).unwrap());
    world.write("f", "the user's");
    let before = listing(&world.root());
    let (failure, done) = conflict(apply(&files, &job, &plan));
    assert_eq!((failure.code.as_str(), done), ("conflict", vec![]));
    assert!(failure.message.starts_with("f: "), "{}", failure.message);
    assert!(failure.message.contains(&sha("old")) && failure.message.contains(&sha("the user's")));
    let details = failure.details.unwrap();
    assert_eq!(
        details,
        serde_json::json!({ "path": "f", "expected": sha("old"), "found": sha("the user's"), "new": sha("new") })
    );
    assert_eq!(listing(&world.root()), before, "nothing was touched, not even what came before");
}

#[test]
fn every_way_of_differing_is_a_conflict() {
    // What was planned on, what is there now, what is said to be found.
    let nothing = "nothing".to_owned();
    for (planned, now, found) in [
        (Some("old"), None, nothing),
        (None, Some("user"), sha("user")),
        (Some("old"), Some("olD"), sha("olD")),
        (Some("old"), Some(""), sha("")),
        (Some(""), Some("new?"), sha("new?")),
    ] {
        for op in ["put", "remove"] {
            let world = World::new();
            let (files, job) = (world.files(), lease("j"));
            if let Some(content) = planned {
                world.old("f", content);
            }
            let plan = if op == "put" {
                plan_puts(&files, &job, &[("f", "new")])
            } else {
                vec![files.plan(remove("f")).unwrap()]
            };
            match now {
                Some(content) => drop(world.write("f", content)),
                None => fs::remove_file(world.path("f")).unwrap(),
            }
            if op == "remove" && now.is_none() {
                applied(apply(&files, &job, &plan));
                continue;
            }
            let (failure, _) = conflict(apply(&files, &job, &plan));
            let details = failure.details.unwrap();
            assert_eq!(details["expected"], planned.map_or("nothing".to_owned(), sha));
            assert_eq!(details["found"], found);
            assert_eq!(details["new"], if op == "put" { sha("new").into() } else { serde_json::Value::Null });
            assert!(failure.message.contains(&found), "{}", failure.message);
            assert_eq!(world.content("f").as_deref(), now);
        }
    }
}

/// Same size, same modification time, same inode: the time of the last change
/// to the inode gives it away.
#[test]
fn a_change_that_hides_its_time_is_seen() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    let path = world.old("f", "old");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let plan = plan_puts(&files, &job, &[("f", "new")]);
    fs::write(&path, "OLD").unwrap();
    set_mtime(&path, time);
    let (failure, _) = conflict(apply(&files, &job, &plan));
    assert_eq!(failure.details.unwrap()["found"], sha("OLD"));
    assert_eq!(world.content("f").as_deref(), Some("OLD"));
}

/// A change within the tick of the clock in which the file was looked at.
#[test]
fn a_change_in_the_same_tick_is_seen() {
    for round in 0..50 {
        let world = World::new();
        let (files, job) = (world.files(), lease("j"));
        let path = world.write("f", "old");
        let plan = plan_puts(&files, &job, &[("f", "new")]);
        fs::write(&path, "OLD").unwrap();
        conflict(apply(&files, &job, &plan));
        assert_eq!(world.content("f").as_deref(), Some("OLD"), "round {round}");
    }
}

/// A file that is seen to be a wrong one by its size is not read for minutes
/// while everybody waits.
#[test]
fn a_huge_wrong_file_is_told_by_its_size() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    world.old("f", "old");
    let plan = plan_puts(&files, &job, &[("f", "new"), ("g", "new")]);
    for name in ["f", "g"] {
        fs::File::create(world.path(name)).unwrap().set_len(1 << 40).unwrap();
    }
    let (failure, _) = conflict(apply(&files, &job, &plan));
    assert_eq!(failure.details.unwrap()["found"], format!("another file of {} bytes", 1_u64 << 40));
}

#[test]
fn a_conflict_after_the_first_change_is_partial_and_lists_both_kinds() {
    let world = World::new();
    world.write("goes", "old");
    world.old("f", "old");
    let users = world.path("f");
    let files = world.files().watched(once(Act::Create, "a/new", move || fs::write(users, "the user's")));
    let job = lease("j");
    let mut plan = vec![files.plan(remove("goes")).unwrap()];
    plan.extend(plan_puts(&files, &job, &[("a/new", "new"), ("f", "new"), ("never", "new")]));
    let (failure, done) = conflict(apply(&files, &job, &plan));
    assert_eq!(failure.code, "partial");
    assert_eq!(done, [(0, FileStamp::default()), (1, stamp_of(&world.path("a/new")))]);
    assert!(failure.message.ends_with("; on disk: goes, a/new; not done: f, never"), "{}", failure.message);
    let details = failure.details.unwrap();
    assert_eq!(details["found"], sha("the user's"));
    assert_eq!(details["on_disk"], serde_json::json!(["goes", "a/new"]));
    assert_eq!(details["not_done"], serde_json::json!(["f", "never"]));
    assert_eq!(world.content("f").as_deref(), Some("the user's"));
    assert_eq!(world.content("never"), None);

    // The user gives way; what is recorded as applied is not tried again.
    world.write("f", "old");
    applied(apply(&files, &claim("j", 2), &plan[2..]));
    assert_eq!(world.content("f").as_deref(), Some("new"));
}

#[test]
fn a_file_to_be_removed_that_changed_after_the_first_change_stays() {
    let world = World::new();
    world.old("goes", "old");
    let users = world.path("goes");
    let files = world.files().watched(once(Act::Create, "a", move || fs::write(users, "the user's")));
    let job = lease("j");
    let mut plan = plan_puts(&files, &job, &[("a", "new")]);
    plan.push(files.plan(remove("goes")).unwrap());
    let (failure, done) = conflict(apply(&files, &job, &plan));
    assert_eq!((failure.code.as_str(), done.len()), ("partial", 1));
    assert_eq!(world.content("goes").as_deref(), Some("the user's"));
}

#[test]
fn a_bad_target_after_the_first_change_is_partial_too() {
    let world = World::new();
    fs::create_dir(world.path("b")).unwrap();
    let (at, target) = (world.path("b"), world.outside());
    let files = world.files().watched(once(Act::Create, "a", move || {
        fs::remove_dir(&at)?;
        symlink(target, at)
    }));
    let job = lease("j");
    let plan = plan_puts(&files, &job, &[("a", "new"), ("b/secret.txt", "new")]);
    let outside = listing(&world.outside());
    let (failure, done) = conflict(apply(&files, &job, &plan));
    assert_eq!((failure.code.as_str(), done.len(), done[0].0), ("partial", 1, 0));
    assert!(failure.message.contains("b/secret.txt: b: is a symbolic link"), "{}", failure.message);
    assert_eq!(listing(&world.outside()), outside);
}

/// The first run got half-way and was put off; then the user came.
#[test]
fn what_an_earlier_run_has_changed_makes_a_conflict_partial() {
    let world = World::new();
    world.write("goes", "old");
    world.old("same", "same");
    let files = world.files().watched(once(Act::Create, "b", || Err(os_error(Errno::NOSPC))));
    let job = lease("j");
    let mut plan = plan_puts(&files, &job, &[("a", "new"), ("same", "same")]);
    plan.push(files.plan(remove("goes")).unwrap());
    plan.extend([files.plan(put(&files, &job, 9, "b", "new")).unwrap()]);
    assert_eq!(deferred(apply(&files, &job, &plan)).code, "disk_full");
    world.write("b", "the user's");
    let (failure, done) = conflict(apply(&files, &claim("j", 2), &plan));
    assert_eq!(failure.code, "partial");
    assert_eq!(done, [(0, stamp_of(&world.path("a"))), (2, FileStamp::default())], "`same` was never changed");
    assert!(failure.message.contains("on disk: a, goes; not done: same, b"), "{}", failure.message);
}

/// Nothing is changed when it can be seen beforehand that it cannot all be done.
#[test]
fn a_plan_that_contradicts_itself_is_refused_untouched() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    let effects = [("a", "1"), ("a", "2"), ("b", "3"), ("b/c", "4")].into_iter().enumerate();
    let plan: Vec<_> = effects.map(|(n, (path, text))| files.plan(put(&files, &job, n, path, text)).unwrap()).collect();
    for pair in [&plan[..2], &plan[2..]] {
        let (failure, done) = conflict(apply(&files, &job, pair));
        assert_eq!((failure.code.as_str(), done.len()), ("conflict", 0));
        assert!(world.content("a").is_none() && world.content("b").is_none());
    }
}

/// A conflict is for good, so it is told even if something before it may pass.
#[test]
fn a_conflict_is_told_rather_than_a_trouble_that_may_pass() {
    if !is_root("a file that cannot be read, beside a conflict") {
        return;
    }
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    fs::create_dir(world.path("m")).unwrap();
    let plan = plan_puts(&files, &job, &[("g", "new")]);
    world.write("g", "the user's");
    // A file like any other, except that reading its beginning is an I/O error.
    let _mount = Mount::new(&["-t", "proc", "proc"], &world.path("m"));
    let unreadable = format!("m/{}/mem", std::process::id());
    let effect = forged(&unreadable, EffectOp::Remove, Precondition::Sha256(sha("old")));
    let failure = deferred(files.apply(&job, std::slice::from_ref(&effect), false));
    assert!(failure.code == "apply_failed" && failure.message.starts_with(&unreadable), "{}", failure.message);
    for plan in [[effect.clone(), plan[0].clone()], [plan[0].clone(), effect.clone()]] {
        let (failure, _) = conflict(files.apply(&job, &plan, false));
        assert!(failure.message.starts_with("g: "), "{}", failure.message);
    }
}

/// A path that is different at every look is given up for now.
#[test]
fn a_path_that_keeps_changing_is_put_off() {
    let world = World::new();
    let files = world.files().watched(move |act, _| {
        // As if a file were there for rename that is gone at the next look.
        if act == Act::Create { Err(os_error(Errno::EXIST)) } else { Ok(()) }
    });
    let job = lease("j");
    let plan = plan_puts(&files, &job, &[("f", "new")]);
    let failure = deferred(apply(&files, &job, &plan));
    assert_eq!(failure.code, "apply_failed");
    assert!(failure.message.starts_with("f: it keeps changing"), "{}", failure.message);
}
