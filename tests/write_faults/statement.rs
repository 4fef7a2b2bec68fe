//! Faults inside an operation, which roll the whole transaction back under the
//! feet of everybody in the group.

use std::sync::OnceLock;

use jobq::store::{CancelOutcome, Completion, Ending, Lease, Store as _};
use jobq::{Attach, ErrorKind, NewJob, Queue, QueueOptions};
use rusqlite::ffi::{SQLITE_FULL, SQLITE_IOERR_READ, SQLITE_IOERR_WRITE};

use super::group::{Caller, enqueue, opener, together};
use super::vfs::{self, Call, Fault};
use super::{Bench, id, job, support};

const OLD: usize = 400;

/// Jobs enough that a store that has just been opened finds most of them only
/// on disk. Made once and copied, with no connection open.
fn filled(bench: &Bench) -> (Queue, String) {
    static FILLED: OnceLock<(Vec<u8>, String)> = OnceLock::new();
    let (bytes, opener) = FILLED.get_or_init(|| {
        let queue = bench.queue();
        let opener = opener(&queue);
        let text = "x".repeat(900);
        let old = (0..OLD).map(|n| NewJob::of(&support::note(&format!("{text} {n}"))).id(id(5_000 + n)));
        queue.enqueue_many(old).unwrap();
        drop(queue);
        (std::fs::read(&bench.db).unwrap(), opener)
    });
    std::fs::write(&bench.db, bytes).unwrap();
    QueueOptions::at(&bench.db).attach(Attach::Move).unwrap();
    (bench.queue(), opener.clone())
}

fn status(bench: &Bench, number: usize) -> String {
    let sql = format!("SELECT status FROM jobs WHERE id = '{}'", id(number));
    support::rows(&support::raw(&bench.db), &sql).pop().map_or_else(|| "none".to_owned(), |mut row| row.remove(0))
}

/// Two new jobs with the cancelling of two old ones between them: the old rows have to be read.
fn callers(queue: &Queue) -> Vec<Caller<'_>> {
    let cancel = |n: usize| -> Caller<'_> {
        Box::new(move || {
            // One that is cancelled already would have been so behind our back.
            assert_eq!(queue.cancel(&id(5_000 + n))?.outcome, CancelOutcome::Cancelled);
            Ok(())
        })
    };
    vec![enqueue(queue, job(1)), cancel(50), enqueue(queue, job(2)), cancel(250), enqueue(queue, job(3))]
}

/// What each of [`callers`] leaves in the database, and what is there otherwise.
const DONE: [(usize, &str, &str); 5] = [
    (1, "pending", "none"),
    (5_050, "cancelled", "pending"),
    (2, "pending", "none"),
    (5_250, "cancelled", "pending"),
    (3, "pending", "none"),
];

/// Told `Ok`: it is there after a restart. Told why not: it is not there.
fn assert_answers_are_true(bench: &Bench, answers: &[jobq::Result<()>], when: &str) {
    assert_eq!(answers.len(), DONE.len());
    for (answer, (number, done, undone)) in answers.iter().zip(DONE) {
        let expected = match answer {
            Ok(()) => done,
            Err(error) => {
                assert!(!error.is_outcome_unknown(), "{when}: {error}");
                undone
            }
        };
        assert_eq!(status(bench, number), expected, "{when}: job {number} was answered {answer:?}");
    }
    bench.assert_whole();
}

#[test]
fn a_read_that_fails_once_in_any_operation_is_survived_by_all() {
    let mut hit_inside = 0;
    for first in 1.. {
        let bench = Bench::set_up();
        let (queue, opener) = filled(&bench);
        let fault = Fault { call: Call::ReadDatabase, first, times: 1, code: SQLITE_IOERR_READ };
        let answers = together(&bench, &queue, &opener, callers(&queue), || vfs::arm(&bench.db, fault));
        let fired = vfs::fired();
        vfs::heal();
        drop(queue);
        assert_answers_are_true(&bench, &answers, &format!("read {first}"));
        // The transaction is gone, each is run again by itself, and the disk works again.
        assert!(answers.iter().all(Result::is_ok), "read {first}: {answers:?}");
        if fired == 0 {
            break;
        }
        hit_inside += 1;
    }
    assert!(hit_inside >= 2, "only {hit_inside} reads could fail: the cache was not cold");
}

