//! Recording a state folder other than the one in which the queue was made.

use std::path::Path;

use rusqlite::params;

use super::schema;
use super::tx::Tx;
use crate::error::{Error, ErrorKind, Result};
use crate::site::{self, Attach};

pub(super) fn attach(tx: &Tx<'_>, state: &Path, how: Attach) -> Result<bool> {
    let identity = site::identity(state)
        .ok_or_else(|| Error::new(ErrorKind::Io, format!("the folder {} is missing", state.display())))?;
    if schema::site(tx.conn)?.as_ref() == Some(&identity) {
        return Ok(false);
    }
    schema::refuse_altered(tx.conn)?;
    if how == Attach::New {
        end_all(tx)?;
    }
    schema::record_site(tx.conn, &identity)?;
    Ok(true)
}

/// The original still runs these jobs, so they end here. Their owners do not work in this folder. Failed jobs that were
/// decided count as withdrawn, too: a retry would apply their plans. Without plans, a sweep removes what they have staged.
fn end_all(tx: &Tx<'_>) -> Result<()> {
    let why = format!("{}: the queue was attached as a new one", crate::store::WITHDRAWN);
    tx.execute(
        "INSERT INTO job_events (job_id, seq, attempt, type, at)
         SELECT id, event_seq + 1, attempts, CASE WHEN outcome IS NULL THEN 'cancelled' ELSE 'failed' END, ?1
           FROM jobs WHERE status IN ('pending', 'claimed') ORDER BY seq",
        params![tx.now],
    )?;
    tx.execute(
        "UPDATE OR FAIL jobs SET status = CASE WHEN outcome IS NULL THEN 'cancelled' ELSE 'failed' END, gate = NULL,
                locked_by = NULL, locked_at = NULL, completed_at = ?1, event_seq = event_seq + 1
          WHERE status IN ('pending', 'claimed')",
        params![tx.now],
    )?;
    tx.execute(
        "UPDATE jobs SET last_error = ?2
          WHERE (status = 'failed' AND outcome IS NOT NULL) OR (completed_at = ?1 AND status = 'cancelled')",
        params![tx.now, why],
    )?;
    tx.execute("DELETE FROM job_holds", [])?;
    tx.execute("DELETE FROM effects WHERE state = 'planned'", [])?;
    Ok(())
}
