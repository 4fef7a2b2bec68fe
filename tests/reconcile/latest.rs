//! Only the latest applied effect of a path counts.

use jobq::{Actual, Finding, PruneRequest, ReconcileOptions, sha256_hex};

use super::world::{World, put, remove};

#[test]
fn a_disk_as_jobs_left_it_agrees() {
    let world = World::new();
    world.done(put("a", "1"));
    world.done(put("deep/er/b", "2"));
    world.done(put("gone", "3"));
    world.done(remove("gone"));
    world.queue.commit(|tx| tx.write("c", "4").and_then(|()| tx.remove("a"))).unwrap();
    for deep in [false, true] {
        let (found, sums) = world.reconcile(&ReconcileOptions { deep, ..ReconcileOptions::default() });
        assert!(found.is_empty(), "{found:?}");
        assert_eq!((sums.checked, sums.ok, sums.superseded), (4, 4, 2));
    }
}

#[test]
fn created_deleted_and_created_again_counts_as_created() {
    let world = World::new();
    let jobs = [put("x", "1").into(), remove("x").into(), put("x", "2").into()];
    let ids = jobs.map(|job: jobq::NewJob| world.done(job));
    assert!(world.findings(true).is_empty());
    std::fs::write(world.path("x"), "1").unwrap();
    let (found, sums) = world.reconcile(&ReconcileOptions::default());
    assert_eq!((found[0].finding, sums.superseded), (Finding::Changed, 2));
    assert_eq!(found[0].job_id, ids[2]);
    assert_eq!(found[0].expected.as_deref(), Some(&*sha256_hex(b"2")));
    assert_eq!(found[0].actual, Actual::Content(sha256_hex(b"1")), "what an earlier job left is not in order");
    world.done(remove("x"));
    assert!(world.findings(true).is_empty());
    std::fs::write(world.path("x"), "2").unwrap();
    assert_eq!(world.findings(false)["x"], Finding::Present);
}

#[test]
fn paths_and_types_can_be_chosen() {
    let world = World::new();
    world.done(put("a/x", "1"));
    world.done(put("b/x", "1"));
    world.queue.commit(|tx| tx.write("c/x", "1")).unwrap();
    for path in ["a/x", "b/x", "c/x"] {
        std::fs::remove_file(world.path(path)).unwrap();
    }
    let paths = |options: ReconcileOptions| {
        let (found, sums) = world.reconcile(&options);
        assert_eq!(found.len() as u64, sums.checked);
        found.into_iter().map(|difference| difference.path).collect::<Vec<_>>()
    };
    let of_type = |name: &str| ReconcileOptions { job_type: Some(name.into()), ..ReconcileOptions::default() };
    assert_eq!(paths(of_type("create_file")), ["a/x", "b/x"]);
    assert_eq!(paths(of_type("write_files")), ["c/x"]);
    assert_eq!(paths(of_type("other")), [""; 0]);
    let in_b = ReconcileOptions {
        paths: Some(std::sync::Arc::new(|path: &str| path.starts_with("b/"))),
        ..ReconcileOptions::default()
    };
    assert_eq!(paths(in_b), ["b/x"]);
}

/// More paths than fit in a page, and more threads than one.
#[test]
fn many_paths_are_compared_in_order() {
    let world = World::new();
    for part in 0..5 {
        world
            .queue
            .commit(|tx| (0..1_000).try_for_each(|n| tx.write(&format!("{}/{n}", n % 7), format!("{part} {n}"))))
            .unwrap();
    }
    assert!(world.findings(false).is_empty() && world.findings(true).is_empty());
    for n in (0..1_000).step_by(10) {
        std::fs::write(world.path(&format!("{}/{n}", n % 7)), "other").unwrap();
    }
    for deep in [false, true] {
        let findings = world.findings(deep);
        assert_eq!(findings.len(), 100);
        assert!(findings.values().all(|finding| *finding == Finding::Changed));
    }
}

#[test]
fn a_caller_that_has_seen_enough_can_stop() {
    let world = World::new();
    world.queue.commit(|tx| (0..50).try_for_each(|n| tx.write(&format!("{n}"), "x"))).unwrap();
    for n in 0..50 {
        std::fs::remove_file(world.path(&format!("{n}"))).unwrap();
    }
    let mut seen = 0;
    let stop = |difference: Option<&jobq::Difference>, _: &_| {
        seen += usize::from(difference.is_some());
        seen < 3
    };
    world.queue.reconcile(&ReconcileOptions::default(), stop).unwrap();
    assert_eq!(seen, 3);
}

#[test]
fn what_was_pruned_is_still_expected_unless_it_is_forgotten() {
    let world = World::new();
    world.done(put("kept", "1"));
    world.done(put("gone", "1"));
    world.done(remove("gone"));
    let all = |forget| PruneRequest { job_type: None, ended_before: i64::MAX, failed: true, forget };
    world.queue.prune(all(false)).unwrap();
    std::fs::remove_file(world.path("kept")).unwrap();
    std::fs::write(world.path("gone"), "again").unwrap();
    let findings = world.findings(false);
    assert_eq!((findings["kept"], findings["gone"]), (Finding::Missing, Finding::Present));
    world.done(put("other", "1"));
    world.queue.prune(all(true)).unwrap();
    assert_eq!(world.findings(false).len(), 2, "what is gone already is not forgotten with others");
}

/// A folder that jobs made for their files is no drift where a file of its name
/// was removed before, also when they have gone again; one that somebody else made is.
#[test]
fn a_folder_that_jobs_made_in_the_place_of_a_removed_file_is_in_order() {
    let world = World::new();
    for path in ["a", "a+b", "other"] {
        world.done(put(path, "1"));
        world.done(remove(path));
    }
    world.done(put("a/b/c", "1"));
    assert!(world.findings(true).is_empty());
    world.done(remove("a/b/c"));
    assert!(world.path("a").is_dir());
    let all = PruneRequest { job_type: None, ended_before: i64::MAX, failed: false, forget: false };
    world.queue.prune(all).unwrap();
    assert!(world.findings(false).is_empty());
    std::fs::create_dir(world.path("other")).unwrap();
    std::fs::create_dir(world.path("a+b")).unwrap();
    let findings = world.findings(false);
    assert_eq!((findings.len(), findings["other"], findings["a+b"]), (2, Finding::Present, Finding::Present));
}

/// A reader needs nothing in the state folder, and leaves nothing there.
#[test]
fn who_only_looks_makes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let queue = jobq::QueueOptions::at(folder.path().join("app.db")).create(true).open().unwrap();
    let files = || std::fs::read_dir(queue.state_folder()).unwrap().count();
    assert_eq!(files(), 0);
    let compared = || queue.reconcile(&ReconcileOptions::default(), |_, _| true).unwrap().checked;
    assert_eq!(compared(), 0);
    assert!(queue.read_json::<u32>("numbers.json").unwrap().value.is_none());
    jobq::DiskWatch::start(&queue, ReconcileOptions::default(), std::time::Duration::ZERO).unwrap();
    assert_eq!(files(), 0);
    queue.commit(|tx| tx.write_json("numbers.json", &7)).unwrap();
    assert!(files() > 0);
    assert_eq!((compared(), queue.read_json("numbers.json").unwrap().value), (1, Some(7)));
}
