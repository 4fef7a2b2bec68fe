//! Types that are paused: of these nothing is claimed for now, by any worker.
//! The handler of one of their jobs was told to wait, and the others would only
//! hear the same.
//!
//! A pause changes no job, so it costs the same beside a hundred thousand of
//! them: the claim leaves the type out, and a look knows when it ends.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::connection::sql_error;
use super::row::read;
use super::tx::Tx;
use crate::clock::{Millis, rfc3339};
use crate::error::Result;
use crate::store::{Failure, LONGEST_PAUSE, Lease};

/// A row of `type_pauses`.
pub(super) struct Pause {
    pub(super) job_type: String,
    pub(super) until: Millis,
    pub(super) since: Millis,
    pub(super) reason: Option<String>,
}

impl Pause {
    /// Whether it holds now. One that has not begun yet was written by a clock that
    /// has been set back since: nobody knows how long it would last.
    fn holds(&self, now: Millis) -> bool {
        self.since <= now && now < self.until
    }
}

/// Writes the pause that a failed attempt asks for, if it does. Returns when it ends.
/// What the handler was told is true whatever becomes of its job.
pub(super) fn begin(tx: &Tx<'_>, lease: &Lease, failure: &Failure) -> Result<Option<Millis>> {
    let Some(pause) = failure.pause else { return Ok(None) };
    let until = tx.now.saturating_add(millis(pause.min(LONGEST_PAUSE)));
    tx.execute(BEGIN, params![lease.seq, until, tx.now, failure.text()])?;
    Ok(Some(until))
}

/// A longer pause is never shortened, unless nobody would believe it.
const BEGIN: &str = "INSERT INTO type_pauses (type, until, since, reason)
     SELECT type, ?2, ?3, ?4 FROM jobs WHERE seq = ?1
         ON CONFLICT (type) DO UPDATE SET until = excluded.until, since = excluded.since, reason = excluded.reason
      WHERE excluded.until > until OR since > excluded.since";

/// The event of a failure, with the pause it began.
pub(super) fn told(failure: &Failure, until: Option<Millis>) -> serde_json::Value {
    let mut data = serde_json::json!(failure);
    if let Some(until) = until {
        data["type_paused_until"] = rfc3339(until).into();
    }
    data
}

/// The pauses that hold now.
pub(super) fn current(conn: &Connection, now: Millis) -> Result<Vec<Pause>> {
    Ok(all(conn)?.into_iter().filter(|pause| pause.holds(now)).collect())
}

/// The same for one who may write: those that are over go.
pub(super) fn current_and_forget_past(tx: &Tx<'_>) -> Result<Vec<Pause>> {
    let (current, past): (Vec<_>, Vec<_>) = all(tx.conn)?.into_iter().partition(|pause| pause.holds(tx.now));
    if !past.is_empty() {
        tx.execute("DELETE FROM type_pauses WHERE until <= ?1 OR since > ?1", params![tx.now])?;
    }
    Ok(current)
}

/// Ends the pause of a type. False if there was none that held.
pub(super) fn end(tx: &Tx<'_>, job_type: &str) -> Result<bool> {
    let held = of(tx.conn, job_type, tx.now)?.is_some();
    tx.execute("DELETE FROM type_pauses WHERE type = ?1", params![job_type])?;
    Ok(held)
}

/// The pause of one type, if it holds now.
pub(super) fn of(conn: &Connection, job_type: &str, now: Millis) -> Result<Option<Pause>> {
    let pause = conn
        .prepare_cached("SELECT type, until, since, reason FROM type_pauses WHERE type = ?1")
        .and_then(|mut statement| statement.query_row([job_type], pause).optional())
        .map_err(sql_error)?;
    Ok(pause.filter(|pause| pause.holds(now)))
}

/// There are hardly ever any.
pub(super) const ALL: &str = "SELECT type, until, since, reason FROM type_pauses ORDER BY type";

fn all(conn: &Connection) -> Result<Vec<Pause>> {
    let mut statement = conn.prepare_cached(ALL).map_err(sql_error)?;
    let rows = statement.query_map([], pause).map_err(sql_error)?;
    rows.collect::<rusqlite::Result<_>>().map_err(sql_error)
}

fn pause(row: &Row<'_>) -> rusqlite::Result<Pause> {
    Ok(Pause { job_type: read(row, 0)?, until: row.get(1)?, since: row.get(2)?, reason: read(row, 3)? })
}

fn millis(time: Duration) -> Millis {
    Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX)
}
