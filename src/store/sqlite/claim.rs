//! Taking jobs. First which ones, then each by an UPDATE that still requires
//! `pending`, so two claimers can never get the same job.

use std::cmp::Reverse;
use std::fmt::Write as _;

use rusqlite::{params, params_from_iter, types::Value};

use super::aside::Around;
use super::cancel::{self, Reason};
use super::events::{self, NewEvent};
use super::lease::{self, End};
use super::row::{self, hold_keys};
use super::tx::Tx;
use super::{admit, gates, limits, owners, pauses};
use crate::error::{Error, ErrorKind, Result};
use crate::json;
use crate::store::{ClaimRequest, ClaimedJob, Failure, Lease, Owner};

/// A claim ends when the payloads of what it took have this many bytes: they
/// are all in memory until the last of them has run.
const MOST_BYTES: usize = 32 << 20;
/// Types in one statement; SQLite takes no more than 500 parts of a UNION.
const TYPES_AT_ONCE: usize = 200;

pub(super) fn claim(tx: &Tx<'_>, request: &ClaimRequest, around: &Around) -> Result<Vec<ClaimedJob>> {
    admit::admit(tx)?;
    if around.carefully {
        gates::promote_carefully(tx, around)?;
    } else {
        gates::promote_due(tx)?;
    }
    let paused = pauses::current_and_forget_past(tx)?;
    let is_open = |name: &&String| !paused.iter().any(|pause| pause.job_type == **name);
    let types: Vec<&String> = request.types.iter().filter(is_open).collect();
    loop {
        let candidates = candidates(tx, request, &types, around)?;
        let jobs = if around.carefully {
            if candidates.is_empty() {
                return Ok(Vec::new());
            }
            one_by_one(tx, &request.owner, &candidates)?
        } else {
            let claimed = take(tx, &request.owner, &candidates)?;
            if claimed.is_empty() {
                return Ok(Vec::new());
            }
            owners::register(tx, &request.owner)?;
            settle(tx, &request.owner, claimed)?
        };
        // All of them damaged: there may be sound ones behind them.
        if !jobs.is_empty() {
            return Ok(jobs);
        }
    }
}

/// So that an error tells of which it is.
fn one_by_one(tx: &Tx<'_>, owner: &Owner, candidates: &[i64]) -> Result<Vec<ClaimedJob>> {
    let (mut jobs, mut bytes) = (Vec::new(), 0);
    for seq in candidates {
        jobs.extend(by_itself(tx, owner, *seq).map_err(|error| error.of_row(*seq))?);
        bytes += jobs.last().map_or(0, |claim: &ClaimedJob| claim.job.payload.as_str().len());
        if bytes >= MOST_BYTES {
            break;
        }
    }
    Ok(jobs)
}

fn by_itself(tx: &Tx<'_>, owner: &Owner, seq: i64) -> Result<Vec<ClaimedJob>> {
    let token = tx.row("SELECT token FROM jobs WHERE seq = ?1", params![seq], |row| row.get::<_, i64>(0))?;
    if token == Some(i64::MAX) {
        // It names each claim once and for all, so there cannot be another one. Without a claim a job cannot fail.
        let why = "token_damaged: the job's fencing token cannot grow, so it can never be claimed; queue it again";
        cancel::cancel_pending(tx, seq, &Reason { last_error: Some(why.to_owned()), data: None })?;
        return Ok(Vec::new());
    }
    // As many as can be told, and one that can be counted.
    tx.execute("UPDATE OR FAIL jobs SET attempts = ?2 WHERE seq = ?1 AND attempts > ?2", params![seq, u32::MAX])?;
    let claimed = take(tx, owner, &[seq])?;
    if claimed.is_empty() {
        return Err(Error::new(ErrorKind::Internal, "the index of claimable jobs has one that is not; it is damaged"));
    }
    owners::register(tx, owner)?;
    settle(tx, owner, claimed)
}

/// A place in the order of claims: the priority, then the seq.
type Place = (Reverse<i64>, i64);

