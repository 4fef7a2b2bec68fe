//! Faults at COMMIT.

use std::time::{Duration, Instant};

use jobq::store::{DeadOwner, Reclaim, Reclaimed, Store as _};
use jobq::{ErrorKind, NewJob, QueueOptions};
use rusqlite::ffi::{SQLITE_FULL, SQLITE_IOERR_FSYNC, SQLITE_IOERR_WRITE};

use super::group::{enqueue, opener, together};
use super::vfs::{self, Call, Fault};
use super::{Bench, id, job, resubmit, support};

const CALLERS: usize = 6;

#[test]
fn a_group_is_one_commit() {
    let bench = Bench::set_up();
    let queue = bench.queue();
    let callers = (0..CALLERS).map(|n| enqueue(&queue, job(n))).collect();
    let answers = together(&bench, &queue, &opener(&queue), callers, || vfs::watch(&bench.db));
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(vfs::calls(Call::SyncLog), 1, "one fsync for all");
}

/// Every kind of trouble after which nobody can say whether the COMMIT is durable.
fn outcome_unknown(call: Call, code: i32) {
    let bench = Bench::set_up();
    let queue = bench.queue();
    let callers = (0..CALLERS).map(|n| enqueue(&queue, job(n))).collect();

    let answers = together(&bench, &queue, &opener(&queue), callers, || {
        vfs::arm(&bench.db, Fault { call, first: 1, times: 1, code });
    });

    assert_eq!(vfs::fired(), 1);
    for (number, answer) in answers.into_iter().enumerate() {
        let error = answer.expect_err("nobody knows");
        assert!(error.is_outcome_unknown(), "{error}");
        assert!(error.to_string().contains(&id(number)), "the way out is named: {error}");
    }
    vfs::watch(&bench.db);
    queue.enqueue(job(99)).expect("the disk works again");
    assert_eq!(vfs::calls(Call::OpenDatabase), 1, "the next call has a fresh connection");
    assert_eq!(bench.rows_of(&id(99)), 1);
    for number in 0..CALLERS {
        resubmit(&bench, &queue, number);
    }
    drop(queue);
    for number in (0..CALLERS).chain([99]) {
        assert_eq!(bench.rows_of(&id(number)), 1, "job {number}, after a restart");
    }
    bench.assert_whole();
}

#[test]
fn a_failed_fsync_at_commit_leaves_the_outcome_unknown() {
    outcome_unknown(Call::SyncLog, SQLITE_IOERR_FSYNC);
}

#[test]
fn a_failed_write_at_commit_leaves_the_outcome_unknown() {
    outcome_unknown(Call::WriteLog, SQLITE_IOERR_WRITE);
}

#[test]
fn a_disk_that_stays_broken_is_reported_to_every_call_until_it_heals() {
    let bench = Bench::set_up();
    let queue = bench.queue();
    queue.enqueue(job(0)).unwrap();
    vfs::arm(&bench.db, Fault { call: Call::SyncLog, first: 1, times: usize::MAX, code: SQLITE_IOERR_FSYNC });
    for number in 1..4 {
        let error = queue.enqueue(job(number)).unwrap_err();
        assert!(error.is_outcome_unknown(), "{error}");
    }
    vfs::heal();
    for number in 1..4 {
        resubmit(&bench, &queue, number);
    }
    drop(queue);
    bench.assert_whole();
}

