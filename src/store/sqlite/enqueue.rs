//! Accepting jobs. The answer always names a job: the new one, or the one that
//! was already there.

use rusqlite::params;

use super::admit;
use super::gates::{self, Waiter};
use super::row::read;
use super::tx::Tx;
use crate::error::{Error, ErrorKind, Result, printable};
use crate::json::{DEFAULT_KEY, JsonText, same_meaning};
use crate::new_job::Unique;
use crate::state::{Gate, Status};
use crate::store::{Dedup, EnqueueJob, EnqueueOutcome, Enqueued};

/// All of them or none, in this order.
pub(super) fn enqueue(tx: &Tx<'_>, jobs: &[EnqueueJob]) -> Result<Vec<Enqueued>> {
    // Rows that other programs inserted come before ours in order of seq, so
    // their keys and holds have to be known first.
    admit::admit(tx)?;
    let one = jobs.len() == 1;
    jobs.iter()
        .enumerate()
        .map(|(index, job)| insert(tx, job).map_err(|e| if one { e } else { e.in_item(index) }))
        .collect()
}

pub(super) fn insert(tx: &Tx<'_>, job: &EnqueueJob) -> Result<Enqueued> {
    if job.id_given
        && let Some(existing) = by_id(tx, job)?
    {
        return Ok(existing);
    }
    if let Some(existing) = duplicate_of(tx, job)? {
        return Ok(existing.answer(job));
    }
    let waiting_on = match &job.waiting_on {
        Some(parent) => open_parent(tx, parent, i64::MAX)?.then_some(parent.as_str()),
        None => None,
    };
    let gate = if job.admitted {
        let waiter = Waiter { seq: i64::MAX, waiting_on, run_at: job.run_at, rescheduled: false, holds: &job.holds };
        gates::gate_of(tx, &waiter)?
    } else {
        Gate::New
    };
    let key = match &job.dedup {
        Dedup::Key(key) => Some(key.as_str()),
        // An unadmitted row says "no key" as a plain-SQL row does.
        Dedup::None if !job.admitted => Some(""),
        Dedup::None | Dedup::NewestHolder(_) => None,
    };
    let holds = (!job.holds.is_empty()).then(|| serde_json::json!(job.holds).to_string());
    // The unique index finds an unfinished job with the same key; asking first
    // would look it up twice.
    let inserted = tx.execute(
        "INSERT OR FAIL INTO jobs (id, type, payload, gate, priority, max_attempts, created_at, run_at, timeout,
                           backoff_base, backoff_max, waiting_on, idempotency_key, correlation_id,
                           payload_hash, holds)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
         ON CONFLICT (type, idempotency_key)
               WHERE idempotency_key IS NOT NULL AND idempotency_key <> '' AND completed_at IS NULL
               DO NOTHING",
        params![
            job.id,
            job.job_type,
            job.payload,
            gate,
            job.priority,
            job.max_attempts,
            tx.now,
            job.run_at,
            job.timeout,
            signed(job.backoff.base_ms),
            signed(job.backoff.max_ms),
            waiting_on,
            key,
            job.correlation_id,
            // Filled in by admission for the others: a hash says "admitted".
            job.admitted.then_some(&job.payload_hash),
            holds,
        ],
    )?;
    if inserted == 0 {
        let existing = by_active_key(tx, &job.job_type, key.unwrap_or_default())?;
        return existing
            .map(|found| found.answer(job))
            .ok_or_else(|| Error::new(ErrorKind::Internal, format!("job {} was neither inserted nor found", job.id)));
    }
    if job.admitted {
        gates::take_holds(tx, tx.conn.last_insert_rowid(), &job.id, &job.holds, false)?;
    }
    Ok(Enqueued {
        id: job.id.clone(),
        job_type: job.job_type.clone(),
        status: Status::Pending,
        outcome: EnqueueOutcome::Inserted,
        same_payload: true,
    })
}

/// Whether there is something to wait for: the parent exists, was accepted
/// earlier, and can still complete. False when it already has.
pub(super) fn open_parent(tx: &Tx<'_>, parent: &str, before_seq: i64) -> Result<bool> {
    let found = tx.row("SELECT seq, status FROM jobs WHERE id = ?1", params![parent], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Status>(1)?))
    })?;
    match found {
        None => Err(Error::new(
            ErrorKind::NotFound,
            format!("waiting_on: no job {}; it takes the whole id of a job that is there", printable(parent)),
        )),
        Some((seq, _)) if seq >= before_seq => Err(Error::invalid(
            "waiting_on",
            format_args!("job {parent} was queued later; a job waits only on an earlier one"),
        )),
        Some((_, Status::Completed)) => Ok(false),
        Some((_, status @ (Status::Failed | Status::Cancelled))) => Err(Error::wrong_state(format!(
            "waiting_on: job {parent} is {status} and will not complete; retry it first"
        ))),
        Some((_, Status::Pending | Status::Claimed)) => Ok(true),
    }
}

/// The same id again is the same request, or a mistake.
pub(super) fn by_id(tx: &Tx<'_>, job: &EnqueueJob) -> Result<Option<Enqueued>> {
    let Some(found) = Found::query(tx, "WHERE id = ?1", params![job.id])? else { return Ok(None) };
    let answer = found.answer(job);
    if found.job_type == job.job_type && answer.same_payload {
        return Ok(Some(answer));
    }
    Err(Error::new(
        ErrorKind::Conflict,
        format!("id {} already names a {} job with other content; use another id", job.id, found.job_type),
    ))
}

