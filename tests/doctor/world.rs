//! A queue in a folder of its own, and what the doctor says about it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jobq::clock::{Clock as _, ManualClock, Millis, SystemClock};
use jobq::doctor::{Check, Doctor, Verdict};
use jobq::liveness::OwnerLock;
use jobq::{Queue, QueueOptions};
use rusqlite::Connection;

use crate::support::{raw, types};

/// A queue that nobody has open, so that its files can be damaged.
pub struct World {
    folder: tempfile::TempDir,
}

impl World {
    /// Beside what is built and not in `/tmp`, which is in memory on many machines.
    pub fn new() -> Self {
        let world = Self { folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap() };
        world.queue();
        world.close();
        world
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn state(&self) -> PathBuf {
        self.root().join(".jobq")
    }

    pub fn db(&self) -> PathBuf {
        self.state().join("jobq.db")
    }

    pub fn queue(&self) -> Queue {
        QueueOptions::in_folder(self.root()).create(true).recover(false).types(types()).open().unwrap()
    }

    pub fn sql(&self) -> Connection {
        raw(&self.db())
    }

    /// Everything is in the database file; nothing is beside it. A queue's readers
    /// may be closed a moment after it: that is waited for.
    pub fn close(&self) {
        let start = Instant::now();
        let log = self.state().join("jobq.db-wal");
        loop {
            self.sql().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            if !log.exists() {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "somebody has the database open");
            std::thread::yield_now();
        }
    }

    /// As if its owner had died. Tests beside this one start programs, which have
    /// a copy of the lock until they run: that is waited for.
    pub fn let_go(&self, lock: OwnerLock) {
        let path = self.state().join("owners").join(&lock.owner().lock_file);
        drop(lock);
        let file = std::fs::File::open(path).unwrap();
        file.lock().unwrap();
        file.unlock().unwrap();
    }

    pub fn doctor(&self) -> Doctor {
        Doctor::in_folder(self.root()).types(types())
    }

    pub fn examine(&self) -> Findings {
        Findings::of(&self.doctor())
    }

    pub fn examine_deeply(&self) -> Findings {
        Findings::of(&self.doctor().deep(true))
    }

    /// As it is seen when so much time has passed.
    pub fn examine_after(&self, millis: Millis) -> Findings {
        let clock = ManualClock::at(SystemClock.now() + millis);
        Findings::of(&self.doctor().clock(Arc::new(clock)))
    }
}

/// What was found, by the name of the check.
pub struct Findings {
    checks: BTreeMap<&'static str, Check>,
    pub worst: Verdict,
}

impl Findings {
    pub fn of(doctor: &Doctor) -> Self {
        let mut checks = BTreeMap::new();
        let worst = doctor.examine(|check| {
            let twice = checks.insert(check.check, check);
            assert!(twice.is_none(), "told twice: {twice:?}");
        });
        Self { checks, worst }
    }

    #[track_caller]
    pub fn get(&self, check: &str) -> &Check {
        self.checks.get(check).unwrap_or_else(|| panic!("no check {check} among {:?}", self.checks.keys()))
    }

    pub fn has(&self, check: &str) -> bool {
        self.checks.contains_key(check)
    }

    /// This one came out so, said this, and nothing else is wrong with the queue.
    #[track_caller]
    pub fn only(&self, check: &str, verdict: Verdict, said: &[&str]) {
        self.says(check, verdict, said);
        let others = self.troubles().into_iter().filter(|name| *name != check).collect::<Vec<_>>();
        assert!(others.is_empty(), "{others:?}: {:#?}", self.checks);
    }

    #[track_caller]
    pub fn says(&self, check: &str, verdict: Verdict, said: &[&str]) {
        let found = self.get(check);
        assert_eq!(found.verdict, verdict, "{found:?}");
        assert_eq!(found.advice.is_some(), verdict != Verdict::Ok, "trouble comes with advice: {found:?}");
        let text = format!("{} {}", found.message, found.advice.as_deref().unwrap_or_default());
        for said in said {
            assert!(text.contains(said), "{said}: {found:?}");
        }
    }

    /// Checks that are not in order, except for those that the machine is to blame
    /// for: a build folder in memory, or on a full disk.
    pub fn troubles(&self) -> Vec<&'static str> {
        let machines = |name: &str| {
            ["filesystem", "root_filesystem", "disk_space"].contains(&name) && {
                eprintln!("!!! not tested on this machine: {:?}", self.get(name));
                true
            }
        };
        let troubled = self.checks.values().filter(|check| check.verdict != Verdict::Ok).map(|check| check.check);
        troubled.filter(|name| !machines(name)).collect()
    }
}

/// Needs root; says so loudly when it cannot run.
pub fn mounted(at: &Path, options: &str) -> Option<Mounted> {
    std::fs::create_dir_all(at).unwrap();
    let done = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).output();
    if done.as_ref().is_ok_and(|done| done.status.success()) {
        return Some(Mounted(at.to_owned()));
    }
    crate::skipped::skipped(
        "filesystems that are full or read-only",
        &format!("no tmpfs can be mounted (as root): {done:?}"),
    );
    None
}

pub struct Mounted(PathBuf);

impl Mounted {
    pub fn make_read_only(&self) {
        assert!(Command::new("mount").args(["-o", "remount,ro"]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
