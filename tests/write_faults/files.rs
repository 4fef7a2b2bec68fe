//! A commit of files whose database fails: whatever the caller is told, it is
//! applied once or not at all, and nothing that was accepted is lost.

use jobq::{Accepted, Queue, Status};
use rusqlite::ffi::{SQLITE_FULL, SQLITE_IOERR_FSYNC};

use super::vfs::{self, Call, Fault};
use super::{Bench, id, job};

fn commit(queue: &Queue, number: usize) -> jobq::Result<Accepted> {
    queue.commit(|tx| {
        tx.id(&id(number))?;
        tx.write("data/a.txt", format!("commit {number}"))?;
        tx.enqueue(job(number + 50))
    })
}

fn fail(bench: &Bench, first: usize, times: usize, code: i32) {
    vfs::arm(&bench.db, Fault { call: Call::SyncLog, first, times, code });
}

fn file(bench: &Bench) -> Option<String> {
    std::fs::read_to_string(bench.db.with_file_name("data/a.txt")).ok()
}

fn staged(bench: &Bench) -> usize {
    let stage = bench.db.with_file_name(".jobq/jobq.db.d/stage");
    let owners = std::fs::read_dir(stage).into_iter().flatten();
    owners.map(|owner| std::fs::read_dir(owner.unwrap().path()).unwrap().count()).sum()
}

/// The one job and the one file of this commit, and nothing besides.
fn assert_applied_once(bench: &Bench, number: usize) {
    assert_eq!(file(bench), Some(format!("commit {number}")));
    assert_eq!((bench.rows_of(&id(number)), bench.rows_of(&id(number + 50))), (1, 1));
    assert_eq!(staged(bench), 0);
    bench.assert_whole();
}

#[test]
fn an_unknown_acceptance_is_found_out_by_the_commit_itself() {
    let bench = Bench::set_up();
    let queue = bench.queue();
    fail(&bench, 1, 1, SQLITE_IOERR_FSYNC);
    let accepted = commit(&queue, 1).unwrap();
    assert_eq!((vfs::fired(), accepted.applied), (1, true));
    assert_applied_once(&bench, 1);
}

#[test]
fn what_stays_unknown_is_told_and_found_out_by_the_same_id() {
    let bench = Bench::set_up();
    let queue = bench.queue();
    fail(&bench, 1, 2, SQLITE_IOERR_FSYNC);
    let error = commit(&queue, 1).unwrap_err();
    assert!(vfs::fired() == 2 && error.is_outcome_unknown(), "{error}");
    assert_eq!(error.id(), Some(&*id(1)));
    assert_eq!((file(&bench), staged(&bench)), (None, 1), "what may have been accepted keeps its content");
    vfs::heal();
    let accepted = commit(&queue, 1).unwrap();
    assert!(accepted.applied, "{accepted:?}");
    // What was staged the first time goes when the next commit shows what is there.
    queue.commit(|tx| tx.write("other.txt", "x")).unwrap();
    assert_applied_once(&bench, 1);
}

#[test]
fn what_could_not_be_applied_for_trouble_with_the_database_is_applied_with_the_next() {
    let bench = Bench::set_up();
    let queue = bench.queue();
    fail(&bench, 2, 2, SQLITE_IOERR_FSYNC);
    let accepted = commit(&queue, 1).unwrap();
    assert!(vfs::fired() == 2 && !accepted.applied && accepted.reason.is_some(), "{accepted:?}");
    assert_eq!(accepted.jobs[0].id, id(51));
    vfs::heal();
    queue.commit(|tx| tx.write("other.txt", "x")).unwrap();
    assert_eq!(queue.get(&id(1)).unwrap().status, Status::Completed);
    assert_applied_once(&bench, 1);
}

/// Nobody else may touch it while this process lives, so it has to be able to.
#[test]
fn what_could_not_be_applied_is_rolled_forward_by_the_process_itself() {
    let bench = Bench::set_up();
    let queue = bench.queue();
    fail(&bench, 2, 2, SQLITE_IOERR_FSYNC);
    assert!(!commit(&queue, 1).unwrap().applied);
    vfs::heal();
    assert_eq!(queue.roll_forward().unwrap(), 1);
    assert_applied_once(&bench, 1);
}

