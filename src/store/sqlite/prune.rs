//! Deleting old finished jobs, a bounded number per transaction. What the disk
//! should hold stays known: the latest applied effect of every path is kept,
//! unless it is to be forgotten.

use rusqlite::params;

use super::row::read;
use super::tx::Tx;
use crate::error::Result;
use crate::store::PruneRequest;

/// Rows per transaction: short enough that others get their turn.
const AT_ONCE: u32 = 1_000;

pub(super) fn prune(tx: &Tx<'_>, request: &PruneRequest) -> Result<u64> {
    let old = tx.rows(PRUNABLE, params![request.ended_before, request.failed, AT_ONCE, request.job_type], |row| {
        Ok((row.get::<_, i64>(0)?, read::<String>(row, 1)?))
    })?;
    for (seq, id) in &old {
        tx.execute(EFFECTS, params![id, request.forget])?;
        tx.execute("DELETE FROM jobs WHERE seq = ?1", params![seq])?;
    }
    Ok(old.len() as u64)
}

/// A job that any other still names in `waiting_on` stays.
pub(super) const PRUNABLE: &str = "SELECT seq, id FROM jobs INDEXED BY jobs_finished
      WHERE completed_at < ?1 AND (status IN ('completed', 'cancelled') OR (?2 AND status = 'failed'))
        AND (?4 IS NULL OR +type = ?4)
        AND NOT EXISTS (SELECT 1 FROM jobs w WHERE w.waiting_on = jobs.id)
      ORDER BY completed_at LIMIT ?3";

/// Plans of this job that will never be carried out; on its paths, effects that
/// a later one has replaced, of this job or of jobs that are gone already; and,
/// to forget, the latest too, once nothing older is left that would come back
/// into view as if it were the latest.
const EFFECTS: &str = "DELETE FROM effects
      WHERE path IN (SELECT path FROM effects mine WHERE mine.job_id = ?1)
        AND (job_id = ?1 OR NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = effects.job_id))
        AND (state = 'planned'
             OR EXISTS (SELECT 1 FROM effects later
                         WHERE later.path = effects.path AND later.applied_in > effects.applied_in)
             OR (?2 AND NOT EXISTS (SELECT 1 FROM effects other
                                     WHERE other.path = effects.path AND other.job_id <> effects.job_id
                                       AND (other.state = 'planned' OR other.applied_in < effects.applied_in))))";