/// A job that stands for this one, other than an unfinished one with its key.
fn duplicate_of(tx: &Tx<'_>, job: &EnqueueJob) -> Result<Option<Found>> {
    match &job.dedup {
        Dedup::NewestHolder(keys) => newest_holder(tx, &job.job_type, &job.payload, keys, i64::MAX),
        Dedup::Key(key) if job.unique == Unique::Always => {
            // An unfinished one comes first, as it does without `always`.
            let active = by_active_key(tx, &job.job_type, key)?;
            if active.is_some() { Ok(active) } else { by_finished_key(tx, &job.job_type, key) }
        }
        // The INSERT itself finds an unfinished job with the same key. Two cases have to know before: a job
        // that waits (what it waits for may be gone, but its twin is there all the same), and a row that is
        // not admitted (inserted as by plain SQL, where the schema refuses a key that is taken).
        Dedup::Key(key) if job.waiting_on.is_some() || !job.admitted => by_active_key(tx, &job.job_type, key),
        Dedup::None | Dedup::Key(_) => Ok(None),
    }
}

pub(super) fn by_active_key(tx: &Tx<'_>, job_type: &str, key: &str) -> Result<Option<Found>> {
    Found::query(
        tx,
        "INDEXED BY jobs_active_key WHERE type = ?1 AND idempotency_key = ?2 AND idempotency_key <> ''
            AND completed_at IS NULL",
        params![job_type, key],
    )
}

/// The newest finished job with this key. Default keys are not in the index of
/// finished keys, so for those the type's finished jobs are looked through.
fn by_finished_key(tx: &Tx<'_>, job_type: &str, key: &str) -> Result<Option<Found>> {
    let which = if key.starts_with(DEFAULT_KEY) {
        "INDEXED BY jobs_by_type WHERE type = ?1 AND idempotency_key = ?2
            AND (status = 'completed' OR status = 'failed' OR status = 'cancelled') ORDER BY seq DESC LIMIT 1"
    } else {
        "INDEXED BY jobs_finished_key WHERE type = ?1 AND idempotency_key = ?2 AND idempotency_key <> ''
            AND (idempotency_key < 'payload:' OR idempotency_key >= 'payload;')
            AND completed_at IS NOT NULL ORDER BY seq DESC LIMIT 1"
    };
    Found::query(tx, which, params![job_type, key])
}

/// The job that is newest on all of these keys (below `before_seq`), if it has
/// the same type and payload. An older equal one does not count: what came
/// after it has to be undone again.
pub(super) fn newest_holder(
    tx: &Tx<'_>,
    job_type: &str,
    payload: &str,
    keys: &[String],
    before_seq: i64,
) -> Result<Option<Found>> {
    let mut newest = None;
    for key in keys {
        let seq = tx.row(
            "SELECT seq FROM job_holds WHERE key = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT 1",
            params![key, before_seq],
            |row| row.get::<_, i64>(0),
        )?;
        if seq.is_none() || newest.is_some_and(|n| Some(n) != seq) {
            return Ok(None);
        }
        newest = seq;
    }
    let Some(seq) = newest else { return Ok(None) };
    let found = Found::query(tx, "WHERE seq = ?1", params![seq])?;
    Ok(found.filter(|f| f.job_type == job_type && !f.cancel_requested && same_meaning(f.payload.as_str(), payload)))
}

/// A job that may stand for a new one.
pub(super) struct Found {
    pub(super) seq: i64,
    pub(super) id: String,
    job_type: String,
    status: Status,
    cancel_requested: bool,
    payload: JsonText,
}

impl Found {
    fn query(tx: &Tx<'_>, which: &str, params: impl rusqlite::Params) -> Result<Option<Self>> {
        let sql = format!("SELECT seq, id, type, status, cancel_requested, payload FROM jobs {which}");
        tx.row(&sql, params, |row| {
            Ok(Self {
                seq: row.get(0)?,
                id: read(row, 1)?,
                job_type: read(row, 2)?,
                status: row.get(3)?,
                cancel_requested: row.get(4)?,
                payload: read(row, 5)?,
            })
        })
    }

    fn answer(&self, asked: &EnqueueJob) -> Enqueued {
        Enqueued {
            id: self.id.clone(),
            job_type: self.job_type.clone(),
            status: self.status,
            outcome: EnqueueOutcome::Existing,
            same_payload: same_meaning(self.payload.as_str(), &asked.payload),
        }
    }
}

fn signed(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}

/// Queues what a job has asked for, all or none.
pub(super) fn follow_ups(tx: &Tx<'_>, jobs: &[EnqueueJob]) -> Result<()> {
    if jobs.is_empty() {
        return Ok(());
    }
    admit::admit(tx)?;
    for (number, job) in (1..).zip(jobs) {
        insert(tx, job).map_err(|error| {
            let which = format!("follow-up job {number} ({} {})", job.job_type, job.id);
            match error.kind() {
                // That what it names is not there says nothing of the job that asked for it. Those who settle
                // that one would take it for gone, and run it again and again.
                ErrorKind::NotFound | ErrorKind::LeaseLost | ErrorKind::PathBusy => {
                    Error::invalid("follow_ups", error.message()).context(which)
                }
                _ => error.context(which),
            }
        })?;
    }
    Ok(())
}

/// Checks follow-up jobs without keeping them: what decide promises to queue
/// must be something that can be queued.
pub(super) fn rehearse(tx: &Tx<'_>, jobs: &[EnqueueJob]) -> Result<()> {
    if jobs.is_empty() {
        return Ok(());
    }
    tx.rolled_back(|| follow_ups(tx, jobs))
}
