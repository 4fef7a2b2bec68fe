//! Events: written in the transaction of what they tell, read by followers.

use rusqlite::{ToSql, params, params_from_iter};

use super::connection::sql_error;
use super::tx::Tx;
use crate::error::Result;
use crate::store::{Event, EventQuery};

/// What happened to which job. Its number comes from the job's own row, which
/// the caller has just updated.
pub(super) struct NewEvent<'a> {
    pub(super) job_id: &'a str,
    pub(super) seq: i64,
    pub(super) attempt: u32,
    pub(super) event_type: &'static str,
    pub(super) data: Option<String>,
}

/// Events in one statement. Beginning and ending one, with the AUTOINCREMENT that is read and written each time, costs
/// about as much as a row; beyond some rows nothing is left to gain.
const AT_ONCE: usize = 16;

/// No job has so many events. Beyond it is damage, from where numbers could soon not grow any more; statements that
/// count an event let a number stand that cannot.
const MOST: i64 = i64::MAX / 2;

/// Returns the event's global id.
pub(super) fn write(tx: &Tx<'_>, event: &NewEvent<'_>) -> Result<i64> {
    write_all(tx, std::slice::from_ref(event))?;
    Ok(tx.conn.last_insert_rowid())
}

/// Their global ids are in the order given.
pub(super) fn write_all(tx: &Tx<'_>, events: &[NewEvent<'_>]) -> Result<()> {
    for some in events.chunks(AT_ONCE) {
        // The first is the trigger's, which tells that the job was queued; whoever is before it has a damaged number.
        if some.iter().any(|event| event.seq <= 1 || event.seq > MOST) {
            renumber(tx, some)?;
            continue;
        }
        let values = some.iter().flat_map(|event| -> [&dyn ToSql; 6] {
            [&event.job_id, &event.seq, &event.attempt, &event.event_type, &event.data, &tx.now]
        });
        let written = tx.sql(&insert_sql(some.len()))?.execute(params_from_iter(values));
        match written {
            Ok(_) => {}
            Err(error) if is_taken(&error) => {
                // Those before it are in.
                let done = usize::try_from(tx.conn.changes()).unwrap_or(0);
                renumber(tx, &some[done..])?;
            }
            Err(error) => return Err(sql_error(error)),
        }
    }
    Ok(())
}

/// A job's own number of its newest event is behind its events: the one or the others were damaged.
fn is_taken(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    code == Some(rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE)
}

/// Gives them numbers behind the events that are there, and the jobs those. One damaged number must stop neither its job
/// nor those that are claimed or ended beside it.
fn renumber(tx: &Tx<'_>, events: &[NewEvent<'_>]) -> Result<()> {
    for event in events {
        let told = if event.seq > MOST { 0 } else { event.seq };
        tx.execute(
            "INSERT OR FAIL INTO job_events (job_id, seq, attempt, type, data, at)
             SELECT ?1, max(?2, coalesce(max(seq), 0) + 1), ?3, ?4, ?5, ?6 FROM job_events WHERE job_id = ?1 AND seq <= ?7",
            params![event.job_id, told, event.attempt, event.event_type, event.data, tx.now, MOST],
        )?;
        let written = tx.conn.last_insert_rowid();
        let mended = tx.execute(
            "UPDATE OR FAIL jobs SET event_seq = (SELECT seq FROM job_events WHERE id = ?2)
              WHERE id = ?1 AND (event_seq > ?3 OR event_seq < (SELECT seq FROM job_events WHERE id = ?2))",
            params![event.job_id, written, MOST],
        )?;
        if mended > 0 {
            tracing::warn!(job_id = event.job_id, "the number of its newest event was damaged; it is set right");
        }
    }
    Ok(())
}

fn insert_sql(rows: usize) -> String {
    let mut sql =
        "INSERT OR FAIL INTO job_events (job_id, seq, attempt, type, data, at) VALUES (?,?,?,?,?,?)".to_owned();
    sql.extend(std::iter::repeat_n(",(?,?,?,?,?,?)", rows - 1));
    sql
}

pub(super) fn read(conn: &rusqlite::Connection, query: &EventQuery) -> Result<Vec<Event>> {
    const SELECT: &str = "SELECT id, job_id, seq, attempt, type, data, at FROM job_events";
    let sql = match query.job_id {
        // By what the next page begins with, which is the order in which they were written. With the plus no plan walks
        // the events of all jobs for that.
        Some(_) => format!("{SELECT} WHERE job_id = ?1 AND id > ?2 ORDER BY +id LIMIT ?3"),
        None => format!("{SELECT} WHERE ?1 IS NULL AND id > ?2 ORDER BY id LIMIT ?3"),
    };
    let mut statement = conn.prepare_cached(&sql).map_err(sql_error)?;
    let rows = statement
        .query_map(params![query.job_id, query.after, query.limit], |row| {
            Ok(Event {
                id: row.get(0)?,
                job_id: super::row::read(row, 1)?,
                seq: row.get(2)?,
                attempt: row.get(3)?,
                event_type: row.get(4)?,
                data: super::row::read(row, 5)?,
                at: row.get(6)?,
            })
        })
        .map_err(sql_error)?;
    rows.collect::<rusqlite::Result<_>>().map_err(sql_error)
}
