//! Taking jobs back from owners that died or went silent. The caller has
//! judged who that is; here it is made true, once.

use std::collections::HashSet;

use rusqlite::params;

use super::aside::Around;
use super::events::{self, NewEvent};
use super::lease::{self, End, Held};
use super::reschedule::{Back, to_pending};
use super::row::read;
use super::tx::Tx;
use crate::error::Result;
use crate::store::{DeadOwner, Failure, HeldLease, LapsedLease, Lease, Owner, Reclaim, Reclaimed, Started};

pub(super) fn reclaim(tx: &Tx<'_>, request: &Reclaim, around: &Around) -> Result<Reclaimed> {
    let mut reclaimed = Reclaimed::default();
    for owner in &request.dead {
        let before = reclaimed.left.len();
        for lease in leases_of(tx, &owner.locked_by)? {
            if around.aside.contains(&lease.seq) {
                reclaimed.left.push(lease.id);
                continue;
            }
            let started = was_started(owner, &lease);
            let taken = take_back(tx, &lease, started, &owner.locked_by, &mut reclaimed);
            taken.map_err(|error| error.of_row(lease.seq))?;
        }
        // What is left is still to be judged by its owner.
        if reclaimed.left.len() == before {
            tx.execute("DELETE FROM owners WHERE locked_by = ?1", params![owner.locked_by])?;
        }
    }
    for lapsed in &request.lapsed {
        let seq = lapsed.lease.seq;
        if around.aside.contains(&seq) {
            reclaimed.left.push(lapsed.lease.id.clone());
            continue;
        }
        take_back_if_silent(tx, lapsed, &mut reclaimed).map_err(|error| error.of_row(seq))?;
    }
    Ok(reclaimed)
}

fn take_back_if_silent(tx: &Tx<'_>, lapsed: &LapsedLease, reclaimed: &mut Reclaimed) -> Result<()> {
    let Some(locked_by) = still_silent(tx, lapsed)? else { return Ok(()) };
    take_back(tx, &lapsed.lease, lapsed.started, &locked_by, reclaimed)
}

fn was_started(owner: &DeadOwner, lease: &Lease) -> Started {
    match owner.started.as_ref().map(|started: &HashSet<_>| started.contains(&(lease.seq, lease.token))) {
        None => Started::Unknown,
        Some(true) => Started::Yes,
        Some(false) => Started::No,
    }
}

/// The owner, if the lease is the one that was judged and has not stirred since.
fn still_silent(tx: &Tx<'_>, lapsed: &LapsedLease) -> Result<Option<String>> {
    let lease = &lapsed.lease;
    tx.row(
        "SELECT locked_by FROM jobs WHERE seq = ?1 AND id = ?2 AND token = ?3 AND heartbeat = ?4
            AND status = 'claimed' AND locked_by IS NOT NULL",
        params![lease.seq, lease.id, lease.token, lapsed.heartbeat],
        |row| row.get(0),
    )
}

fn take_back(tx: &Tx<'_>, lease: &Lease, started: Started, from: &str, done: &mut Reclaimed) -> Result<()> {
    let mut held = lease::current(tx, lease)?;
    let lost = Some(serde_json::json!({ "worker": from }).to_string());
    if held.decided {
        return free_decided(tx, lease, &held, lost, done);
    }
    if held.cancel_requested {
        say(tx, lease, &mut held, "worker_lost", lost)?;
        lease::end(tx, lease, &held, End::cancelled())?;
        done.cancelled.push(lease.id.clone());
        return Ok(());
    }
    if started == Started::Yes && held.attempts >= held.max_attempts {
        say(tx, lease, &mut held, "worker_lost", lost)?;
        let failure = Failure::new(
            "worker_lost",
            format!("worker {from} was lost while running this job, and its attempts are used up"),
        );
        lease::end(tx, lease, &held, End::failed(&failure))?;
        done.failed.push(lease.id.clone());
        return Ok(());
    }
    let back = Back {
        attempts: if started == Started::No { held.attempts.saturating_sub(1) } else { held.attempts },
        has_run: started != Started::No,
        run_at: held.run_at,
        backoff_max: held.backoff_max,
        last_error: (started != Started::No).then(|| format!("worker_lost: worker {from} was lost")),
        result: None,
        events: vec![("worker_lost", lost), ("reclaimed", None)],
    };
    to_pending(tx, lease, &held, back)?;
    done.pending.push(lease.id.clone());
    Ok(())
}

