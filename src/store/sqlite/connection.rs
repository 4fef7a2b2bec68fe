//! Opening the database: every pragma is set and read back, on every
//! connection, because a durability setting that silently did not take is
//! found out only by the power cut.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::log_writes;
use crate::error::{Error, ErrorKind, Result};

/// Before 3.51.3 a WAL reset could lose committed transactions.
pub(super) const OLDEST_SQLITE: i32 = 3_051_003;

/// What is kept of a log that is begun anew, and what one may grow to before that is
/// forced: two of the largest checkpoints' worth, in bytes.
pub(crate) const MOST_LOG: u64 = 128 << 20;

/// After how many bytes in the log they are brought into the database, at least and at
/// most; in between as many as the database has.
///
/// A job touches about ten pages. The fewer checkpoints, the more often a page is
/// written once where it would be written several times: keys of jobs are hashes, so
/// among many that wait each is on a page of its own. But a log that is larger than
/// the database gains nothing.
const CHECKPOINT_AFTER: std::ops::RangeInclusive<u64> = (32 << 20)..=(64 << 20);

/// Sets that for a connection, by what the database has now; to be done again as it grows.
pub(super) fn space_checkpoints(conn: &Connection) -> Result<()> {
    let page = conn.pragma_query_value(None, "page_size", |row| row.get::<_, u32>(0)).map_err(sql_error)?;
    let pages = checkpoint_spacing(conn) / u64::from(page.max(1));
    expect_pragma(conn, "wal_autocheckpoint", &pages.to_string(), &pages.to_string())
}

/// What would be right now, in bytes. By the size of the file, which is not opened for that: SQLite would take locks
/// to count its pages.
pub(super) fn checkpoint_spacing(conn: &Connection) -> u64 {
    checkpoint_after(conn.path().and_then(|path| Path::new(path).metadata().ok()).map_or(0, |file| file.len()))
}

/// Of a database of so many bytes.
pub(super) fn checkpoint_after(size: u64) -> u64 {
    size.clamp(*CHECKPOINT_AFTER.start(), *CHECKPOINT_AFTER.end())
}

/// SQLite counts milliseconds in 31 bits, and `rusqlite` panics beyond.
const LONGEST_PATIENCE: Duration = Duration::from_millis(i32::MAX as u64);

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Writer,
    Reader,
}

pub(super) fn open(path: &Path, role: Role, create: bool, busy_timeout: Duration) -> Result<Connection> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(Error::new(
            ErrorKind::Schema,
            format!(
                "SQLite {} is older than 3.51.3 and can lose committed jobs; build jobq with its default feature `bundled`",
                rusqlite::version()
            ),
        ));
    }
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, create);
    let at = |e: rusqlite::Error| sql_error(e).context(format_args!("database {}", path.display()));
    let conn = match log_writes::layer().filter(|_| role == Role::Writer) {
        Some(layer) => Connection::open_with_flags_and_vfs(path, flags, layer),
        None => Connection::open_with_flags(path, flags),
    }
    .map_err(at)?;
    conn.busy_timeout(busy_timeout.min(LONGEST_PATIENCE)).map_err(at)?;
    // Until the schema is known to be ours, closing this connection must not
    // change the file, not even by a checkpoint.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(at)?;
    // Plans must not depend on what is bound: with statistics compiled in, SQLite
    // would otherwise prepare a statement anew whenever a value changes.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(at)?;
    // Some statements have a form for each number of rows.
    conn.set_prepared_statement_cache_capacity(192);
    if role == Role::Reader {
        conn.pragma_update(None, "query_only", true).map_err(at)?;
    }
    Ok(conn)
}

/// SQLite makes two files beside a database that nobody has open, even to read. Where it cannot, it says no more than
/// that it cannot open something.
pub(super) fn unopened(error: Error, db: &Path) -> Error {
    use rustix::fs::{Access, AtFlags, CWD, StatVfsMountFlags, accessat, statvfs};
    let folder = db.parent().unwrap_or(db);
    let why = match error.kind() {
        ErrorKind::Io | ErrorKind::ReadOnly
            if statvfs(folder).is_ok_and(|is| is.f_flag.contains(StatVfsMountFlags::RDONLY)) =>
        {
            "its filesystem is mounted read-only; mount it read-write"
        }
        ErrorKind::Io | ErrorKind::ReadOnly if accessat(CWD, folder, Access::WRITE_OK, AtFlags::EACCESS).is_err() => {
            "this user may not write to its folder; come as the queue's user"
        }
        _ => return error,
    };
    let text = format!("{why}, or copy the queue to where you may write, to look at it there ({})", error.message());
    Error::new(ErrorKind::ReadOnly, text).with_source(error)
}

