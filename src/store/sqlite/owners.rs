//! Who has claimed: on record before the claim is durable, so that a claim's
//! owner can always be judged, and struck when there is nothing to judge.

use rusqlite::{Connection, Row, params};

use super::connection::sql_error;
use super::row::read;
use super::tx::Tx;
use crate::error::Result;
use crate::store::Owner;

/// In the transaction of the claim.
pub(super) fn register(tx: &Tx<'_>, owner: &Owner) -> Result<()> {
    tx.execute(
        "INSERT INTO owners (locked_by, machine_id, boot_id, pid, lock_file, started_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
        params![owner.locked_by, owner.machine_id, owner.boot_id, owner.pid, owner.lock_file, tx.now],
    )?;
    Ok(())
}

pub(super) fn idle(conn: &Connection) -> Result<Vec<Owner>> {
    let sql = format!(
        "SELECT locked_by, machine_id, boot_id, pid, lock_file FROM owners
          WHERE locked_by NOT IN ({CLAIMING}) ORDER BY locked_by"
    );
    let owner = |row: &Row<'_>| {
        Ok(Owner {
            locked_by: read(row, 0)?,
            machine_id: read(row, 1)?,
            boot_id: read(row, 2)?,
            pid: read(row, 3)?,
            lock_file: read(row, 4)?,
        })
    };
    let mut statement = conn.prepare_cached(&sql).map_err(sql_error)?;
    let rows = statement.query_map([], owner).map_err(sql_error)?;
    rows.collect::<rusqlite::Result<_>>().map_err(sql_error)
}

/// Looked at again here: who claims is on record, whatever was seen before.
pub(super) fn forget(tx: &Tx<'_>, locked_by: &[String]) -> Result<u64> {
    let sql = format!("DELETE FROM owners WHERE locked_by = ?1 AND locked_by NOT IN ({CLAIMING})");
    let mut gone = 0;
    for name in locked_by {
        gone += u64::try_from(tx.execute(&sql, params![name])?).unwrap_or(0);
    }
    Ok(gone)
}

const CLAIMING: &str = "SELECT locked_by FROM jobs INDEXED BY jobs_by_status
      WHERE status = 'claimed' AND locked_by IS NOT NULL";
