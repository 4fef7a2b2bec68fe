use std::sync::TryLockError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;
use crate::clock::{Clock, SystemClock};
use crate::payload::JobTypes;
use crate::store::sqlite::{connection, prepare};
use crate::store::{Applier, ApplyReport, Failure, Lease, PlannedEffect};

/// A writer on a new database, and a plain connection to get in its way.
fn writer(folder: &std::path::Path, patience: Duration) -> (Writer, Connection) {
    writer_with_clock(folder, patience, Arc::new(SystemClock))
}

fn writer_with_clock(folder: &std::path::Path, patience: Duration, clock: Arc<dyn Clock>) -> (Writer, Connection) {
    let path = folder.join("jobq.db");
    let open = move || connection::open(&path, connection::Role::Writer, true, patience);
    let conn = open().unwrap();
    prepare(&conn, &folder.join("jobq.db"), true, patience).unwrap();
    let other = Connection::open(folder.join("jobq.db")).unwrap();
    let context = Context { clock, types: JobTypes::new() };
    (Writer::new(conn, Box::new(open), context, None), other)
}

fn count(tx: &Tx<'_>) -> Result<i64> {
    tx.execute("INSERT INTO jobq_meta (key, value) SELECT 'n' || count(*), '' FROM jobq_meta", [])?;
    Ok(tx.conn.last_insert_rowid())
}

fn seat_is_taken(writer: &Writer) -> bool {
    matches!(writer.seat.try_lock(), Err(TryLockError::WouldBlock))
}

fn wait_for(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

/// The first caller's patience ends while the database is locked. One who came
/// during its wait is not sent away with it.
#[test]
fn who_came_later_has_a_wait_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, other) = writer(folder.path(), Duration::from_secs(1));
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| writer.write("first", count));
        wait_for(|| seat_is_taken(&writer));
        // The seat is taken a moment before the clock of the try starts.
        std::thread::sleep(Duration::from_millis(50));
        let later = scope.spawn(|| writer.write("later", count));
        let refused = first.join().unwrap().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Busy);
        other.execute_batch("COMMIT").unwrap();
        later.join().unwrap().unwrap();
    });
}

/// Everyone who waits is answered, whoever leads, however the groups fall.
#[test]
fn nobody_is_forgotten_in_line() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _) = writer(folder.path(), Duration::from_secs(60));
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (writer, answered) = (&writer, &answered);
            scope.spawn(move || {
                for round in 0..200 {
                    // Some are urgent, some fail after a change, which makes the group start over.
                    let done = match (thread + round) % 4 {
                        0 => writer.write_urgent("urgent", count).is_ok(),
                        1 => writer
                            .write("failing", |tx| {
                                count(tx)?;
                                Err::<(), _>(Error::new(ErrorKind::Conflict, "on purpose"))
                            })
                            .is_err(),
                        _ => writer.write("usual", count).is_ok(),
                    };
                    answered.fetch_add(usize::from(done), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(answered.load(Ordering::Relaxed), 1600);
    let kept = writer
        .write("count", |tx| tx.row("SELECT count(*) FROM jobq_meta WHERE key <> 'schema_version'", [], |r| r.get(0)));
    assert_eq!(kept.unwrap(), Some(1200_i64), "what failed left nothing, what succeeded is there once");
}

/// Whose folders cannot be synced, and who takes it badly.
struct PanicsInSync;

impl Applier for PanicsInSync {
    fn apply(&self, _: &Lease, _: &[PlannedEffect], _: bool) -> ApplyReport {
        unreachable!("nothing is applied here")
    }

    fn sync(&self) -> std::result::Result<(), Failure> {
        panic!("on purpose")
    }
}

fn rows(conn: &Connection) -> i64 {
    conn.query_row("SELECT count(*) FROM jobq_meta WHERE key <> 'schema_version'", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_panic_before_the_commit_refuses_the_group_and_the_next_write_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, other) = writer(folder.path(), Duration::from_secs(60));
    let refused = writer.write("doomed", |tx| {
        tx.sync_before_commit(&(Arc::new(PanicsInSync) as _));
        count(tx)
    });
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Internal, "it is certain that nothing was committed");
    assert!(refused.to_string().contains("doomed"), "{refused}");
    assert_eq!(rows(&other), 0, "the open transaction was rolled back");
    writer.write("later", count).unwrap();
    assert_eq!(rows(&other), 1);
}

#[test]
fn who_waits_behind_a_leader_that_panics_is_answered_too() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, other) = writer(folder.path(), Duration::from_secs(60));
    let doomed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (writer, doomed) = (&writer, &doomed);
            scope.spawn(move || {
                for round in 0..20 {
                    let panics = (thread + round) % 5 == 0;
                    let answer = writer.write("one of many", move |tx| {
                        if panics {
                            tx.sync_before_commit(&(Arc::new(PanicsInSync) as _));
                        }
                        count(tx)
                    });
                    assert!(answer.is_err() || !panics);
                    doomed.fetch_add(usize::from(answer.is_err()), Ordering::Relaxed);
                }
            });
        }
    });
    let kept = usize::try_from(rows(&other)).unwrap();
    assert_eq!(kept + doomed.load(Ordering::Relaxed), 80, "what was answered with success is there, and nothing else");
}

/// Panics once.
struct BrokenClock(AtomicBool);

impl Clock for BrokenClock {
    fn now(&self) -> crate::clock::Millis {
        assert!(!self.0.swap(false, Ordering::Relaxed), "on purpose");
        0
    }
}

#[test]
fn a_panic_before_anything_was_run_is_an_answer_too() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(BrokenClock(AtomicBool::new(true)));
    let (writer, other) = writer_with_clock(folder.path(), Duration::from_secs(60), clock);
    assert_eq!(writer.write("early", count).unwrap_err().kind(), ErrorKind::Internal);
    writer.write("later", count).unwrap();
    assert_eq!(rows(&other), 1);
}