/// The settings durability rests on. Called once the file is known to be ours.
pub(super) fn settle(conn: &Connection, patience: Duration) -> Result<()> {
    enter_wal(conn, patience)?;
    // NORMAL loses acknowledged jobs on a power cut.
    expect_pragma(conn, "synchronous", "FULL", "2")?;
    expect_pragma(conn, "cache_size", "-16000", "-16000")?;
    // A WAL that grew while a long reader kept it from being reset shrinks again.
    let most = MOST_LOG.to_string();
    expect_pragma(conn, "journal_size_limit", &most, &most)?;
    // Savepoints keep what they may have to undo in memory, not in temporary files.
    expect_pragma(conn, "temp_store", "MEMORY", "2")?;
    space_checkpoints(conn)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(sql_error)?;
    Ok(())
}

/// SQLite does not wait for others when the journal mode changes, whatever the
/// busy timeout, so the waiting is done here.
fn enter_wal(conn: &Connection, patience: Duration) -> Result<()> {
    let start = Instant::now();
    loop {
        match expect_pragma(conn, "journal_mode", "WAL", "wal") {
            Err(error) if error.kind() == ErrorKind::Busy && start.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(2));
            }
            done => return done,
        }
    }
}

/// Does something for which others are waited for no longer than this.
pub(super) fn with_patience<T>(conn: &Connection, patience: Duration, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let usual: u32 = conn.pragma_query_value(None, "busy_timeout", |row| row.get(0)).map_err(sql_error)?;
    conn.busy_timeout(patience.min(LONGEST_PATIENCE)).map_err(sql_error)?;
    let answer = work();
    conn.busy_timeout(Duration::from_millis(usual.into())).map_err(sql_error)?;
    answer
}

pub(super) fn expect_pragma(conn: &Connection, name: &str, set: &str, expected: &str) -> Result<()> {
    conn.execute_batch(&format!("PRAGMA {name} = {set}")).map_err(sql_error)?;
    let actual = conn
        .pragma_query_value(None, name, |row| {
            Ok(match row.get_ref(0)? {
                rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                other => other.as_str().unwrap_or_default().to_owned(),
            })
        })
        .map_err(sql_error)?;
    if actual == expected {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Io,
        format!(
            "PRAGMA {name} is {actual} although {expected} was asked for; is the database on a network filesystem?"
        ),
    ))
}

/// SQLite's words in ours.
pub(super) fn sql_error(error: rusqlite::Error) -> Error {
    if let rusqlite::Error::SqlInputError { msg, .. } = &error {
        // Without the statement: for a schema that is pages of text.
        return Error::new(ErrorKind::Schema, format!("database: {msg}")).with_source(error);
    }
    let rusqlite::Error::SqliteFailure(code, message) = &error else {
        return Error::new(ErrorKind::Internal, format!("database: {error}")).with_source(error);
    };
    let text = message.clone().unwrap_or_else(|| code.to_string());
    let (kind, text) = match code.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => (
            ErrorKind::Busy,
            "the database is locked by another process; try again, or find the process that holds it".to_owned(),
        ),
        ErrorCode::DiskFull => {
            (ErrorKind::DiskFull, "the disk is full; nothing was changed, make room and try again".to_owned())
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => (
            ErrorKind::ReadOnly,
            format!("the database cannot be written ({text}); check permissions and mount options"),
        ),
        ErrorCode::NotADatabase => (ErrorKind::Corrupt, "the file is not a SQLite database".to_owned()),
        ErrorCode::DatabaseCorrupt => (
            ErrorKind::Corrupt,
            format!("the database is damaged ({text}); keep a copy of it and restore from a backup"),
        ),
        ErrorCode::ConstraintViolation if text.starts_with("jobq: ") => {
            (ErrorKind::WrongState, text["jobq: ".len()..].to_owned())
        }
        // What we write was looked at before: it is a row that is written back, or found in another's place.
        // A bug would cost jobs one by one, so it is not yet called damage of everything.
        ErrorCode::ConstraintViolation if is_about_a_value(code.extended_code) => (
            ErrorKind::Internal,
            format!("the database is damaged, or jobq has a bug ({text}); `jobq doctor --deep` says which"),
        ),
        ErrorCode::SystemIoFailure | ErrorCode::CannotOpen => (ErrorKind::Io, format!("disk trouble: {text}")),
        // Nobody's bug, and it may pass: what a worker has finished must not fail for it.
        ErrorCode::OutOfMemory | ErrorCode::OperationInterrupted => {
            (ErrorKind::Io, format!("trouble with the database: {text}"))
        }
        _ => (ErrorKind::Internal, format!("database: {text}")),
    };
    Error::new(kind, text).with_source(error)
}

