//! Several who come after a crash at once, and one after the other.

use std::process::Stdio;

use super::alive::{Stopped, until};
use super::child::{Child, Deed};
use super::strace;
use super::world::{ID, Tree, World, after, events, jobs, tree};
use crate::support::contents;

/// A commit was accepted and its process died before it was applied.
fn crashed() -> World {
    let example = World::new();
    let calls = strace::census(&example.committer("commit"), &example.root(), &example.outside("log"));
    let rename = calls.iter().find(|call| call.name.starts_with("rename")).unwrap();
    let world = World::new();
    strace::killed_at(&world.committer("commit"), rename, &world.root(), &world.outside("log"));
    world
}

#[test]
fn one_who_stops_anywhere_between_transactions_and_another_apply_it_once() {
    if !strace::is_there() {
        return;
    }
    let example = crashed();
    let calls = strace::census(&example.opener(), &example.root(), &example.outside("log"));
    let told: Vec<_> = calls.iter().filter(|call| call.line.contains(".jobq/wake")).collect();
    // At least: freed from the dead, taken over, applied.
    assert!(told.len() >= 3, "{calls:#?}");
    for call in told {
        let world = crashed();
        let first = Stopped::behind(&world.opener(), call, &world.outside("stopped"));
        let second = world.opener().output().unwrap();
        assert!(second.status.success(), "{second:?}");
        first.go_on();
        assert_eq!(world.tree(), after());
        world.applied_once(ID);
        assert!(world.all_or_nothing());
    }
}

#[test]
fn two_at_once_apply_each_of_many_once() {
    if !strace::is_there() {
        return;
    }
    let world = World::new();
    let names: Vec<String> = (0..8).map(|n| format!("many/{n}.json")).collect();
    for name in &names {
        // They do not look after each other, so all of them are there at once.
        Child::new(&world, &Deed::CommitAlone(name.clone())).killed_at_first_rename();
    }
    let mut openers: Vec<_> =
        (0..2).map(|_| world.opener().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()).collect();
    for opener in &mut openers {
        assert!(opener.wait().unwrap().success());
    }
    let mut expected: Tree = super::world::before();
    expected.extend(tree(&[("many/", "")]));
    expected.extend(names.iter().map(|name| (name.clone(), format!("\"{name}\"\n"))));
    assert_eq!(world.tree(), expected);
    assert_eq!(world.litter(), Vec::<String>::new());
    let queue = world.open();
    let jobs = jobs(&queue);
    assert_eq!(jobs.len(), names.len());
    for job in jobs {
        assert!(job.blocked.is_none(), "{job:?}");
        let commit = job.correlation_id.unwrap();
        world.applied_once(&commit);
        // Freed from the dead and taken over; nobody had to put it off.
        assert!(!events(&queue, &commit).contains(&"rescheduled".to_owned()));
    }
}

#[test]
fn a_worker_that_is_there_finishes_what_a_committer_leaves() {
    if !strace::is_there() {
        return;
    }
    let world = World::new();
    let mut worker = world.jobq(&["worker", "--poll-interval", "100ms"]);
    let worker = Running(worker.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    until("the worker is there", || !world.litter().is_empty());
    Child::new(&world, &Deed::CommitAlone("data/left.json".to_owned())).killed_at_first_rename();
    let mut expected: Tree = super::world::before();
    expected.extend(tree(&[
        ("data/left.json", "\"data/left.json\"\n"),
        ("out/", ""),
        ("out/data/", ""),
        ("out/data/left.json", ""),
    ]));
    until("the worker has applied it and run its job", || world.tree() == expected);
    drop(worker);
}

/// Ended with the test, whatever becomes of it.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_second_recovery_changes_nothing() {
    if !strace::is_there() {
        return;
    }
    let world = crashed();
    assert!(world.opener().output().unwrap().status.success());
    let once = (world.tree(), contents(&world.sql()));
    for _ in 0..2 {
        assert!(world.opener().output().unwrap().status.success());
        assert_eq!(world.open().roll_forward().unwrap(), 0);
    }
    assert_eq!((world.tree(), contents(&world.sql())), once);
    assert!(world.all_or_nothing());
}
