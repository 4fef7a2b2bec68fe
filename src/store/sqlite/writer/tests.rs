use std::sync::TryLockError;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::clock::SystemClock;
use crate::payload::JobTypes;
use crate::store::sqlite::{connection, prepare};

/// A writer on a new database, and a plain connection to get in its way.
fn writer(folder: &std::path::Path, patience: Duration) -> (Writer, Connection) {
    let path = folder.join("jobq.db");
    let open = move || connection::open(&path, connection::Role::Writer, true, patience);
    let conn = open().unwrap();
    prepare(&conn, &folder.join("jobq.db"), true, patience).unwrap();
    let other = Connection::open(folder.join("jobq.db")).unwrap();
    let context = Context { clock: Arc::new(SystemClock), types: JobTypes::new() };
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
