//! The database as `doctor` sees it: opened to be looked at, never changed. An
//! older one is not migrated, a damaged one is read as far as it goes, one on a
//! read-only filesystem is read all the same.

mod jobs;

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::connection::{self, OLDEST_SQLITE, Role, sql_error};
use super::schema;
use crate::error::{ErrorKind, Result};

/// How many troubles are named; one is enough to act on.
const NAMED: u32 = 20;
/// How often the write lock is waited for while others commit: the one who has it
/// now may be the one who hangs.
const TRIES: usize = 3;

/// A connection that only looks.
pub(crate) struct Health {
    conn: Connection,
}

impl Health {
    /// Opens a database as it is. The files that SQLite keeps beside it are left
    /// as they were found, too, except for its index of a log that a crash has
    /// left: reading is not possible without one.
    pub(crate) fn open(path: &Path, patience: Duration) -> Result<Self> {
        let log_is_empty = log_of(path).metadata().map_or(0, |log| log.len()) == 0;
        match Self::open_shared(path, log_is_empty, patience) {
            // SQLite cannot make its files beside it. Without a log it needs none.
            Err(error) if log_is_empty && matches!(error.kind(), ErrorKind::Io | ErrorKind::ReadOnly) => {
                Self::open_frozen(path).map_err(|_| error)
            }
            opened => opened,
        }
    }

    fn open_shared(path: &Path, log_is_empty: bool, patience: Duration) -> Result<Self> {
        let conn = connection::open(path, Role::Reader, false, patience)?;
        probe(&conn)?;
        // With nothing in the log, the last to close copies nothing and removes
        // what this connection has made; with something in it, that stays there.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !log_is_empty).map_err(sql_error)?;
        Ok(Self { conn })
    }

    /// For a filesystem on which nothing can be made, and so nothing changes.
    fn open_frozen(path: &Path) -> Result<Self> {
        let mut uri = "file:".to_owned();
        for byte in path.as_os_str().as_bytes() {
            let plain = byte.is_ascii_alphanumeric() || b"/._-~".contains(byte);
            let _ = if plain { write!(uri, "{}", char::from(*byte)) } else { write!(uri, "%{byte:02X}") };
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(uri + "?immutable=1", flags).map_err(sql_error)?;
        probe(&conn)?;
        Ok(Self { conn })
    }

    /// Whether the file can only be read.
    pub(crate) fn is_read_only(&self) -> Result<bool> {
        self.conn.is_readonly("main").map_err(sql_error)
    }

    /// The schema's version, or `None` when jobq's tables are not there.
    pub(crate) fn schema_version(&self) -> Result<Option<i64>> {
        schema::version(&self.conn)
    }

    /// What of jobq's schema is missing or altered.
    pub(crate) fn schema_faults(&self) -> Result<Vec<String>> {
        schema::faults(&self.conn)
    }

    /// The folder jobs may touch, if one is on record.
    pub(crate) fn root(&self) -> Result<Option<String>> {
        schema::root(&self.conn)
    }

    /// The identity of the state folder in which the queue was made.
    pub(crate) fn site(&self) -> Result<Option<String>> {
        schema::site(&self.conn)
    }

    /// What SQLite finds wrong with the file; nothing when it is whole. The deep
    /// look also compares every index with its table.
    pub(crate) fn damage(&self, deep: bool) -> Result<Vec<String>> {
        let look = if deep { "integrity_check" } else { "quick_check" };
        let mut statement = self.conn.prepare(&format!("PRAGMA {look}({NAMED})")).map_err(sql_error)?;
        let found = statement.query_map([], |row| row.get::<_, String>(0)).map_err(sql_error)?;
        let found: Vec<String> = found.collect::<rusqlite::Result<_>>().map_err(sql_error)?;
        Ok(if found == ["ok"] { Vec::new() } else { found })
    }

    /// The journal mode, which is a property of the file.
    pub(crate) fn journal_mode(&self) -> Result<String> {
        self.conn.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(sql_error)
    }

    /// Whether the setting that durability rests on takes effect here.
    pub(crate) fn syncs_fully(&self) -> Result<()> {
        connection::expect_pragma(&self.conn, "synchronous", "FULL", "2")
    }

    /// Whether writers get their turn: this one within `patience`, or others, who may
    /// well be luckier each time, all the while. Nothing is written.
    pub(crate) fn lock_moves_on(&self, patience: Duration) -> Result<bool> {
        self.conn.busy_timeout(patience).map_err(sql_error)?;
        for _ in 0..TRIES {
            let before = self.data_version()?;
            if self.lock_is_free()? {
                return Ok(true);
            }
            if self.data_version()? == before {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Another number after each commit of others.
    fn data_version(&self) -> Result<i64> {
        self.conn.pragma_query_value(None, "data_version", |row| row.get(0)).map_err(sql_error)
    }

    fn lock_is_free(&self) -> Result<bool> {
        self.conn.pragma_update(None, "query_only", false).map_err(sql_error)?;
        let begun = self.conn.execute_batch("BEGIN IMMEDIATE; ROLLBACK").map_err(sql_error);
        self.conn.pragma_update(None, "query_only", true).map_err(sql_error)?;
        match begun {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Busy => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Opening reads nothing yet; this does.
fn probe(conn: &Connection) -> Result<()> {
    conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(sql_error)
}

/// The write-ahead log beside a database.
pub(crate) fn log_of(db: &Path) -> PathBuf {
    beside(db, "-wal")
}

/// The index of the log, on which SQLite's locks are.
pub(crate) fn log_index_of(db: &Path) -> PathBuf {
    beside(db, "-shm")
}

fn beside(db: &Path, suffix: &str) -> PathBuf {
    // SQLite names them after the file itself, not after a link to it.
    let mut path = db.canonicalize().unwrap_or_else(|_| db.to_owned()).into_os_string();
    path.push(suffix);
    path.into()
}

/// Whether a version of SQLite, as it numbers itself, keeps what it has committed.
pub(crate) fn is_trustworthy(version: i32) -> bool {
    version >= OLDEST_SQLITE
}
