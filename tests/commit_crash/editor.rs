//! Somebody edits a file after a commit was accepted and before it was applied.

use jobq::{Filter, PruneRequest, Queue, Status};
use serde_json::Value;

use super::aftermath::drained;
use super::strace;
use super::world::{ID, JOBS, Tree, World, after, before};

const TEXT: &str = "what the editor wrote";

/// A commit was accepted, its process is dead, and a file is not what it was.
/// Whoever comes next finds that out.
fn edited() -> World {
    let example = World::new();
    let calls = strace::census(&example.committer("commit"), &example.root(), &example.outside("log"));
    // Others are told of the acceptance when it is durable, and nothing is applied yet.
    let told = calls.iter().find(|call| call.line.contains(".jobq/wake")).unwrap();
    let world = World::new();
    strace::killed_at(&world.committer("commit"), told, &world.root(), &world.outside("log"));
    assert_eq!(world.tree(), before());
    std::fs::write(world.root().join("data/there.json"), TEXT).unwrap();
    assert!(world.opener().output().unwrap().status.success(), "whoever opens goes on");
    world
}

fn with_text(mut tree: Tree) -> Tree {
    tree.insert("data/there.json".to_owned(), TEXT.to_owned());
    tree
}

/// The commit has failed, nothing was touched, and its jobs wait and say why.
#[track_caller]
fn stands_in_conflict(world: &World) {
    assert_eq!(world.tree(), with_text(before()));
    let said = world.jobq(&["list"]).output().unwrap();
    let lines: Vec<Value> = said.stdout.split(|byte| *byte == b'\n').flat_map(serde_json::from_slice).collect();
    let find = |id: &str| lines.iter().find(|line| line["id"] == id).unwrap_or_else(|| panic!("{id}: {lines:?}"));
    let commit = find(ID);
    assert_eq!((&commit["type"], &commit["status"]), (&"write_files".into(), &"failed".into()));
    let why = commit["last_error"].as_str().unwrap();
    assert!(why.starts_with("conflict") && why.contains("data/there.json"), "{why}");
    for id in JOBS {
        let job = find(id);
        assert_eq!(job["status"], "pending");
        let blocked = job["blocked"].as_str().unwrap();
        assert!(blocked.contains(ID) && blocked.contains("failed"), "{blocked}");
    }
    assert_eq!(lines.len(), 3);
}

#[test]
fn the_editors_text_stays_until_it_is_accepted() {
    if !strace::is_there() {
        return;
    }
    let world = edited();
    stands_in_conflict(&world);
    assert!(drained(world.open()).is_empty(), "nothing can run");
    stands_in_conflict(&world);

    let again = world.jobq(&["retry", ID]).output().unwrap();
    assert_eq!(again.status.code(), Some(4), "{again:?}");
    assert!(String::from_utf8_lossy(&again.stderr).contains("data/there.json"), "{again:?}");
    stands_in_conflict(&world);

    let submitted = world.committer("commit").output().unwrap();
    assert_eq!(submitted.status.code(), Some(4), "submitted again, it is what it is: {submitted:?}");
    stands_in_conflict(&world);

    let on_top = world.jobq(&["retry", "--accept-disk", ID]).output().unwrap();
    assert!(on_top.status.success(), "{on_top:?}");
    assert_eq!(world.tree(), after());
    assert!(world.all_or_nothing(), "its jobs are free");
}

#[test]
fn cancelling_the_failed_commit_cancels_what_waits_on_it() {
    if !strace::is_there() {
        return;
    }
    let world = edited();
    let said = world.jobq(&["cancel", ID]).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    let queue = world.open();
    for id in JOBS {
        assert_eq!(queue.get(id).unwrap().status, Status::Cancelled);
    }
    assert_eq!(queue.get(ID).unwrap().status, Status::Failed);
    assert!(drained(queue).is_empty());
    assert_eq!(world.tree(), with_text(before()));
}

#[test]
fn prune_deletes_neither_the_failed_commit_nor_what_waits_on_it() {
    if !strace::is_there() {
        return;
    }
    let world = edited();
    let said = world.jobq(&["prune", "--older-than", "0s", "--failed", "--forget"]).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    stands_in_conflict(&world);
    // In whatever millisecond it failed.
    let all = PruneRequest { job_type: None, ended_before: i64::MAX, failed: true, forget: true };
    assert_eq!(world.open().prune(all.clone()).unwrap(), 0);
    stands_in_conflict(&world);
    // What is staged for it was kept too.
    assert!(world.jobq(&["retry", "--accept-disk", ID]).output().unwrap().status.success());
    assert_eq!(world.tree(), after());
    // When nothing waits any more, all of it may go.
    drained(world.open());
    assert_eq!(prune_out(&world.open(), &PruneRequest { forget: false, ..all }), 3);
    assert!(world.open().list(&Filter::default()).unwrap().is_empty());
    assert_eq!(world.litter(), Vec::<String>::new());
}

fn prune_out(queue: &Queue, request: &PruneRequest) -> u64 {
    std::iter::from_fn(|| Some(queue.prune(request.clone()).unwrap()).filter(|pruned| *pruned > 0)).sum()
}