/// One of several that makes a COMMIT fail must not keep the others waiting. Here it is the disk, for a moment, at each
/// COMMIT of a start in turn.
#[test]
fn what_several_have_left_is_done_although_the_commit_of_all_of_it_fails() {
    let mut done_at_once = 0;
    for sync in 1..=4 {
        let bench = Bench::set_up();
        let numbers = [sync * 10 + 1, sync * 10 + 2];
        let path = |number| format!("data/{number}.txt");
        // Two owners, because one would do its first commit with its second.
        let owners = numbers.map(|number| (number, bench.queue()));
        for (number, queue) in &owners {
            fail(&bench, 2, 2, SQLITE_IOERR_FSYNC);
            let accepted = queue.commit(|tx| {
                tx.id(&id(*number))?;
                tx.write(&path(*number), "new")
            });
            assert!(!accepted.unwrap().applied);
            vfs::heal();
        }
        drop(owners);
        fail(&bench, sync, 1, SQLITE_IOERR_FSYNC);
        let queue = bench.queue();
        let is_done = |number| queue.get(&id(number)).unwrap().status == Status::Completed;
        done_at_once += usize::from(vfs::fired() == 1 && numbers.into_iter().all(is_done));
        vfs::heal();
        drop(queue);
        // Whatever had to be put off is done by the next.
        let queue = bench.queue();
        for number in numbers {
            assert_eq!(queue.get(&id(number)).unwrap().status, Status::Completed);
            assert_eq!(std::fs::read_to_string(bench.db.with_file_name(path(number))).unwrap(), "new");
        }
        assert_eq!(staged(&bench), 0);
        bench.assert_whole();
    }
    assert_eq!(done_at_once, 1);
}

/// A COMMIT that failed may come back with a restart, until something else is written.
#[test]
fn what_stays_unknown_keeps_its_content_while_nothing_is_written() {
    let bench = Bench::set_up();
    let queue = bench.queue();
    fail(&bench, 1, 2, SQLITE_IOERR_FSYNC);
    assert!(commit(&queue, 1).unwrap_err().is_outcome_unknown());
    vfs::heal();
    assert_eq!((queue.roll_forward().unwrap(), staged(&bench)), (0, 1));
    queue.commit(|tx| tx.write("other.txt", "x")).unwrap();
    assert_eq!((bench.rows_of(&id(1)), staged(&bench)), (0, 0));
}

#[test]
fn an_apply_that_fails_for_a_moment_is_done_again_at_once() {
    let bench = Bench::set_up();
    let queue = bench.queue();
    fail(&bench, 2, 1, SQLITE_IOERR_FSYNC);
    let accepted = commit(&queue, 1).unwrap();
    assert_eq!((vfs::fired(), accepted.applied, accepted.status), (1, true, Status::Completed));
    assert_applied_once(&bench, 1);
}

#[test]
fn a_full_disk_at_the_acceptance_means_that_nothing_happened() {
    let bench = Bench::set_up();
    let queue = bench.queue();
    fail(&bench, 1, 1, SQLITE_FULL);
    let error = commit(&queue, 1).unwrap_err();
    assert!(vfs::fired() == 1 && error.is_disk_full(), "{error}");
    assert_eq!((file(&bench), staged(&bench), bench.rows_of(&id(1))), (None, 0, 0));
    vfs::heal();
    assert!(commit(&queue, 1).unwrap().applied);
    assert_applied_once(&bench, 1);
}

#[test]
fn a_queue_that_is_closed_in_doubt_leaves_it_to_the_next() {
    let bench = Bench::set_up();
    for (number, times) in [(1, 2), (2, 1)] {
        let queue = bench.queue();
        fail(&bench, 3 - times, times, SQLITE_IOERR_FSYNC);
        let _ = commit(&queue, number);
        assert_eq!(vfs::fired(), times);
        vfs::heal();
        drop(queue);
        let queue = bench.queue();
        commit(&queue, number).unwrap();
        assert_applied_once(&bench, number);
    }
}