/// The best claimable rows of these types, best first.
fn candidates(tx: &Tx<'_>, request: &ClaimRequest, types: &[&String], around: &Around) -> Result<Vec<i64>> {
    if request.limit == 0 {
        return Ok(Vec::new());
    }
    let (limited, free): (Vec<&String>, Vec<&String>) =
        types.iter().partition(|name| request.limits.contains_key(**name));
    let mut best: Vec<Place> = Vec::new();
    for types in free.chunks(TYPES_AT_ONCE) {
        best.extend(best_of(tx, types, request.limit, around)?);
    }
    for name in limited {
        let mut some = best_of(tx, &[name], request.limit, around)?;
        // Counted only if there is something to take.
        if let (Some(limit), false) = (request.limits.get(name), some.is_empty()) {
            some.truncate(usize::try_from(limits::room(tx.conn, name, *limit)?).unwrap_or(usize::MAX));
        }
        best.extend(some);
    }
    best.sort_unstable();
    // A type may have been asked for twice.
    best.dedup();
    best.truncate(usize::try_from(request.limit).unwrap_or(usize::MAX));
    Ok(best.into_iter().map(|(_, seq)| seq).collect())
}

fn best_of(tx: &Tx<'_>, types: &[&String], limit: u32, around: &Around) -> Result<Vec<Place>> {
    let limit = around.limit(limit);
    let values = std::iter::once(Value::from(limit)).chain(types.iter().map(|name| Value::from((*name).clone())));
    let place = |row: &rusqlite::Row<'_>| Ok((Reverse(row.get(0)?), row.get(1)?));
    let mut best: Vec<Place> = tx.rows(&candidates_sql(types.len()), params_from_iter(values), place)?;
    best.retain(|(_, seq)| !around.aside.contains(seq));
    Ok(best)
}

/// The best rows of each type, then the best of those. Each type's part walks
/// its own stretch of `jobs_ready`, which holds claimable rows only.
pub(super) fn candidates_sql(types: usize) -> String {
    let mut parts = String::new();
    for number in 0..types {
        let union = if number == 0 { "" } else { " UNION ALL " };
        let _ = write!(
            parts,
            "{union}SELECT * FROM (SELECT priority, seq FROM jobs INDEXED BY jobs_ready
              WHERE gate = 'ready' AND type = ?{} ORDER BY priority DESC, seq LIMIT ?1)",
            number + 2
        );
    }
    // What one type gives is in order.
    if types == 1 { parts } else { format!("{parts} ORDER BY priority DESC, seq LIMIT ?1") }
}

/// Takes them one by one, so that it can stop when there are enough bytes. Taken, then read: RETURNING would make a
/// temporary table for each. One statement for all would save little more, and by old statistics SQLite might walk all
/// jobs to find these.
fn take(tx: &Tx<'_>, owner: &Owner, candidates: &[i64]) -> Result<Vec<(ClaimedJob, i64)>> {
    let taken_sql = taken_sql();
    let mut bytes = 0;
    let mut claimed = Vec::with_capacity(candidates.len());
    for seq in candidates {
        if tx.execute(TAKE, params![owner.locked_by, tx.now, seq])? == 1 {
            let taken = tx.row(&taken_sql, params![seq], read)?;
            bytes += taken.iter().map(|(claim, _)| claim.job.payload.as_str().len()).sum::<usize>();
            claimed.extend(taken);
        }
        if bytes >= MOST_BYTES {
            break;
        }
    }
    Ok(claimed)
}

/// A job that was inserted in this very transaction.
pub(super) fn this_one(tx: &Tx<'_>, owner: &Owner, id: &str) -> Result<Lease> {
    let seq = tx.row("SELECT seq FROM jobs WHERE id = ?1", params![id], |row| row.get(0))?;
    let taken = take(tx, owner, &[seq.ok_or_else(|| Error::not_found(id))?])?;
    owners::register(tx, owner)?;
    let claimed = settle(tx, owner, taken)?.pop();
    claimed
        .map(|claimed| claimed.lease)
        .ok_or_else(|| Error::new(ErrorKind::Internal, format!("job {id} was inserted and could not be claimed")))
}

/// The + keeps the planner from using the status for anything but the check.
pub(super) const TAKE: &str =
    "UPDATE OR FAIL jobs SET status = 'claimed', gate = NULL, locked_by = ?1, locked_at = ?2, claimed_at = ?2,
            heartbeat = 0, heartbeat_at = ?2, attempts = attempts + 1, token = token + 1,
            event_seq = event_seq + (event_seq < 9223372036854775807)
      WHERE seq = ?3 AND +status = 'pending'";

