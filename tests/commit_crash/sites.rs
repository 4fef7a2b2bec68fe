//! Killed at every system call that changes a file: while committing, and while
//! bringing to its end what another had accepted.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::strace::{self, Call};
use super::world::{World, after, before};

/// How many are tried at once; most of the time they wait for the disk.
const THREADS: usize = 4;

#[test]
fn a_committer_killed_at_any_call_leaves_all_or_nothing() {
    if !strace::is_there() {
        return;
    }
    let example = World::new();
    let sites = strace::census(&example.committer("commit"), &example.root(), &example.outside("log"));
    assert_eq!(example.tree(), after());
    covers(&sites, &["openat", "write", "fsync", "rename", "unlink", "mkdir", "pwrite64", "ftruncate"]);
    let accepted = at_each(&sites, |site| {
        let world = World::new();
        strace::killed_at(&world.committer("commit"), site, &world.root(), &world.outside("log"));
        world.all_or_nothing()
    });
    both_ways(&accepted);
}

#[test]
fn a_recovery_killed_at_any_call_is_finished_by_the_next() {
    recovery(|call| call.name.starts_with("rename"));
}

#[test]
fn so_is_one_of_a_commit_that_was_half_applied() {
    recovery(|call| call.name.starts_with("unlink") && call.line.contains("gone.json"));
}

/// `died_at`: at the first such call, after acceptance, the committer dies.
fn recovery(died_at: impl Fn(&Call) -> bool) {
    if !strace::is_there() {
        return;
    }
    let example = World::new();
    let calls = strace::census(&example.committer("commit"), &example.root(), &example.outside("log"));
    let end = calls.iter().find(|call| died_at(call)).unwrap();
    let crashed = || {
        let world = World::new();
        strace::killed_at(&world.committer("commit"), end, &world.root(), &world.outside("log"));
        assert_ne!(world.tree(), after());
        assert_ne!(world.litter(), Vec::<String>::new(), "what is staged is still there");
        world
    };
    let example = crashed();
    let sites = strace::census(&example.opener(), &example.root(), &example.outside("log"));
    assert_eq!(example.tree(), after());
    covers(&sites, &["openat", "fsync", "unlink", "pwrite64", "ftruncate"]);
    let accepted = at_each(&sites, |site| {
        let world = crashed();
        strace::killed_at(&world.opener(), site, &world.root(), &world.outside("log"));
        world.all_or_nothing()
    });
    assert!(accepted.iter().all(|accepted| *accepted), "what was accepted stays so");
}

/// Every kind of change is among them, and they are many.
fn covers(sites: &[Call], kinds: &[&str]) {
    assert!(sites.len() >= 30, "only {} sites: {sites:?}", sites.len());
    for kind in kinds {
        assert!(sites.iter().any(|site| site.name.starts_with(kind)), "no {kind} in {sites:?}");
    }
}

/// Some come before the acceptance and some after; never before again.
fn both_ways(accepted: &[bool]) {
    assert!(!accepted[0] && accepted[accepted.len() - 1]);
    assert!(accepted.is_sorted(), "accepted, and then not: {accepted:?}");
    assert_ne!(before(), after());
}

/// Tries each, several at once; fails with all that failed. Returns their answers.
fn at_each(sites: &[Call], attempt: impl Fn(&Call) -> bool + Sync) -> Vec<bool> {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(vec![None; sites.len()]);
    let run = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(site) = sites.get(index) else { return };
            let answer = catch_unwind(AssertUnwindSafe(|| attempt(site)));
            answers.lock().unwrap()[index] = answer.ok();
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(run);
        }
    });
    let answers = answers.into_inner().unwrap();
    let bad: Vec<&Call> =
        sites.iter().zip(&answers).filter(|(_, answer)| answer.is_none()).map(|(site, _)| site).collect();
    assert!(bad.is_empty(), "{} of {} sites failed: {bad:#?}", bad.len(), sites.len());
    // Each of them has fired, or it would not have been answered.
    println!("sites: {}, fired: {}", sites.len(), answers.len());
    answers.into_iter().flatten().collect()
}
