//! Somebody swaps folders and files as fast as possible while effects are
//! planned and applied.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use jobq::effects::{Content, Expect, FileEffect, Sight};
use jobq::store::{Applier as _, ApplyReport};
use rustix::fs::{CWD, RenameFlags};

use super::world::{World, claim, listing, remove};

/// Stops the others when a thread is done, or has failed.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn exchange(one: &Path, other: &Path) {
    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

#[test]
fn a_folder_that_is_swapped_for_a_link_outside_never_leads_there() {
    let world = World::new();
    let files = world.files();
    world.write("a/folder/f.txt", "ours");
    world.write("spare/x", "");
    fs::remove_file(world.path("spare/x")).unwrap();
    symlink(world.outside(), world.path("link")).unwrap();
    symlink(world.outside().join("folder"), world.path("link2")).unwrap();
    let outside = listing(&world.outside());
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut applies, mut done, mut refused) = (0_u64, 0_u64, 0_u64);
    thread::scope(|scope| {
        for (folder, link) in [("a", "link"), ("spare", "link2")] {
            let (world, stop, swaps) = (&world, &stop, &swaps);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    exchange(&world.path(folder), &world.path(link));
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _stop = Stop(&stop);
        let start = Instant::now();
        // Five seconds, and longer on a machine that has other things to do.
        let enough = |swaps: u64, applies, done, refused| swaps > 500 && applies > 500 && done > 50 && refused > 50;
        while start.elapsed() < Duration::from_secs(5) || !enough(swaps.load(Ordering::Relaxed), applies, done, refused)
        {
            assert!(start.elapsed() < Duration::from_secs(120), "{applies} {done} {refused}");
            let job = claim(&format!("j{applies}"), 1);
            let mut plan = Vec::new();
            let targets = ["a/folder/f.txt", "a/folder/new/f.txt", "a/secret.txt", "spare/f.txt", "spare/inner.txt"];
            for (number, path) in targets.into_iter().enumerate() {
                let staged = files.stage_bytes(&job, number, format!("{applies}").as_bytes()).unwrap();
                let content = Content::Staged(staged);
                match files.plan(FileEffect::Put { path: path.into(), content, expect: Expect::Any }) {
                    Ok(effect) => plan.push(effect),
                    Err(error) => {
                        refused += 1;
                        assert!(error.message().contains(path), "{error}");
                    }
                }
            }
            if applies % 3 == 2 {
                plan.extend(files.plan(remove("a/folder/inner.txt")));
                plan.extend(files.plan(remove("spare/f.txt")));
            }
            for effect in plan {
                match files.apply(&job, &[effect], applies % 7 == 6) {
                    ApplyReport::Applied(_) => done += 1,
                    ApplyReport::Conflict { .. } | ApplyReport::Deferred { .. } => refused += 1,
                }
                applies += 1;
            }
            files.sync().unwrap();
            files.discard(&job);
        }
    });
    let swaps = swaps.into_inner();
    println!("{swaps} swaps during {applies} applies; {done} came to pass, {refused} were refused");
    assert_eq!(listing(&world.outside()), outside, "something outside changed");
}

/// A FIFO that takes a file's place must not make anybody wait for its other end.
#[test]
fn a_fifo_that_takes_a_files_place_blocks_nobody() {
    let world = World::new();
    let files = world.files();
    world.write("f", "x");
    assert!(Command::new("mkfifo").arg(world.path("pipe")).status().unwrap().success());
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut seen, mut refused) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                exchange(&world.path("f"), &world.path("pipe"));
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let _stop = Stop(&stop);
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(1) {
            match files.look("f") {
                Ok(Sight::File { size: 1, .. }) => seen += 1,
                Ok(other) => panic!("{other:?}"),
                Err(error) => {
                    refused += 1;
                    let why = error.message();
                    // A rename touches the file's times, as a write would.
                    assert!(why.contains("f: is a FIFO") || why.contains("another program is writing it"), "{why}");
                }
            }
        }
    });
    println!("{} swaps; seen {seen} times, refused {refused} times", swaps.into_inner());
    assert!(seen > 100 && refused > 100, "{seen} {refused}");
}

/// Many processes' worth of threads on one path: the last word is one of theirs,
/// whole, and whoever was told of success had it.
#[test]
fn threads_that_create_the_same_file_do_not_overwrite_each_other() {
    let world = World::new();
    let files = world.files();
    for round in 0..50 {
        let path = format!("r{round}/f");
        let winners: Vec<String> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|n| {
                    let (files, path) = (&files, &path);
                    scope.spawn(move || {
                        let job = claim(&format!("r{round}-{n}"), 1);
                        let content = Content::Staged(files.stage_bytes(&job, 0, job.id.as_bytes()).unwrap());
                        let effect = FileEffect::Put { path: path.clone(), content, expect: Expect::Absent };
                        let plan = files.plan(effect).ok()?;
                        matches!(files.apply(&job, &[plan], false), ApplyReport::Applied(_)).then_some(job.id)
                    })
                })
                .collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(winners.len(), 1, "{winners:?}");
        assert_eq!(world.content(&path).as_ref(), Some(&winners[0]));
    }
}
