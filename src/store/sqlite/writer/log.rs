//! How long the write-ahead log is: how often it is brought into the database, and
//! that it stays short while others read.
//!
//! SQLite begins the log anew only at a moment when nobody reads from it. With
//! readers that overlap, each of them as short as can be, there is no such moment
//! and the log grows for ever. A forced checkpoint makes one: once all of the log
//! is in the database, those who come read from there, and those who were there
//! are waited for.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::error::Result;
use crate::store::sqlite::connection::{self, sql_error};

/// How long readers are waited for; nobody can write meanwhile.
const PATIENCE: Duration = Duration::from_millis(50);
/// Where waiting was in vain it is done again after this many times as long: one
/// who reads for an hour takes a tenth of the writers' time, not all of it.
const REST: u32 = 9;

/// How often it is looked at. Not after every COMMIT: a file whose times have been asked for gets new ones with
/// the next write, and then a sync has to write those as well, which takes as long as all the rest of it.
pub(in crate::store::sqlite) const LOOK: Duration = Duration::from_millis(50);

pub(super) struct LogBound {
    log: PathBuf,
    /// Larger than this, in bytes, it is not left to SQLite.
    limit: u64,
    look: Duration,
    looked: Option<Instant>,
    /// How checkpoints were last spaced, in MiB.
    spaced: u64,
    /// A wait was in vain and is not tried again before this.
    pub(super) not_before: Option<Instant>,
}

impl LogBound {
    pub(super) fn new(log: PathBuf, limit: u64, look: Duration) -> Self {
        // As for an empty one: if that is not so, it is told once more than need be.
        let spaced = connection::checkpoint_after(0) >> 20;
        Self { log, limit, look, looked: None, spaced, not_before: None }
    }

    /// Whether it is time to look; to be asked between transactions.
    pub(super) fn is_time(&mut self, now: Instant) -> bool {
        let is_time = self.looked.is_none_or(|last| now >= last + self.look);
        if is_time {
            self.looked = Some(now);
        }
        is_time
    }

    /// The larger the database, the rarer the checkpoints. SQLite is told only when that has changed.
    pub(super) fn space_checkpoints(&mut self, conn: &Connection) {
        let spacing = connection::checkpoint_spacing(conn) >> 20;
        if std::mem::replace(&mut self.spaced, spacing) != spacing
            && let Err(error) = connection::space_checkpoints(conn)
        {
            tracing::debug!(%error, "checkpoints come as often as before");
        }
    }

    /// Whether the log has to be cut by force.
    pub(super) fn is_long(&self, now: Instant) -> bool {
        let size = self.log.metadata().map_or(0, |log| log.len());
        size > self.limit && self.not_before.is_none_or(|at| at <= now)
    }

    /// Brings all of the log into the database and cuts it to nothing, if those who
    /// read let it.
    pub(super) fn shorten(&mut self, conn: &Connection) {
        let began = Instant::now();
        let done = truncate(conn).unwrap_or_else(|error| {
            tracing::warn!(%error, "the write-ahead log cannot be brought into the database");
            false
        });
        self.rest(done, began, Instant::now());
    }

    fn rest(&mut self, done: bool, began: Instant, ended: Instant) {
        // What failed without a wait is not tried again at once either.
        let waited = ended.saturating_duration_since(began).max(PATIENCE);
        self.not_before = (!done).then(|| ended + waited * REST);
    }
}

/// False if somebody was reading all the time.
fn truncate(conn: &Connection) -> Result<bool> {
    connection::with_patience(conn, PATIENCE, || {
        let busy = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        busy.map(|busy| !busy).map_err(sql_error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waited_in_vain_rests_for_longer_than_it_waited() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut bound = LogBound::new(log.clone(), 3, Duration::ZERO);
        assert!(!bound.is_long(start), "there is none");
        std::fs::write(&log, "abc").unwrap();
        assert!(!bound.is_long(start));
        std::fs::write(&log, "abcd").unwrap();
        assert!(bound.is_long(start));
        bound.rest(false, start, start + second);
        assert!(!bound.is_long(start + 9 * second));
        assert!(bound.is_long(start + 10 * second));
        bound.rest(true, start + 10 * second, start + 20 * second);
        assert!(bound.is_long(start + 20 * second), "what did not have to be waited for costs nothing");
    }

    #[test]
    fn it_is_looked_at_now_and_then() {
        let start = Instant::now();
        let mut bound = LogBound::new(PathBuf::from("log"), 3, LOOK);
        assert!(bound.is_time(start));
        assert!(!bound.is_time(start + LOOK / 2));
        assert!(bound.is_time(start + LOOK));
    }
}
