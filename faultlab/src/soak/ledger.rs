//! What has happened, told outside the database: lines in files that are only
//! ever added to, each by one write. What a killed process has written is there.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use super::Soak;

/// Of the workers, all in one file, so that its order is the order of things.
pub const RAN: &str = "ran";
/// How the line of a handler that has come to its end differs from the one it began with.
pub const ENDED: &str = " ended";
/// Anything that must not happen, by whoever it has happened to.
pub const TROUBLES: &str = "troubles";

/// What a producer has been asked for and has been told.
pub fn of_producer(producer: u32) -> String {
    format!("producer-{producer}")
}

/// There once a producer has its share.
pub fn share_of(producer: u32) -> String {
    format!("share-{producer}")
}

/// There when everybody may end.
pub const ENOUGH: &str = "enough";

pub struct Ledger(File);

impl Ledger {
    pub fn open(soak: &Soak, name: &str) -> Self {
        Self(File::options().create(true).append(true).open(path(soak, name)).unwrap())
    }

    pub fn note(&self, line: &str) {
        (&self.0).write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

pub fn note(soak: &Soak, name: &str, line: &str) {
    Ledger::open(soak, name).note(line);
}

pub fn exists(soak: &Soak, name: &str) -> bool {
    path(soak, name).exists()
}

pub fn read(soak: &Soak, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path(soak, name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn path(soak: &Soak, name: &str) -> PathBuf {
    soak.folder.join(name)
}

/// Where an enqueuer is.
#[derive(Default)]
pub struct Enqueued {
    /// So many of its jobs are acknowledged, from the first on.
    pub acknowledged: u64,
    /// The batch that was asked for last, if nobody knows what became of it.
    pub open: Option<u64>,
}

impl Enqueued {
    pub fn of(soak: &Soak, producer: u32) -> Self {
        let mut enqueued = Self::default();
        for line in read(soak, &of_producer(producer)) {
            let (what, count) = line.split_once(' ').expect("a whole line");
            let count: u64 = count.parse().expect("a number");
            match what {
                "ask" => enqueued.open = Some(count),
                _ => {
                    enqueued.acknowledged += count;
                    enqueued.open = None;
                }
            }
        }
        enqueued
    }
}

/// Where a committer is.
#[derive(Default)]
pub struct Committed {
    /// So many of its commits are acknowledged, from the first on.
    pub acknowledged: u64,
    /// What the next was to set its counter to, if it has been asked for.
    pub open: Option<u64>,
}

impl Committed {
    pub fn of(soak: &Soak, producer: u32) -> Self {
        let mut committed = Self::default();
        for line in read(soak, &of_producer(producer)) {
            match line.strip_prefix("ask ") {
                // One that was refused was asked for again, with another value.
                Some(value) => committed.open = Some(value.parse().expect("a number")),
                None => {
                    committed.acknowledged += 1;
                    committed.open = None;
                }
            }
        }
        committed
    }
}
