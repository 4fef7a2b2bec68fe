//! What is noted of a target before anything is decided, and what is refused.

use jobq::effects::{Content, Expect, FileEffect, Sight, Staged};
use jobq::store::{EffectOp, Precondition};

use super::world::{World, lease, put, remove, set_mtime, sha};

fn expecting(effect: FileEffect, expect: Expect) -> FileEffect {
    match effect {
        FileEffect::Put { path, content, .. } => FileEffect::Put { path, content, expect },
        FileEffect::Remove { path, .. } => FileEffect::Remove { path, expect },
    }
}

#[test]
fn looking_tells_content_size_and_appearance() {
    let world = World::new();
    let files = world.files();
    assert_eq!(files.look("a/f").unwrap(), Sight::Absent);
    assert_eq!(files.read("a/f", 100).unwrap(), None);
    let path = world.old("a/f", "hello");
    let Sight::File { sha256, size, observed } = files.look("./a//f").unwrap() else { panic!("it is there") };
    assert_eq!((sha256, size), (sha("hello"), 5));
    let observed: serde_json::Value = serde_json::from_str(&observed).unwrap();
    let stamp = super::world::stamp_of(&path);
    assert_eq!(
        (&observed["size"], &observed["mtime"], &observed["inode"]),
        (&5.into(), &stamp.mtime.into(), &stamp.inode.into())
    );
    assert!(observed["ctime"].is_i64());
    assert_eq!(files.read("a/f", 5).unwrap().as_deref(), Some(b"hello".as_slice()));
    let error = files.read("a/f", 4).unwrap_err();
    assert!(error.is_permanent() && error.message().contains("a/f: is larger than 4 bytes"), "{error}");
}

#[test]
fn anything_becomes_what_is_there() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    let plan = files.plan(put(&files, &job, 0, "./a//new", "x")).unwrap();
    assert_eq!((plan.path.as_str(), plan.precondition, plan.observed), ("a/new", Precondition::Absent, None));
    let stage = Some("owner-1/j.1.0".to_owned());
    assert_eq!(plan.op, EffectOp::Put { sha256: sha("x"), size: 1, stage });
    world.old("f", "old");
    let plan = files.plan(remove("f")).unwrap();
    assert_eq!((plan.op, plan.precondition), (EffectOp::Remove, Precondition::Sha256(sha("old"))));
    assert!(plan.observed.is_some());
}

/// A change within one tick of the clock leaves the same times; a file that was
/// written a moment ago is therefore hashed again when the effect is applied.
#[test]
fn a_file_written_a_moment_ago_proves_nothing_by_its_times() {
    let world = World::new();
    let files = world.files();
    world.write("f", "old");
    let Sight::File { observed, .. } = files.look("f").unwrap() else { panic!("it is there") };
    assert!(observed.contains("\"young\":true"), "{observed}");
    std::thread::sleep(std::time::Duration::from_millis(30));
    let Sight::File { observed, .. } = files.look("f").unwrap() else { panic!("it is there") };
    assert!(!observed.contains("young"), "{observed}");
}

/// … but a large one is worth waiting a moment for.
#[test]
fn a_large_file_is_given_a_moment() {
    let world = World::new();
    let files = world.files();
    world.write("f", &"x".repeat(2 << 20));
    let Sight::File { observed, .. } = files.look("f").unwrap() else { panic!("it is there") };
    assert!(!observed.contains("young"), "{observed}");
}

