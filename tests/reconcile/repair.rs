//! Putting back what is known: the operator's act.

use jobq::Finding;

use super::world::{World, put, remove};

#[test]
fn what_a_payload_holds_is_put_back_and_what_was_removed_goes_again() {
    let world = World::new();
    world.done(jobq::handlers::CreateFile::text("a", "text"));
    world.done(jobq::handlers::CreateFile::bytes("b", [0, 255]));
    world.done(put("gone", "1"));
    world.done(remove("gone"));
    std::fs::write(world.path("a"), "other").unwrap();
    std::fs::remove_file(world.path("b")).unwrap();
    std::fs::write(world.path("gone"), "again").unwrap();
    let (found, _) = world.reconcile(&jobq::ReconcileOptions::default());
    assert_eq!(found.len(), 3);
    for difference in &found {
        let repair = world.queue.repair(difference).unwrap();
        assert!(repair.job_id.is_some(), "{repair:?}");
    }
    world.drain();
    assert!(world.findings(true).is_empty());
    assert_eq!(std::fs::read(world.path("b")).unwrap(), [0, 255]);
}

#[test]
fn what_is_not_known_or_in_the_way_is_said() {
    let world = World::new();
    world.queue.commit(|tx| tx.write("committed", "1")).unwrap();
    world.done(put("folder", "1"));
    world.done(put("pruned", "1"));
    let all = jobq::PruneRequest { job_type: None, ended_before: i64::MAX, failed: false, forget: false };
    world.queue.prune(all).unwrap();
    world.done(put("busy", "1"));
    for path in ["committed", "folder", "pruned", "busy"] {
        std::fs::remove_file(world.path(path)).unwrap();
    }
    std::fs::create_dir(world.path("folder")).unwrap();
    world.queue.enqueue(put("busy", "2")).unwrap();
    let (found, _) = world.reconcile(&jobq::ReconcileOptions::default());
    let before = world.queue.stats().unwrap().outstanding.len();
    for difference in &found {
        let repair = world.queue.repair(difference).unwrap();
        let named = match (difference.path.as_str(), difference.finding) {
            ("folder", Finding::NotAFile) => "in the way",
            ("busy", _) => "at work",
            _ => "not kept",
        };
        assert!(repair.job_id.is_none() && repair.reason.as_ref().unwrap().contains(named), "{repair:?}");
    }
    assert_eq!((found.len(), world.queue.stats().unwrap().outstanding.len()), (4, before));
}

/// The operator is asked between the comparison and the repair, and may think for
/// a while.
#[test]
fn newer_work_is_never_undone() {
    let world = World::new();
    for path in ["done", "queued", "inserted"] {
        world.done(put(path, "1"));
        std::fs::write(world.path(path), "drifted").unwrap();
    }
    let (found, _) = world.reconcile(&jobq::ReconcileOptions::default());
    assert_eq!(found.len(), 3);
    world.done(put("done", "2"));
    world.queue.enqueue(put("queued", "2")).unwrap();
    let insert = r#"INSERT INTO jobs (id, type, payload)
        VALUES ('01ARZ3NDEKTSV4RRFFQ69G5FAV', 'create_file', '{"path":"inserted","content":"2","overwrite":true}')"#;
    crate::support::raw(world.queue.database()).execute(insert, []).unwrap();
    for difference in &found {
        let repair = world.queue.repair(difference).unwrap();
        assert!(repair.job_id.is_none() && repair.reason.as_ref().unwrap().contains("come after"), "{repair:?}");
    }
    world.drain();
    assert_eq!(["done", "queued", "inserted"].map(|path| std::fs::read(world.path(path)).unwrap()), [b"2", b"2", b"2"]);
}

#[test]
fn what_is_forgotten_is_not_put_back() {
    let world = World::new();
    world.done(put("x", "1"));
    world.done(remove("x"));
    std::fs::write(world.path("x"), "again").unwrap();
    let (found, _) = world.reconcile(&jobq::ReconcileOptions::default());
    crate::support::raw(world.queue.database()).execute("DELETE FROM effects", []).unwrap();
    let repair = world.queue.repair(&found[0]).unwrap();
    assert!(repair.job_id.is_none() && repair.reason.as_ref().unwrap().contains("nothing is known"), "{repair:?}");
}

/// A job that removes a file cannot remove a folder; it would only fail.
#[test]
fn a_folder_where_nothing_should_be_is_left() {
    let world = World::new();
    world.done(put("x", "1"));
    world.done(remove("x"));
    std::fs::create_dir(world.path("x")).unwrap();
    let (found, _) = world.reconcile(&jobq::ReconcileOptions::default());
    assert_eq!((found[0].finding, found[0].actual.as_text()), (Finding::Present, Some("is a folder")));
    let repair = world.queue.repair(&found[0]).unwrap();
    assert!(repair.job_id.is_none() && repair.reason.as_ref().unwrap().contains("in the way"), "{repair:?}");
}
