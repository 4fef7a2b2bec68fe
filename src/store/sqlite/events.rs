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

/// Returns the event's global id.
pub(super) fn write(tx: &Tx<'_>, event: &NewEvent<'_>) -> Result<i64> {
    write_all(tx, std::slice::from_ref(event))?;
    Ok(tx.conn.last_insert_rowid())
}

/// Their global ids are in the order given.
pub(super) fn write_all(tx: &Tx<'_>, events: &[NewEvent<'_>]) -> Result<()> {
    for some in events.chunks(AT_ONCE) {
        let values = some.iter().flat_map(|event| -> [&dyn ToSql; 6] {
            [&event.job_id, &event.seq, &event.attempt, &event.event_type, &event.data, &tx.now]
        });
        tx.execute(&insert_sql(some.len()), params_from_iter(values))?;
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
        Some(_) => format!("{SELECT} WHERE job_id = ?1 AND id > ?2 ORDER BY seq LIMIT ?3"),
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