/// A rule of the schema for what may stand in a row, whatever stands in others.
const fn is_about_a_value(extended_code: std::ffi::c_int) -> bool {
    use rusqlite::ffi::{SQLITE_CONSTRAINT_CHECK, SQLITE_CONSTRAINT_DATATYPE, SQLITE_CONSTRAINT_NOTNULL};
    matches!(extended_code, SQLITE_CONSTRAINT_CHECK | SQLITE_CONSTRAINT_DATATYPE | SQLITE_CONSTRAINT_NOTNULL)
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    /// The layer below keeps what is written to the log until it is synced. With anything less than FULL a COMMIT
    /// does not sync, and what it has written is nowhere.
    #[test]
    fn what_was_committed_is_in_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("some.db");
        let conn = open(&db, Role::Writer, true, Duration::from_secs(1)).unwrap();
        settle(&conn, Duration::from_secs(1)).unwrap();
        let log = || std::fs::metadata(folder.path().join("some.db-wal")).unwrap().len();
        conn.execute_batch("CREATE TABLE t (x)").unwrap();
        let before = log();
        conn.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        assert!(0 < before && before < log(), "{before}, then {}", log());
    }

    #[test]
    fn checkpoints_of_a_large_database_are_rarer_and_not_without_bound() {
        let mib = |size: u64| checkpoint_after(size << 20) >> 20;
        assert_eq!([0, 32, 48, 64, 1 << 20].map(mib), [32, 32, 48, 64, 64]);
    }

    #[test]
    fn checkpoints_are_spaced_by_the_size_of_the_database_whatever_its_pages() {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("some.db");
        let app = Connection::open(&db).unwrap();
        app.execute_batch("PRAGMA page_size = 8192; CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(45 << 20))")
            .unwrap();
        let conn = open(&db, Role::Writer, false, Duration::from_secs(1)).unwrap();
        settle(&conn, Duration::from_secs(1)).unwrap();
        let after: u64 =
            conn.pragma_query_value(None, "wal_autocheckpoint", |row| row.get::<_, u32>(0)).unwrap().into();
        assert!((45 << 20..46 << 20).contains(&(after * 8192)), "{after}");
    }

    /// A month is what somebody may well put into the settings.
    #[test]
    fn any_patience_can_be_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let conn = open(&folder.path().join("some.db"), Role::Writer, true, Duration::MAX).unwrap();
        assert!(conn.pragma_query_value(None, "busy_timeout", |row| row.get::<_, u32>(0)).unwrap() > 2_000_000_000);
    }

    #[test]
    fn what_may_pass_is_not_a_bug() {
        let kind = |code| sql_error(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)).kind();
        for (code, expected) in [
            (ffi::SQLITE_BUSY, ErrorKind::Busy),
            (ffi::SQLITE_BUSY_RECOVERY, ErrorKind::Busy),
            // Others were at the log's index for longer than SQLite waits.
            (ffi::SQLITE_PROTOCOL, ErrorKind::Busy),
            (ffi::SQLITE_FULL, ErrorKind::DiskFull),
            (ffi::SQLITE_IOERR_READ, ErrorKind::Io),
            (ffi::SQLITE_IOERR_NOMEM, ErrorKind::Io),
            (ffi::SQLITE_NOMEM, ErrorKind::Io),
            (ffi::SQLITE_INTERRUPT, ErrorKind::Io),
            (ffi::SQLITE_CORRUPT, ErrorKind::Corrupt),
            (ffi::SQLITE_CONSTRAINT_CHECK, ErrorKind::Internal),
        ] {
            assert_eq!(kind(code), expected, "{code}");
        }
    }

    /// A bit of what SQLite notes of a row makes a text a blob, or nothing at all; then it is
    /// the rules for rows that are hurt, and no page.
    #[test]
    fn a_row_that_no_rule_allows_may_be_damage() {
        let said = |code| sql_error(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)).to_string();
        for code in [ffi::SQLITE_CONSTRAINT_DATATYPE, ffi::SQLITE_CONSTRAINT_NOTNULL, ffi::SQLITE_CONSTRAINT_CHECK] {
            let said = said(code);
            assert!(said.contains("the database is damaged, or") && said.contains("doctor --deep"), "{said}");
        }
        assert!(!said(ffi::SQLITE_CONSTRAINT_UNIQUE).contains("damaged"));
    }
}
