//! Looking changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use jobq::Queue;
use jobq::doctor::{Doctor, Verdict};
use jobq::liveness::OwnerLock;

use super::jobs::accepted_and_not_applied;
use super::world::{Findings, World, mounted};
use crate::support::note;

type Files = BTreeMap<PathBuf, (Vec<u8>, SystemTime)>;

/// Every file below a folder, and the folders. Nobody has the database open now.
fn files(folder: &Path) -> Files {
    let mut found = Files::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            found.extend(files(&path));
            found.insert(path, (Vec::new(), SystemTime::UNIX_EPOCH));
        } else {
            found.insert(path.clone(), (std::fs::read(&path).unwrap(), meta.modified().unwrap()));
        }
    }
    found
}

#[test]
fn neither_files_nor_rows_change_whatever_is_found() {
    let world = World::new();
    accepted_and_not_applied(&world);
    world.queue().enqueue(note("a")).unwrap();
    world.let_go(OwnerLock::acquire(&world.state().join("owners")).unwrap());
    std::fs::create_dir_all(world.state().join("stage/gone-1-abc")).unwrap();
    std::fs::write(world.state().join("stage/gone-1-abc/01J.1.0"), "x").unwrap();
    world.sql().execute("INSERT INTO jobs (id, type, payload) VALUES ('new', 'note', '{\"text\":\"b\"}')", []).unwrap();
    world.close();
    let before = files(world.root());
    assert!(!before.keys().any(|path| path.ends_with("jobq.db-wal")), "it is closed");
    for findings in [world.examine(), world.examine_deeply()] {
        assert_eq!(findings.troubles(), ["decided", "stage"]);
        assert!(files(world.root()) == before, "{:?}", files(world.root()).keys());
    }
}

#[test]
fn a_log_that_a_crash_has_left_stays_as_it_is_and_is_read() {
    let world = World::new();
    let queue = world.queue();
    let id = queue.enqueue(note("in the log")).unwrap().id;
    world.sql().execute("UPDATE jobs SET payload_hash = 'x'", []).unwrap();
    // What a crash leaves: the file and its log, without the index of the log.
    let left = world.root().join("left");
    std::fs::create_dir_all(left.join(".jobq")).unwrap();
    for name in ["jobq.db", "jobq.db-wal"] {
        // By another process: closing the file in this one would drop SQLite's locks.
        let copied = Command::new("cp").arg(world.state().join(name)).arg(left.join(".jobq")).status().unwrap();
        assert!(copied.success());
    }
    drop(queue);
    let before = files(&left);
    assert!(before[&left.join(".jobq/jobq.db-wal")].0.len() > 4096);
    Findings::of(&Doctor::in_folder(&left).deep(true)).says("payloads", Verdict::Bad, &[&id]);
    let mut after = files(&left);
    after.remove(&left.join(".jobq/jobq.db-shm"));
    assert!(after == before, "{:?}", after.keys());
}

#[test]
fn a_read_only_filesystem_can_be_looked_at() {
    let world = World::new();
    let disk = world.root().join("disk, 100% read?only#");
    let Some(mounted) = mounted(&disk, "size=512m") else { return };
    let queue = Queue::init(&disk).unwrap();
    queue.enqueue(note("a")).unwrap();
    drop(queue);
    let conn = crate::support::raw(&disk.join(".jobq/jobq.db"));
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(conn);
    mounted.make_read_only();
    let findings = Findings::of(&Doctor::in_folder(&disk).deep(true));
    findings.only("database", Verdict::Warn, &["not written", "mounted"]);
    findings.says("integrity", Verdict::Ok, &[]);
    findings.says("payloads", Verdict::Ok, &[]);
}
