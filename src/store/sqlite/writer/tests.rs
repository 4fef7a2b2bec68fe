use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, TryLockError};

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
    let open = move |_: bool| connection::open(&path, connection::Role::Writer, true, patience);
    let conn = open(false).unwrap();
    prepare(&conn, &folder.join("jobq.db"), true, None, patience).unwrap();
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

/// SQLite opens a file that fails to be opened for writing to be read. When the
/// trouble is over, whoever has it open goes on.
#[test]
fn a_connection_that_can_only_read_is_opened_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _) = writer(folder.path(), Duration::from_secs(1));
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    *lock(&writer.seat) = Some(Connection::open_with_flags(folder.path().join("jobq.db"), flags).unwrap());
    writer.write("first", count).unwrap();
    assert!(!lock(&writer.seat).as_ref().unwrap().is_readonly("main").unwrap());
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

/// Readers of whom there is always one: each ends its transaction, which is a
/// short one, only after another has begun.
#[derive(Default)]
struct Relay {
    begun: Mutex<usize>,
    bell: Condvar,
    over: AtomicBool,
}

impl Relay {
    fn read(&self, db: &std::path::Path) {
        let conn = Connection::open(db).unwrap();
        while !self.over.load(Ordering::SeqCst) {
            conn.execute_batch("BEGIN; SELECT count(*) FROM jobq_meta").unwrap();
            let mut begun = lock(&self.begun);
            *begun += 1;
            self.bell.notify_all();
            let mine = *begun;
            drop(self.bell.wait_while(begun, |begun| *begun == mine && !self.over.load(Ordering::SeqCst)).unwrap());
            conn.execute_batch("COMMIT").unwrap();
        }
    }
}

/// Ends a relay, also when a check has failed.
struct End<'r>(&'r Relay);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let _begun = lock(&self.0.begun);
        self.0.over.store(true, Ordering::SeqCst);
        self.0.bell.notify_all();
    }
}

/// Many times what the log may be is written while there is always somebody who
/// reads. How far it grows beyond its bound depends on when readers are let run;
/// that it comes back to nothing does not.
#[test]
fn readers_that_overlap_without_end_do_not_make_the_log_grow_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let (db, log) = (folder.path().join("jobq.db"), folder.path().join("jobq.db-wal"));
    let (writer, _other) = writer(folder.path(), Duration::from_secs(60));
    let writer = writer.bounding(log.clone(), 1 << 20, Duration::ZERO);
    let relay = Relay::default();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| relay.read(&db));
        }
        let _end = End(&relay);
        let (mut before, mut cut, mut largest) = (0, 0, 0);
        while cut < 10 && largest < 64 << 20 {
            let large = "REPLACE INTO jobq_meta (key, value) VALUES ('large', hex(randomblob(131072)))";
            writer.write("large", move |tx| tx.execute(large, [])).unwrap();
            let size = log.metadata().unwrap().len();
            cut += usize::from(size < before);
            (before, largest) = (size, largest.max(size));
        }
        assert_eq!(cut, 10, "the log has grown to {largest} bytes");
    });
}

/// Who reads for long is waited for now and then, not at every commit.
#[test]
fn a_reader_that_stays_does_not_stop_those_who_write() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, other) = writer(folder.path(), Duration::from_secs(60));
    let writer = writer.bounding(folder.path().join("jobq.db-wal"), 0, Duration::ZERO);
    other.execute_batch("BEGIN; SELECT count(*) FROM jobq_meta").unwrap();
    writer.write("first", count).unwrap();
    let rests = || writer.log.as_ref().is_some_and(|log| lock(log).not_before.is_some());
    assert!(rests(), "it was waited for in vain just now");
    let patience = writer.write("usual", |tx| tx.row("PRAGMA busy_timeout", [], |row| row.get(0)));
    assert_eq!(patience.unwrap(), Some(60_000), "others who write are waited for as before");
    other.execute_batch("COMMIT").unwrap();
    wait_for(|| writer.log_is_long());
    writer.write("last", count).unwrap();
    assert_eq!(folder.path().join("jobq.db-wal").metadata().unwrap().len(), 0);
}

/// Each job that ends beside many that wait takes its key from a page of its own.
#[test]
fn checkpoints_become_rarer_as_the_database_grows() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _other) = writer(folder.path(), Duration::from_secs(60));
    let writer = writer.bounding(folder.path().join("jobq.db-wal"), u64::MAX, Duration::ZERO);
    let after = || writer.write("asked", |tx| tx.row("PRAGMA wal_autocheckpoint", [], |row| row.get::<_, i64>(0)));
    let large = "INSERT INTO jobq_meta (key, value) VALUES ('large', hex(zeroblob(20 << 20)))";
    // The very first thing that it writes, after it was opened small.
    writer.write("large", move |tx| tx.execute(large, [])).unwrap();
    assert!(after().unwrap().is_some_and(|pages| pages >= 40 << 20 >> 12));
}
