//! What becomes visible, and how.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex};

use jobq::effects::{Act, Content, Expect, FileEffect};
use jobq::store::{EffectOp, FileStamp, Precondition};
use rustix::io::Errno;

use super::world::{
    Log, World, applied, apply, chmod, claim, forged, inode, lease, mode, os_error, plan_puts, put, remove, sha,
    stamp_of,
};

#[test]
fn a_new_file_gets_its_folders_and_the_mode_of_any_new_file() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    let plan = plan_puts(&files, &job, &[("a/b/new.txt", "hello")]);
    assert_eq!(world.content("a/b/new.txt"), None, "planning changes nothing");
    assert!(!world.path("a").exists());
    assert_eq!(applied(apply(&files, &job, &plan)), [stamp_of(&world.path("a/b/new.txt"))]);
    assert_eq!(world.content("a/b/new.txt").as_deref(), Some("hello"));
    let usual = world.write("usual.txt", "");
    assert_eq!(mode(&world.path("a/b/new.txt")), mode(&usual), "as the umask says");
    fs::create_dir(world.path("usual")).unwrap();
    assert_eq!(mode(&world.path("a/b")), mode(&world.path("usual")));
    assert_eq!(world.staged(), [""; 0], "the staged file is the file now");
}

#[test]
fn a_replaced_file_keeps_its_mode_but_not_its_special_bits() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    for (number, (before, after)) in
        [(0o640, 0o640), (0o755, 0o755), (0o600, 0o600), (0o4755, 0o755), (0o2770, 0o770)].into_iter().enumerate()
    {
        let path = world.old("f", "old");
        chmod(&path, before);
        let effect = put(&files, &job, number, "f", &format!("new {number}"));
        let plan = [files.plan(effect).unwrap()];
        applied(apply(&files, &job, &plan));
        assert_eq!(format!("{:o}", mode(&path)), format!("{after:o}"));
        assert_eq!(world.content("f"), Some(format!("new {number}")));
    }
}

/// The mode is taken over when the change is planned, where its sync does not
/// hold up everybody; what was changed since counts too.
#[test]
fn a_mode_that_changed_after_the_plan_is_kept_too() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    let path = world.old("f", "old");
    let plan = plan_puts(&files, &job, &[("f", "new")]);
    chmod(&path, 0o601);
    applied(apply(&files, &job, &plan));
    assert_eq!((mode(&path), world.content("f").as_deref()), (0o601, Some("new")));
}

#[test]
fn another_name_of_a_replaced_file_keeps_the_old_content() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    let outside = world.outside().join("twin");
    fs::hard_link(world.old("f", "old"), &outside).unwrap();
    applied(apply(&files, &job, &plan_puts(&files, &job, &[("f", "new")])));
    assert_eq!(fs::read_to_string(outside).unwrap(), "old");
    assert_eq!(world.content("f").as_deref(), Some("new"));
}

#[test]
fn a_removed_file_is_gone_and_its_stamp_is_zero() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    world.old("a/f", "old");
    let plan = files.plan_all(vec![remove("a/f"), remove("never/was")]).unwrap();
    assert_eq!(plan[1].precondition, Precondition::Absent);
    assert_eq!(applied(apply(&files, &job, &plan)), [FileStamp::default(); 2]);
    assert_eq!(world.content("a/f"), None);
    assert!(world.path("a").is_dir(), "folders stay");
    assert!(!world.path("never").exists(), "none is made in order to remove");
}

#[test]
fn removing_what_is_already_gone_is_done() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    world.old("a/f", "old");
    let plan = [files.plan(remove("a/f")).unwrap()];
    fs::remove_dir_all(world.path("a")).unwrap();
    assert_eq!(applied(apply(&files, &job, &plan)), [FileStamp::default()]);
}

/// The same content is not written a second time; its staged copy goes later.
#[test]
fn what_is_already_in_place_is_left_in_place() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    let path = world.old("f", "same");
    let before = inode(&path);
    let plan = plan_puts(&files, &job, &[("f", "same"), ("g", "same too")]);
    world.write("g", "same too");
    let stamps = applied(apply(&files, &job, &plan));
    assert_eq!(stamps, [stamp_of(&path), stamp_of(&world.path("g"))]);
    assert_eq!(inode(&path), before);
    assert_eq!(world.staged(), ["owner-1/j.1.0", "owner-1/j.1.1"]);
    files.discard(&job);
    assert_eq!(world.staged(), [""; 0]);
}

#[test]
fn content_in_place_needs_no_staged_file() {
    let world = World::new();
    let log = Log::default();
    let (files, job) = (world.files().watched(log.watch()), lease("j"));
    let path = world.old("f", "same");
    let content = Content::InPlace { sha256: sha("same"), size: 4 };
    let effect = FileEffect::Put { path: "f".into(), content, expect: Expect::Any };
    let plan = [files.plan(effect).unwrap()];
    assert_eq!(plan[0].op, EffectOp::Put { sha256: sha("same"), size: 4, stage: None });
    assert_eq!(log.take(), [(Act::SyncFile, "f".to_owned())], "whoever wrote it may not have synced it");
    assert_eq!(applied(apply(&files, &job, &plan)), [stamp_of(&path)]);
    assert_eq!(log.take(), [(Act::SyncFolder, ".".to_owned())]);
}

/// Size, times and inode as noted stand for the content; nothing is read.
#[test]
fn a_file_that_looks_as_it_did_is_not_hashed_again() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    world.old("f", "old");
    let mut plan = plan_puts(&files, &job, &[("f", "new")]);
    plan[0].precondition = Precondition::Sha256(sha("never read"));
    applied(apply(&files, &job, &plan));
    assert_eq!(world.content("f").as_deref(), Some("new"));
}

