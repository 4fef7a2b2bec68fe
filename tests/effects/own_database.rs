//! The queue's database may lie where jobs may go. They may not touch it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use jobq::effects::{Content, Expect, FileEffect, FileError, Files, Sight};
use jobq::handlers::{CreateFile, DeleteFile};
use jobq::store::{Applier as _, EffectOp, Precondition};
use jobq::{QueueOptions, Registry, Shutdown, Status, Worker, WorkerOptions};

use super::world::{World, applied, apply, conflict, forged, lease, listing, plan_puts, remove, sha};

const OWN: &str = "this is jobq's own database, which no job may touch";

fn protecting(world: &World, db: &str) -> (PathBuf, Files) {
    let db = world.write(db, "database");
    let files = world.files().protecting(&db).unwrap();
    (db, files)
}

#[track_caller]
fn refused<T>(path: &str, answer: Result<T, FileError>) {
    let Err(error) = answer else { panic!("{path} was not refused") };
    assert!(error.is_permanent() && error.message() == format!("{path}: {OWN}"), "{error}");
}

/// Tries everything that takes a path.
#[track_caller]
fn out_of_reach(world: &World, files: &Files, path: &str) {
    let job = lease("j");
    let staged = files.stage_bytes(&job, 0, b"attack").unwrap();
    let before = listing(&world.root());
    let put = FileEffect::Put { path: path.into(), content: Content::Staged(staged.clone()), expect: Expect::Any };
    let in_place = Content::InPlace { sha256: sha("database"), size: 8 };
    refused(path, files.look(path));
    refused(path, files.read(path, 100));
    refused(path, files.plan(put));
    refused(path, files.plan(FileEffect::Put { path: path.into(), content: in_place, expect: Expect::Any }));
    refused(path, files.plan(remove(path)));
    let put = EffectOp::Put { sha256: staged.sha256.clone(), size: staged.size, stage: Some(staged.stage.clone()) };
    let same = EffectOp::Put { sha256: sha("database"), size: 8, stage: Some(staged.stage) };
    for op in [put, same, EffectOp::Remove] {
        for precondition in [Precondition::Absent, Precondition::Sha256(sha("database"))] {
            for afresh in [false, true] {
                let effect = forged(path, op.clone(), precondition.clone());
                let (failure, done) = conflict(files.apply(&job, &[effect], afresh));
                assert!(failure.message.contains(OWN) && done.is_empty(), "{}", failure.message);
                files.sync().unwrap();
            }
        }
    }
    assert_eq!(listing(&world.root()), before, "{path} changed something");
    files.discard(&job);
}

#[test]
fn no_job_may_touch_the_database_or_what_sqlite_keeps_beside_it() {
    for folder in ["", "data/app/"] {
        let world = World::new();
        let (_, files) = protecting(&world, &format!("{folder}jobs.db"));
        let names = ["jobs.db", "jobs.db-wal", "jobs.db-shm", "jobs.db-journal", "JOBS.db-Journal"];
        for name in names {
            // There or not: SQLite would take it for its own.
            out_of_reach(&world, &files, &format!("{folder}{name}"));
        }
        // A folder of that name would be in SQLite's way.
        out_of_reach(&world, &files, &format!("{folder}jobs.db-journal/f"));
        out_of_reach(&world, &files, &format!("{folder}jobs.db/f"));
        for name in names {
            fs::write(world.path(&format!("{folder}{name}")), "database").unwrap();
            out_of_reach(&world, &files, &format!("{folder}{name}"));
        }
    }
}

#[test]
fn a_hard_link_to_the_database_is_the_database() {
    let world = World::new();
    let (db, files) = protecting(&world, "jobs.db");
    fs::create_dir(world.path("a")).unwrap();
    fs::hard_link(&db, world.path("a/link")).unwrap();
    out_of_reach(&world, &files, "a/link");
    // SQLite makes its log when it needs one.
    let wal = world.write("jobs.db-wal", "database");
    fs::hard_link(wal, world.path("a/log")).unwrap();
    out_of_reach(&world, &files, "a/log");
}

#[test]
fn a_database_that_is_reached_by_a_link_is_the_file_it_leads_to() {
    let world = World::new();
    world.write("data/real.db", "database");
    std::os::unix::fs::symlink("data/real.db", world.path("jobs.db")).unwrap();
    let files = world.files().protecting(&world.path("jobs.db")).unwrap();
    out_of_reach(&world, &files, "data/real.db");
    out_of_reach(&world, &files, "data/real.db-wal");
    assert!(files.look("jobs.db").unwrap_err().is_permanent());
}

#[test]
fn other_files_beside_the_database_are_files_like_any_other() {
    let world = World::new();
    let (_, files) = protecting(&world, "jobs.db");
    for path in ["jobs.db2", "jobs", "a/jobs.db", "jobs.db-wal2", "xjobs.db"] {
        let job = lease(&path.replace(['/', '.'], "-"));
        applied(apply(&files, &job, &plan_puts(&files, &job, &[(path, "new")])));
        applied(apply(&files, &job, &[files.plan(remove(path)).unwrap()]));
        assert_eq!(files.look(path).unwrap(), Sight::Absent);
    }
    let nowhere = world.files().protecting(&world.path("nowhere.db")).err().unwrap();
    assert!(nowhere.message().contains("nowhere.db"), "{nowhere}");
}

/// Closing any handle of a file takes away all locks the process has on it.
#[test]
fn a_refused_look_leaves_the_locks_of_sqlite_alone() {
    let world = World::new();
    let db = world.path("jobs.db");
    let connection = rusqlite::Connection::open(&db).unwrap();
    connection.execute_batch("CREATE TABLE t (x); BEGIN EXCLUSIVE; INSERT INTO t VALUES (1)").unwrap();
    let inode = format!(":{} ", fs::metadata(&db).unwrap().ino());
    let locks = || fs::read_to_string("/proc/locks").unwrap_or_default().matches(&inode).count();
    let before = locks();
    if before == 0 {
        eprintln!("!!! NOT TESTED, this system does not tell of locks: a look leaves them alone");
        return;
    }
    let files = world.files().protecting(&db).unwrap();
    fs::hard_link(&db, world.path("link")).unwrap();
    refused("jobs.db", files.look("jobs.db"));
    refused("link", files.read("link", 10));
    assert_eq!(locks(), before);
}

#[test]
fn a_job_aimed_at_the_database_fails_and_the_queue_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::builtin();
    let options = QueueOptions::at(folder.path().join("jobs.db")).create(true).types(registry.types());
    let queue = Arc::new(options.open().unwrap());
    let attacks = [
        queue.enqueue(CreateFile { overwrite: true, ..CreateFile::text("jobs.db", "gone") }).unwrap(),
        queue.enqueue(CreateFile::text("jobs.db-journal", "forged")).unwrap(),
        queue.enqueue(DeleteFile::at("jobs.db-wal")).unwrap(),
    ];
    let good = queue.enqueue(CreateFile::text("good.txt", "good")).unwrap();
    let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
    Worker::new(Arc::clone(&queue), registry, options).unwrap().run(&Shutdown::new()).unwrap();
    for attack in attacks {
        let job = queue.get(&attack.id).unwrap();
        assert_eq!((job.status, job.attempts), (Status::Failed, 1));
        assert!(job.last_error.as_deref().unwrap().contains(OWN), "{:?}", job.last_error);
    }
    assert_eq!(queue.get(&good.id).unwrap().status, Status::Completed);
}