/// What a failed COMMIT has written is in the log, behind what can be seen, and comes
/// back when the process is gone. Nobody may be told meanwhile that it has nothing:
/// its lock file would go, and the job that comes back be nobody's to judge.
#[test]
fn what_is_said_after_an_unknown_outcome_holds_after_a_restart() {
    let bench = Bench::set_up();
    let queue = bench.queue();
    queue.enqueue(job(0)).unwrap();
    vfs::arm(&bench.db, Fault { call: Call::SyncLog, first: 1, times: usize::MAX, code: SQLITE_IOERR_FSYNC });
    let error = queue.store().claim(support::claim_request(1)).unwrap_err();
    assert!(error.is_outcome_unknown(), "{error}");
    let dead = DeadOwner { locked_by: support::owner("worker").locked_by, started: None };
    let reclaim = Reclaim { dead: vec![dead], lapsed: Vec::new() };
    queue.store().reclaim(reclaim.clone()).expect_err("it cannot be said that there is nothing to take back");

    vfs::heal();
    assert_eq!(queue.store().reclaim(reclaim).unwrap(), Reclaimed::default());
    // What a process finds that starts after this one was killed.
    let later = bench.db.with_file_name("later.db");
    for suffix in ["", "-wal"] {
        let name = |db: &std::path::Path| format!("{}{suffix}", db.display());
        std::fs::copy(name(&bench.db), name(&later)).unwrap();
    }
    assert_eq!(support::rows(&support::raw(&later), "SELECT status FROM jobs"), [["pending"]]);
}

#[test]
fn a_disk_that_is_full_at_commit_refuses_the_whole_group_for_certain() {
    let bench = Bench::set_up();
    let queue = bench.queue();
    // So large that what a commit writes does not go in one call. The fault hits each of them in turn.
    let job = |number| NewJob::of(&support::note(&format!("job {number} {}", "x".repeat(100_000)))).id(id(number));
    let callers = (0..CALLERS).map(|n| enqueue(&queue, job(1_000 + n))).collect();
    together(&bench, &queue, &opener(&queue), callers, || vfs::watch(&bench.db));
    let writes = vfs::calls(Call::WriteLog);
    assert!(writes >= CALLERS, "{writes} writes");

    for first in 1..=writes {
        let numbers = first * 10..first * 10 + CALLERS;
        let callers = numbers.clone().map(|n| enqueue(&queue, job(n))).collect();
        let fault = Fault { call: Call::WriteLog, first, times: usize::MAX, code: SQLITE_FULL };
        let answers = together(&bench, &queue, &opener(&queue), callers, || vfs::arm(&bench.db, fault));
        if vfs::fired() == 0 {
            assert!(first > 1 && answers.iter().all(Result::is_ok), "fewer writes than before: {answers:?}");
            continue;
        }
        for answer in answers {
            let error = answer.expect_err("there is no room");
            assert!(error.is_disk_full(), "write {first}: {error}");
        }
        vfs::heal();
        for number in numbers.clone() {
            assert_eq!(bench.rows_of(&id(number)), 0, "write {first}");
        }
        queue.enqueue(job(numbers.start)).expect("there is room again");
        assert_eq!(bench.rows_of(&id(numbers.start)), 1);
    }
    drop(queue);
    bench.assert_whole();
}

/// The write itself is durable in the log by then.
#[test]
fn a_checkpoint_that_fails_does_not_fail_the_write_that_caused_it() {
    let bench = Bench::set_up();
    let queue = bench.queue();
    let other = support::raw(&bench.db);
    // The log grows beyond the size at which the next commit of jobq checkpoints it.
    other.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    other.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (zeroblob(40000000))").unwrap();
    vfs::arm(&bench.db, Fault { call: Call::WriteDatabase, first: 1, times: usize::MAX, code: SQLITE_FULL });

    queue.enqueue(job(1)).expect("durable in the log");

    assert!(vfs::fired() > 0, "a checkpoint was tried");
    vfs::heal();
    drop((queue, other));
    assert_eq!(bench.rows_of(&id(1)), 1);
    bench.assert_whole();
}

#[test]
fn a_database_that_stays_locked_is_reported_as_busy() {
    let bench = Bench::set_up();
    let patience = Duration::from_millis(200);
    let queue = QueueOptions::at(&bench.db).create(true).types(support::types()).busy_timeout(patience).open().unwrap();
    let other = support::raw(&bench.db);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let started = Instant::now();
    let error = queue.enqueue(job(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(started.elapsed() >= patience, "gave up after {:?}", started.elapsed());

    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(bench.rows_of(&id(1)), 0);
    queue.enqueue(job(1)).expect("the lock is free");
    assert_eq!(bench.rows_of(&id(1)), 1);
}