/// … unless they were noted too soon after a change to prove anything.
#[test]
fn a_young_file_is_hashed_whatever_it_looks_like() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    world.old("f", "old");
    let mut plan = plan_puts(&files, &job, &[("f", "new")]);
    plan[0].precondition = Precondition::Sha256(sha("never read"));
    plan[0].observed = plan[0].observed.take().map(|observed| observed.replacen('{', "{\"young\":true,", 1));
    let (failure, _) = super::world::conflict(apply(&files, &job, &plan));
    assert_eq!(failure.details.unwrap()["found"], sha("old"));
}

#[test]
fn a_file_that_was_only_touched_is_hashed_and_found_unchanged() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    let path = world.old("f", "old");
    let plan = plan_puts(&files, &job, &[("f", "new")]);
    super::world::set_mtime(&path, std::time::SystemTime::now());
    applied(apply(&files, &job, &plan));
    assert_eq!(world.content("f").as_deref(), Some("new"));
}

/// Where "only if nothing is there" cannot be said to rename, a link says it.
#[test]
fn a_filesystem_without_noreplace_gets_a_link() {
    let world = World::new();
    let log = Log::default();
    let heard = log.watch();
    let files = world.files().watched(move |act, what| {
        heard(act, what)?;
        if act == Act::Create { Err(os_error(Errno::INVAL)) } else { Ok(()) }
    });
    let job = lease("j");
    let plan = plan_puts(&files, &job, &[("a/f", "new")]);
    assert_eq!(applied(apply(&files, &job, &plan)), [stamp_of(&world.path("a/f"))]);
    assert!(log.take().contains(&(Act::Link, "a/f".to_owned())));
    assert_eq!(fs::metadata(world.path("a/f")).unwrap().nlink(), 1);
    assert_eq!(world.content("a/f").as_deref(), Some("new"));
    assert_eq!(world.staged(), [""; 0]);
}

/// Whoever comes next applies, from the dead one's stage.
#[test]
fn another_process_applies_what_a_dead_one_has_planned() {
    let world = World::new();
    let plan = {
        let dead = world.files_of("owner-dead");
        plan_puts(&dead, &claim("j", 3), &[("a/f", "new"), ("g", "new too")])
    };
    let files = world.files();
    applied(apply(&files, &claim("j", 4), &plan));
    assert_eq!(world.content("a/f").as_deref(), Some("new"));
    assert_eq!(world.content("g").as_deref(), Some("new too"));
    assert_eq!(world.staged(), [""; 0]);
}

#[test]
fn a_job_without_effects_is_applied() {
    let world = World::new();
    assert_eq!(applied(apply(&world.files(), &lease("j"), &[])), []);
}

/// A program that a handler starts must not find our folders open.
#[test]
fn no_handle_outlives_an_exec() {
    let world = World::new();
    let root = world.root().canonicalize().unwrap();
    let (watched, seen) = (root.clone(), std::sync::Arc::new(std::sync::Mutex::new(0)));
    let count = seen.clone();
    let files = world.files().watched(move |_, _| {
        for entry in fs::read_dir("/proc/self/fd").unwrap().flatten() {
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            if !target.starts_with(&watched) {
                continue;
            }
            let info = std::path::Path::new("/proc/self/fdinfo").join(entry.file_name());
            let Ok(info) = fs::read_to_string(info) else { continue };
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim().to_owned();
            let flags = u32::from_str_radix(&flags, 8).unwrap();
            assert_ne!(flags & 0o2_000_000, 0, "{} stays open", target.display());
            *count.lock().unwrap() += 1;
        }
        Ok(())
    });
    world.old("r", "old");
    world.old("d", "old");
    let job = lease("j");
    let mut plan = plan_puts(&files, &job, &[("a/b/f", "new"), ("r", "new")]);
    plan.push(files.plan(remove("d")).unwrap());
    applied(apply(&files, &job, &plan));
    assert!(*seen.lock().unwrap() > 20);
}

#[test]
fn a_forged_effect_without_its_file_is_refused() {
    let world = World::new();
    let op = EffectOp::Put { sha256: sha("x"), size: 1, stage: None };
    let effect = forged("f", op, Precondition::Absent);
    let (failure, done) = super::world::conflict(apply(&world.files(), &lease("j"), &[effect]));
    assert_eq!((failure.code.as_str(), done.len()), ("conflict", 0));
    assert!(failure.message.contains("f: its staged content"), "{}", failure.message);
}

/// At the moment before its name is there, and at the sync before that.
#[test]
fn a_file_that_is_to_replace_another_is_never_open_to_more_than_that_one() {
    let world = World::new();
    let path = world.old("f", "old");
    chmod(&path, 0o640);
    let (stage, seen) = (world.state().join("stage/owner-1/j.1.0"), Arc::new(Mutex::new(Vec::new())));
    let log = Arc::clone(&seen);
    let files = world.files().watched(move |act, _| {
        if matches!(act, Act::Replace | Act::SyncFile) {
            log.lock().unwrap().push((act, mode(&stage)));
        }
        Ok(())
    });
    let job = lease("j");
    let staged = files.stage_bytes(&job, 0, b"new").unwrap();
    seen.lock().unwrap().clear();
    let put = FileEffect::Put { path: "f".into(), content: Content::Staged(staged), expect: Expect::Any };
    let plan = [files.plan(put).unwrap()];
    assert_eq!(*seen.lock().unwrap(), [(Act::SyncFile, 0o640)], "the rights are durable with the plan");
    // Closed further after the plan.
    chmod(&path, 0o600);
    applied(apply(&files, &job, &plan));
    assert_eq!(seen.lock().unwrap().last(), Some(&(Act::Replace, 0o600)));
    assert_eq!(mode(&path), 0o600);
}