#[test]
fn reads_that_go_on_failing_refuse_those_who_need_them() {
    for first in 1.. {
        let bench = Bench::set_up();
        let (queue, opener) = filled(&bench);
        let fault = Fault { call: Call::ReadDatabase, first, times: usize::MAX, code: SQLITE_IOERR_READ };
        let answers = together(&bench, &queue, &opener, callers(&queue), || vfs::arm(&bench.db, fault));
        let fired = vfs::fired();
        vfs::heal();
        if fired == 0 {
            assert!(first > 1 && answers.iter().all(Result::is_ok), "{answers:?}");
            break;
        }
        let refused: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
        assert!(!refused.is_empty(), "read {first}");
        assert!(refused.iter().all(|error| error.kind() == ErrorKind::Io), "read {first}: {refused:?}");
        queue.enqueue(job(9)).expect("a fresh connection, once the disk works");
        drop(queue);
        assert_answers_are_true(&bench, &answers, &format!("from read {first} on"));
        assert_eq!(status(&bench, 9), "pending");
    }
}

/// Results larger than the page cache: pages are written to the log before
/// COMMIT, in the middle of an operation.
struct Spill {
    bench: Bench,
    queue: Queue,
    leases: Vec<Lease>,
}

impl Spill {
    fn set_up() -> Self {
        let bench = Bench::set_up();
        let queue = bench.queue();
        queue.enqueue_many([job(2), job(3)]).unwrap();
        let leases = support::claim(queue.store(), 2).into_iter().map(|claimed| claimed.lease).collect();
        Self { bench, queue, leases }
    }

    /// A new job, two that end with a lot to say, a new job.
    fn callers(&self) -> Vec<Caller<'_>> {
        let result = format!("\"{}\"", "x".repeat(10 << 20));
        let completion =
            |lease: &Lease| Completion { lease: lease.clone(), result: Some(result.clone()), follow_ups: Vec::new() };
        let completions: Vec<_> = self.leases.iter().map(completion).collect();
        let complete = || {
            let answers = self.queue.store().complete(completions)?;
            assert!(answers.into_iter().all(|answer| answer.is_ok_and(|ending| ending == Ending::Done)));
            Ok(())
        };
        vec![enqueue(&self.queue, job(1)), Box::new(complete), enqueue(&self.queue, job(4))]
    }

    fn fail_writes(&self, times: usize, code: i32) -> Vec<jobq::Result<()>> {
        let fault = Fault { call: Call::WriteLog, first: 1, times, code };
        let opener = opener(&self.queue);
        let answers = together(&self.bench, &self.queue, &opener, self.callers(), || vfs::arm(&self.bench.db, fault));
        assert!(vfs::fired() >= 1);
        vfs::heal();
        answers
    }

    /// The jobs as a process finds them that starts later.
    fn found(&self) -> [String; 4] {
        [1, 2, 3, 4].map(|number| status(&self.bench, number))
    }
}

const ALL_DONE: [&str; 4] = ["pending", "completed", "completed", "pending"];
const NONE_DONE: [&str; 4] = ["none", "claimed", "claimed", "none"];

#[test]
fn a_disk_that_was_full_for_a_moment_in_the_middle_of_an_operation_harms_nobody() {
    for code in [SQLITE_FULL, SQLITE_IOERR_WRITE] {
        // On a very slow day a group ends by its time before the operation that
        // spills is in it; then the fault hits a COMMIT, which is another test.
        let in_the_middle = (0..10).any(|_| {
            let spill = Spill::set_up();
            let answers = spill.fail_writes(1, code);
            let all_ok = answers.iter().all(Result::is_ok);
            assert!(all_ok || answers[0].is_err(), "code {code}: {answers:?}");
            if all_ok {
                assert_eq!(spill.found(), ALL_DONE);
                spill.bench.assert_whole();
            }
            all_ok
        });
        assert!(in_the_middle, "code {code}");
    }
}

#[test]
fn a_disk_that_is_full_from_the_middle_of_an_operation_on_refuses_everyone_and_keeps_nothing() {
    let spill = Spill::set_up();
    for answer in spill.fail_writes(usize::MAX, SQLITE_FULL) {
        let error = answer.expect_err("there is no room");
        assert!(error.is_disk_full(), "{error}");
    }
    assert_eq!(spill.found(), NONE_DONE);
    for caller in spill.callers() {
        caller().expect("there is room again");
    }
    assert_eq!(spill.found(), ALL_DONE);
    spill.bench.assert_whole();
}

#[test]
fn one_who_finds_the_disk_full_again_when_run_alone_is_refused_alone() {
    // The group's first write fails, and the first of those who are then run alone fails too.
    let spill = Spill::set_up();
    let answers = spill.fail_writes(2, SQLITE_FULL);
    assert!(answers[0].as_ref().is_err_and(jobq::Error::is_disk_full), "{answers:?}");
    assert!(answers[1..].iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(spill.found(), ["none", "completed", "completed", "pending"]);
    spill.bench.assert_whole();
}
