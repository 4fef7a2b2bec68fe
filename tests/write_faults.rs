//! When the disk fails under a write: every caller gets the answer that is
//! true for it, and nothing happens that nobody was told of.
#![allow(unsafe_code, reason = "faults are made where they happen, below SQLite")]

#[path = "write_faults/commit.rs"]
mod commit;
#[path = "write_faults/files.rs"]
mod files;
#[path = "write_faults/group.rs"]
mod group;
#[path = "write_faults/neighbours.rs"]
mod neighbours;
#[path = "write_faults/statement.rs"]
mod statement;
mod support;
#[path = "write_faults/vfs.rs"]
mod vfs;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jobq::{EnqueueOutcome, NewJob, Queue};
use support::{count, queue_at, raw, rows};

/// Faults are global, so the tests of this program take turns.
static TURN: Mutex<()> = Mutex::new(());

struct Bench {
    db: PathBuf,
    _folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Bench {
    fn set_up() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        vfs::install();
        vfs::heal();
        let folder = tempfile::tempdir().unwrap();
        Self { db: folder.path().join("jobq.db"), _folder: folder, _turn: turn }
    }

    fn queue(&self) -> Queue {
        queue_at(&self.db)
    }

    /// What a process that starts later finds: how often this job is there.
    fn rows_of(&self, id: &str) -> i64 {
        count(&raw(&self.db), &format!("SELECT count(*) FROM jobs WHERE id = '{id}'"))
    }

    /// Whatever happened, the database is whole: every job has its first event,
    /// no event or hold is without its job.
    fn assert_whole(&self) {
        let conn = raw(&self.db);
        assert_eq!(rows(&conn, "PRAGMA integrity_check"), [["ok"]]);
        let jobs = rows(&conn, "SELECT id FROM jobs ORDER BY id");
        assert_eq!(rows(&conn, "SELECT job_id FROM job_events WHERE type = 'queued' ORDER BY job_id"), jobs);
        assert_eq!(count(&conn, "SELECT count(*) FROM job_events WHERE job_id NOT IN (SELECT id FROM jobs)"), 0);
        assert_eq!(count(&conn, "SELECT count(*) FROM job_holds WHERE seq NOT IN (SELECT seq FROM jobs)"), 0);
    }
}

/// The id of the n-th job of a test.
fn id(number: usize) -> String {
    format!("01J0000000000000000000{number:04}")
}

fn job(number: usize) -> NewJob {
    NewJob::of(&support::note(&format!("job {number}"))).id(id(number))
}

/// Submitting again with the same id resolves an unknown outcome: afterwards
/// the job is there, once.
fn resubmit(bench: &Bench, queue: &Queue, number: usize) -> EnqueueOutcome {
    let before = bench.rows_of(&id(number));
    let outcome = queue.enqueue(job(number)).unwrap().outcome;
    let expected = if before == 1 { EnqueueOutcome::Existing } else { EnqueueOutcome::Inserted };
    assert_eq!(outcome, expected, "job {number} was there {before} times");
    assert_eq!(bench.rows_of(&id(number)), 1);
    outcome
}
