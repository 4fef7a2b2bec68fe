//! Other processes that hold the database, for real: this test program again.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use jobq::doctor::Verdict;
use jobq::liveness::OwnerLock;
use jobq::store::{ClaimRequest, Store as _};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde::{Deserialize, Serialize};

use super::world::World;
use crate::support::raw;

const SETUP: &str = "JOBQ_DOCTOR_TEST_SETUP";
/// The name of [`the_process_that_a_test_starts`].
const NAME: &str = "doctor::locked::the_process_that_a_test_starts";

/// What a child holds until it is killed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Deed {
    /// The write lock.
    Write,
    /// A snapshot.
    Read,
    /// The whole database.
    Exclusive,
    /// A job.
    Claim,
}

pub struct Child(std::process::Child);

impl Child {
    /// Returns when it holds what it is to hold.
    pub fn start(world: &World, deed: Deed) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(SETUP, serde_json::to_string(&(world.root(), deed)).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line == "holding"), "the child holds {deed:?}");
        Self(child)
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Returns when it stands still.
    pub fn stop(&self) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::STOP).unwrap();
        let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped());
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test by itself. Without the variable it has nothing to do.
#[test]
fn the_process_that_a_test_starts() {
    let Ok(setup) = std::env::var(SETUP) else { return };
    let (root, deed): (std::path::PathBuf, Deed) = serde_json::from_str(&setup).unwrap();
    let conn = raw(&root.join(".jobq/jobq.db"));
    let one = |conn: &Connection, sql: &str| conn.query_row(sql, [], |_| Ok(())).unwrap();
    let mut claimed = None;
    match deed {
        Deed::Write => conn.execute_batch("BEGIN IMMEDIATE").unwrap(),
        Deed::Read => {
            conn.execute_batch("BEGIN").unwrap();
            one(&conn, "SELECT count(*) FROM jobs");
        }
        Deed::Exclusive => {
            one(&conn, "PRAGMA locking_mode = EXCLUSIVE");
            conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        }
        Deed::Claim => {
            let queue =
                jobq::QueueOptions::in_folder(&root).recover(false).types(crate::support::types()).open().unwrap();
            let lock = OwnerLock::acquire(&queue.owners_folder()).unwrap();
            let request = ClaimRequest {
                owner: lock.owner().clone(),
                types: vec!["note".into()],
                limit: 1,
                limits: jobq::store::Limits::new(),
            };
            assert_eq!(queue.store().claim(request).unwrap().len(), 1);
            claimed = Some((queue, lock));
        }
    }
    println!("\nholding");
    // Until the end of standard input, which never comes: the parent kills first.
    let _ = std::io::stdin().lines().count();
    drop(claimed);
}

#[test]
fn a_stopped_process_that_has_the_write_lock_is_named_as_such() {
    let world = World::new();
    let child = Child::start(&world, Deed::Write);
    child.stop();
    let (process, go_on) = (format!("process {}", child.pid()), format!("kill -CONT {}", child.pid()));
    world.examine().only("write_lock", Verdict::Bad, &[&process, "which is stopped", &go_on]);
    drop(child);
    world.examine().says("write_lock", Verdict::Ok, &[]);
}

#[test]
fn a_process_that_keeps_the_write_lock_is_named() {
    let world = World::new();
    let child = Child::start(&world, Deed::Write);
    world.examine().only("write_lock", Verdict::Warn, &[&format!("process {}", child.pid()), NAME]);
}

#[test]
fn a_process_that_lets_nobody_read_is_named() {
    let world = World::new();
    let child = Child::start(&world, Deed::Exclusive);
    world.examine().only("database", Verdict::Bad, &["locked", &format!("process {}", child.pid())]);
}

#[test]
fn a_large_log_is_told_with_who_keeps_it_from_shrinking() {
    let world = World::new();
    let child = Child::start(&world, Deed::Read);
    let conn = world.sql();
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0").unwrap();
    conn.execute_batch("CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(140000000))").unwrap();
    world.examine().only("wal", Verdict::Warn, &["MiB", &format!("process {}", child.pid())]);
    drop(child);
    world.examine().only("wal", Verdict::Warn, &["nobody is seen reading"]);
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    world.examine().says("wal", Verdict::Ok, &[]);
}

/// SQLite lets writers wait in no order: with busy ones, somebody may find the lock
/// taken each time, by another transaction. That is work, and nobody hangs.
#[test]
fn writers_that_take_turns_are_no_trouble() {
    let world = World::new();
    let (taken, begun) = std::sync::mpsc::channel();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let conn = world.sql();
            conn.execute_batch("CREATE TABLE filler (x)").unwrap();
            while !done.load(Ordering::SeqCst) {
                conn.execute_batch("BEGIN IMMEDIATE; INSERT INTO filler VALUES (1)").unwrap();
                let _ = taken.send(());
                // Its work, which is much longer than the moment until the next one.
                std::thread::sleep(std::time::Duration::from_millis(100));
                conn.execute_batch("COMMIT").unwrap();
            }
        });
        begun.recv().unwrap();
        let found = world.examine();
        done.store(true, Ordering::SeqCst);
        found.says("write_lock", Verdict::Ok, &["turn"]);
    });
}
