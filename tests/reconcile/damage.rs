//! Random histories, random damage: what is found is what was done, exactly.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;

use jobq::Finding;
use jobq::handlers::CreateFile;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps};

use super::world::{World, put, remove};

const PATHS: usize = 2_000;

/// Queues a random history for each path and returns what each should end as.
fn histories(world: &World, random: &mut fastrand::Rng) -> BTreeMap<String, Option<String>> {
    let mut ends = BTreeMap::new();
    let mut jobs: Vec<jobq::NewJob> = Vec::new();
    for number in 0..PATHS {
        let path = format!("{}/{}/f{number}.txt", number % 11, number % 3);
        for step in 0..random.usize(1..4) {
            let content = "x".repeat(random.usize(1..50)) + &format!("{number} {step}");
            let end = (!random.u8(..).is_multiple_of(4)).then_some(content);
            match &end {
                Some(content) => jobs.push(CreateFile { overwrite: true, ..CreateFile::text(&path, content) }.into()),
                None => jobs.push(remove(&path).into()),
            }
            ends.insert(path.clone(), end);
        }
    }
    world.queue.enqueue_many(jobs).unwrap();
    world.drain();
    ends
}

/// Damages a file that should be there; returns what has to be found, by the
/// fast look and by the deep one.
fn damage(path: &Path, kind: usize) -> (Option<Finding>, Option<Finding>) {
    let both = |finding| (Some(finding), Some(finding));
    let content = std::fs::read(path).unwrap();
    let times = std::fs::metadata(path).unwrap();
    match kind {
        0 => {
            std::fs::remove_file(path).unwrap();
            both(Finding::Missing)
        }
        1 => {
            std::fs::File::options().write(true).open(path).unwrap().set_len(content.len() as u64 / 2).unwrap();
            both(Finding::Changed)
        }
        2 => {
            std::fs::write(path, flipped(&content)).unwrap();
            both(Finding::Changed)
        }
        // The same size, time and inode: only the content tells.
        3 => {
            std::fs::write(path, flipped(&content)).unwrap();
            set_mtime(path, &times);
            (None, Some(Finding::Changed))
        }
        4 => {
            std::fs::remove_file(path).unwrap();
            std::fs::create_dir(path).unwrap();
            both(Finding::NotAFile)
        }
        5 => {
            std::fs::remove_file(path).unwrap();
            symlink("/etc/hostname", path).unwrap();
            both(Finding::NotAFile)
        }
        // Touched, and copied: the content is what it should be.
        6 => {
            std::fs::write(path, &content).unwrap();
            (None, None)
        }
        _ => {
            std::fs::remove_file(path).unwrap();
            std::fs::write(path, &content).unwrap();
            (None, None)
        }
    }
}

fn flipped(content: &[u8]) -> Vec<u8> {
    let mut flipped = content.to_vec();
    flipped[content.len() / 2] ^= 1;
    flipped
}

fn set_mtime(path: &Path, before: &std::fs::Metadata) {
    use std::os::unix::fs::MetadataExt as _;
    let at = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: at(before.atime(), before.atime_nsec()),
        last_modification: at(before.mtime(), before.mtime_nsec()),
    };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::empty()).unwrap();
}

#[test]
fn findings_equal_the_damage() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let world = World::new();
    let ends = histories(&world, &mut random);
    assert!(world.findings(false).is_empty() && world.findings(true).is_empty());

    let (mut fast, mut deep) = (BTreeMap::new(), BTreeMap::new());
    for (path, end) in &ends {
        if !random.u8(..).is_multiple_of(3) {
            continue;
        }
        let (quick, thorough) = match end {
            Some(_) => damage(&world.path(path), random.usize(..8)),
            None => {
                std::fs::create_dir_all(world.path(path).parent().unwrap()).unwrap();
                std::fs::write(world.path(path), "again").unwrap();
                (Some(Finding::Present), Some(Finding::Present))
            }
        };
        fast.extend(quick.map(|finding| (path.clone(), finding)));
        deep.extend(thorough.map(|finding| (path.clone(), finding)));
    }
    assert!(fast.len() > 100 && deep.len() > fast.len());
    assert_eq!(world.findings(true), deep);
    assert_eq!(world.findings(false), fast, "the fast look misses what kept size, time and inode, and nothing else");
}

#[test]
fn what_is_in_the_way_of_a_path_is_told() {
    let world = World::new();
    for path in ["file/x", "link/x", "gone/x"] {
        world.done(put(path, "1"));
    }
    world.done(put("linked/y", "1"));
    world.done(remove("linked/y"));
    for folder in ["file", "link", "gone"] {
        std::fs::remove_dir_all(world.path(folder)).unwrap();
    }
    std::fs::write(world.path("file"), "in the way").unwrap();
    symlink("linked", world.path("link")).unwrap();
    std::fs::remove_dir(world.path("linked")).unwrap();
    symlink("/etc", world.path("linked")).unwrap();
    let expected = [("file/x", Finding::NotAFile), ("gone/x", Finding::Missing), ("link/x", Finding::NotAFile)];
    assert_eq!(world.findings(true), expected.map(|(path, finding)| (path.to_owned(), finding)).into());
}