#[test]
fn expectations_are_checked_before_anything_is_decided() {
    let world = World::new();
    let files = world.files();
    world.old("f", "old");
    let new = || {
        let staged = files.stage_bytes(&lease(&ulid::Ulid::generate().to_string()), 0, b"new").unwrap();
        FileEffect::Put { path: "f".into(), content: Content::Staged(staged), expect: Expect::Any }
    };
    files.plan(expecting(new(), Expect::Sha256(sha("old")))).unwrap();
    files.plan(expecting(remove("f"), Expect::Sha256(sha("old")))).unwrap();
    files.plan(expecting(remove("gone"), Expect::Absent)).unwrap();

    let error = files.plan(expecting(new(), Expect::Absent)).unwrap_err();
    assert!(error.is_conflict() && error.is_permanent(), "{error}");
    assert!(error.message().contains(&sha("old")), "{error}");
    let error = files.plan(expecting(new(), Expect::Sha256(sha("other")))).unwrap_err();
    assert!(error.is_conflict() && !error.is_permanent(), "who read it may read it again: {error}");
    assert!(error.message().contains(&sha("old")) && error.message().contains(&sha("other")), "{error}");
    assert_eq!(jobq::Error::from(error).kind(), jobq::ErrorKind::Conflict);
    let error = files.plan(expecting(remove("f"), Expect::Sha256(sha("other")))).unwrap_err();
    assert!(error.is_conflict() && error.message().starts_with("f: "), "{error}");
}

#[test]
fn what_is_wanted_is_as_good_as_what_was_expected() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    world.old("f", "new");
    let effect = expecting(put(&files, &job, 0, "f", "new"), Expect::Absent);
    assert_eq!(files.plan(effect).unwrap().precondition, Precondition::Sha256(sha("new")));
    let effect = expecting(remove("gone"), Expect::Sha256(sha("old")));
    assert_eq!(files.plan(effect).unwrap().precondition, Precondition::Absent);
}

#[test]
fn content_that_is_not_in_place_any_more_is_noticed() {
    let world = World::new();
    let files = world.files();
    let in_place = || FileEffect::Put {
        path: "f".into(),
        content: Content::InPlace { sha256: sha("was here"), size: 8 },
        expect: Expect::Any,
    };
    for change in [None, Some("changed")] {
        if let Some(content) = change {
            world.old("f", content);
        }
        let error = files.plan(in_place()).unwrap_err();
        assert!(error.is_conflict() && !error.is_permanent(), "{error}");
    }
}

#[test]
fn a_staged_file_that_is_gone_or_damaged_cannot_be_planned() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    let staged = files.stage_bytes(&job, 0, b"new").unwrap();
    let effect = |staged: &Staged| FileEffect::Put {
        path: "f".into(),
        content: Content::Staged(staged.clone()),
        expect: Expect::Any,
    };
    files.plan(effect(&staged)).unwrap();
    let wrong = Staged { size: 4, ..staged.clone() };
    assert!(files.plan(effect(&wrong)).unwrap_err().message().contains("owner-1/j.1.0"));
    std::fs::remove_file(world.state().join("stage/owner-1/j.1.0")).unwrap();
    let error = files.plan(effect(&staged)).unwrap_err();
    assert!(!error.is_permanent() && error.message().contains("stage it anew"), "{error}");
}

#[test]
fn effects_of_one_job_must_not_be_in_each_others_way() {
    let world = World::new();
    let (files, job) = (world.files(), lease("j"));
    let twice = vec![put(&files, &job, 0, "a", "1"), put(&files, &job, 1, "./a", "2")];
    let error = files.plan_all(twice).unwrap_err();
    assert!(error.is_permanent() && error.message().starts_with("a: "), "{error}");
    let nested = vec![put(&files, &job, 2, "b/c/d", "1"), put(&files, &job, 3, "b", "2")];
    let error = files.plan_all(nested).unwrap_err();
    assert!(error.is_permanent() && error.message().contains("b/c/d: the same job has an effect on b"), "{error}");
}

#[test]
fn a_file_that_never_stands_still_is_not_hashed_for_ever() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let world = World::new();
    let files = world.files();
    let path = world.write("f", &"x".repeat(4 << 20));
    let stop = AtomicBool::new(false);
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut seconds = 0;
            while !stop.load(Ordering::SeqCst) {
                seconds += 1;
                set_mtime(&path, std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds));
            }
        });
        // The other thread may be slow to start; then the file stands still after all.
        let error = (0..1_000).find_map(|_| files.look("f").err());
        stop.store(true, Ordering::SeqCst);
        error.unwrap()
    });
    assert!(!error.is_permanent() && error.message().contains("another program is writing it"), "{error}");
}