fn taken_sql() -> String {
    format!("SELECT {}, event_seq FROM jobs WHERE seq = ?1", row::COLUMNS)
}

/// Decided jobs that nobody owns: claimed again with a new token, the attempt
/// not counted, since no handler will run.
pub(super) fn take_over(tx: &Tx<'_>, owner: &Owner, limit: u32, around: &Around) -> Result<Vec<ClaimedJob>> {
    if around.carefully {
        return take_over_one_by_one(tx, owner, limit, around);
    }
    let claimed = tx.rows(&take_over_sql(), params![owner.locked_by, tx.now, limit], read)?;
    if !claimed.is_empty() {
        owners::register(tx, owner)?;
    }
    let mut jobs = settle(tx, owner, claimed)?;
    jobs.sort_unstable_by_key(|c| c.job.seq);
    Ok(jobs)
}

fn take_over_one_by_one(tx: &Tx<'_>, owner: &Owner, limit: u32, around: &Around) -> Result<Vec<ClaimedJob>> {
    let free = format!("SELECT free {FREE}");
    let mut free = tx.rows(&free, params![None::<i64>, tx.now, around.limit(limit)], |row| row.get::<_, i64>(0))?;
    around.others(&mut free);
    let sql = format!("{TAKE_OVER} WHERE seq = ?3 AND status = 'claimed' RETURNING {}, event_seq", row::COLUMNS);
    let mut jobs = Vec::new();
    for seq in free {
        let one = || {
            let taken = tx.rows(&sql, params![owner.locked_by, tx.now, seq], read)?;
            owners::register(tx, owner)?;
            settle(tx, owner, taken)
        };
        jobs.extend(one().map_err(|error| error.of_row(seq))?);
    }
    Ok(jobs)
}

const TAKE_OVER: &str = "UPDATE OR FAIL jobs SET locked_by = ?1, locked_at = ?2, claimed_at = ?2, heartbeat = 0,
                heartbeat_at = ?2, token = token + 1, event_seq = event_seq + (event_seq < 9223372036854775807)";

const FREE: &str = "FROM (SELECT seq AS free FROM jobs INDEXED BY jobs_unowned
                  WHERE status = 'claimed' AND locked_by IS NULL
                    AND (run_at IS NULL OR run_at <= ?2 OR run_at - backoff_max > ?2)
                  ORDER BY run_at, seq LIMIT ?3)";

pub(super) fn take_over_sql() -> String {
    format!("{TAKE_OVER} {FREE} WHERE seq = free AND +status = 'claimed' RETURNING {}, event_seq", row::COLUMNS)
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<(ClaimedJob, i64)> {
    let job = row::job(row)?;
    let lease = Lease { id: job.id.clone(), seq: job.seq, token: job.token };
    Ok((ClaimedJob { lease, job }, row.get(row::COUNT)?))
}

/// Events and holds of freshly claimed rows. A row whose payload is damaged
/// ends here, alone.
fn settle(tx: &Tx<'_>, owner: &Owner, claimed: Vec<(ClaimedJob, i64)>) -> Result<Vec<ClaimedJob>> {
    let data = serde_json::json!({ "worker": owner.locked_by }).to_string();
    let told: Vec<_> = claimed
        .iter()
        .map(|(claim, seq)| NewEvent {
            job_id: &claim.job.id,
            seq: *seq,
            attempt: claim.job.attempts,
            event_type: "claimed",
            data: Some(data.clone()),
        })
        .collect();
    events::write_all(tx, &told)?;
    let mut sound = Vec::with_capacity(claimed.len());
    for (claim, _) in claimed {
        let job = &claim.job;
        if let Some(holds) = &job.holds {
            gates::set_active(tx, job.seq, &hold_keys(Some(holds.as_str())), true)?;
        }
        if job.payload_hash.as_deref() == Some(&json::sha256_hex(job.payload.as_str().as_bytes())) {
            sound.push(claim);
        } else {
            let failure =
                Failure::new("payload_damaged", "the stored payload does not match its hash; queue the job again");
            let held = lease::current(tx, &claim.lease)?;
            lease::end(tx, &claim.lease, &held, End::failed(&failure))?;
        }
    }
    Ok(sound)
}
