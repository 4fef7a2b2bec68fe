//! Signs of life, with progress for people and checkpoints for the next
//! attempt.

use rusqlite::params;

use super::events::{self, NewEvent};
use super::row::read;
use super::tx::Tx;
use crate::error::{Error, Result};
use crate::store::{Beat, Pulse};

pub(super) fn heartbeat(tx: &Tx<'_>, beats: &[Beat]) -> Result<Vec<Pulse>> {
    beats.iter().map(|beat| one(tx, beat).map_err(|error| error.of_row(beat.lease.seq))).collect()
}

fn one(tx: &Tx<'_>, beat: &Beat) -> Result<Pulse> {
    let progress =
        beat.progress.as_ref().map(serde_json::to_string).transpose().map_err(|e| Error::invalid("progress", e))?;
    let lease = &beat.lease;
    // One that has come to the end of numbers begins anew: it must not stand still.
    let alive = tx.row(
        "UPDATE OR FAIL jobs SET heartbeat = CASE WHEN heartbeat < 9223372036854775807 THEN heartbeat + 1 ELSE 0 END,
                heartbeat_at = ?4, progress = coalesce(?5, progress),
                checkpoint = coalesce(?6, checkpoint), event_seq = event_seq + (?5 IS NOT NULL AND event_seq < 9223372036854775807)
          WHERE seq = ?1 AND id = ?2 AND token = ?3 AND status = 'claimed' AND locked_by IS NOT NULL
        RETURNING cancel_requested, attempts, event_seq",
        params![lease.seq, lease.id, lease.token, tx.now, progress, beat.checkpoint],
        |row| Ok((row.get::<_, bool>(0)?, read::<u32>(row, 1)?, row.get::<_, i64>(2)?)),
    )?;
    let Some((cancel_requested, attempt, seq)) = alive else { return Ok(Pulse::Lost) };
    if progress.is_some() {
        events::write(tx, &NewEvent { job_id: &lease.id, seq, attempt, event_type: "progress", data: progress })?;
    }
    Ok(if cancel_requested { Pulse::CancelRequested } else { Pulse::Alive })
}