/// A decided job stays claimed and is nobody's: whoever comes applies it.
fn free_decided(tx: &Tx<'_>, lease: &Lease, held: &Held, lost: Option<String>, done: &mut Reclaimed) -> Result<()> {
    tx.execute(
        "UPDATE OR FAIL jobs SET locked_by = NULL, locked_at = NULL, run_at = NULL, event_seq = event_seq + 2 * (event_seq < 9223372036854775806)
          WHERE seq = ?1 AND token = ?2 AND status = 'claimed'",
        params![lease.seq, lease.token],
    )?;
    for (number, (event_type, data)) in (0..).zip([("worker_lost", lost), ("reclaimed", None)]) {
        let seq = held.event_seq.saturating_add(1 + number);
        events::write(tx, &NewEvent { job_id: &lease.id, seq, attempt: held.attempts, event_type, data })?;
    }
    done.unowned.push(lease.id.clone());
    Ok(())
}

/// An event that comes before the one its job ends with.
fn say(tx: &Tx<'_>, lease: &Lease, held: &mut Held, event_type: &'static str, data: Option<String>) -> Result<()> {
    held.event_seq = held.event_seq.saturating_add(1);
    tx.execute(
        "UPDATE OR FAIL jobs SET event_seq = event_seq + (event_seq < 9223372036854775807) WHERE seq = ?1",
        params![lease.seq],
    )?;
    let event = NewEvent { job_id: &lease.id, seq: held.event_seq, attempt: held.attempts, event_type, data };
    events::write(tx, &event).map(drop)
}

fn leases_of(tx: &Tx<'_>, locked_by: &str) -> Result<Vec<Lease>> {
    tx.rows(OWNED_BY, params![locked_by], |row| Ok(Lease { seq: row.get(0)?, id: read(row, 1)?, token: row.get(2)? }))
}

pub(super) const OWNED_BY: &str = "SELECT seq, id, token FROM jobs INDEXED BY jobs_by_status
      WHERE status = 'claimed' AND locked_by = ?1";

/// Who has what, with what is known of the owner.
pub(super) fn leases(conn: &rusqlite::Connection) -> Result<Vec<HeldLease>> {
    let sql_error = super::connection::sql_error;
    let mut statement = conn
        .prepare_cached(
            "SELECT j.seq, j.id, j.token, j.heartbeat, j.locked_by,
                    o.machine_id, o.boot_id, o.pid, o.lock_file, j.outcome IS NOT NULL
               FROM jobs j INDEXED BY jobs_by_status LEFT JOIN owners o ON o.locked_by = j.locked_by
              WHERE j.status = 'claimed' AND j.locked_by IS NOT NULL ORDER BY j.seq",
        )
        .map_err(sql_error)?;
    let rows = statement
        .query_map([], |row| {
            let locked_by: String = read(row, 4)?;
            let owner = match read::<Option<String>>(row, 5)? {
                Some(machine_id) => Some(Owner {
                    locked_by: locked_by.clone(),
                    machine_id,
                    boot_id: read(row, 6)?,
                    pid: read(row, 7)?,
                    lock_file: read(row, 8)?,
                }),
                None => None,
            };
            Ok(HeldLease {
                lease: Lease { seq: row.get(0)?, id: read(row, 1)?, token: row.get(2)? },
                heartbeat: row.get(3)?,
                decided: row.get(9)?,
                locked_by,
                owner,
            })
        })
        .map_err(sql_error)?;
    rows.collect::<rusqlite::Result<_>>().map_err(sql_error)
}
