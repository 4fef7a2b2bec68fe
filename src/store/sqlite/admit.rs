//! Admitting rows that other programs inserted with plain SQL: validate, fill
//! in hash, key and holds, in order of seq. Only rows of types this process
//! knows; the others stay until someone comes who does.

use rusqlite::params;

use super::cancel;
use super::enqueue::{self, Found};
use super::events::{self, NewEvent};
use super::gates::{self, Waiter};
use super::lease::{self, End};
use super::row::read;
use super::tx::Tx;
use crate::error::{Error, Result};
use crate::json;
use crate::new_job::default_dedup;
use crate::payload::Hold;
use crate::store::{Dedup, Failure, Lease};

/// Returns how many rows were looked at.
pub(super) fn admit(tx: &Tx<'_>) -> Result<usize> {
    if tx.admitted.get() {
        return Ok(0);
    }
    // Nearly always there is nothing, and that is all this costs.
    if tx.row("SELECT 1 FROM jobs INDEXED BY jobs_new WHERE gate = 'new' LIMIT 1", [], |_| Ok(()))?.is_none() {
        tx.admitted.set(true);
        return Ok(0);
    }
    let mut found = Vec::new();
    for name in tx.types.names() {
        found.extend(tx.rows(
            "SELECT seq FROM jobs INDEXED BY jobs_new WHERE gate = 'new' AND type = ?1",
            params![name],
            |row| row.get::<_, i64>(0),
        )?);
    }
    found.sort_unstable();
    for &seq in &found {
        // Admitting an earlier row may have cancelled this one.
        if let Some(row) = NewRow::read(tx, seq)? {
            row.admit(tx)?;
        }
    }
    tx.admitted.set(true);
    Ok(found.len())
}

struct NewRow {
    seq: i64,
    id: String,
    job_type: String,
    payload: String,
    key: Option<String>,
    holds: Option<String>,
    waiting_on: Option<String>,
    run_at: Option<i64>,
    /// Some column is not UTF-8; what is read of it is only good for a message.
    not_text: bool,
}

/// What admission found a row to be.
enum Verdict {
    Fit { key: Option<String>, holds: Vec<String>, waiting_on: Option<String> },
    DuplicateOf(Found),
}

impl NewRow {
    fn read(tx: &Tx<'_>, seq: i64) -> Result<Option<Self>> {
        tx.row(
            "SELECT id, type, payload, idempotency_key, holds, waiting_on, run_at FROM jobs
              WHERE seq = ?1 AND gate = 'new'",
            params![seq],
            |row| {
                let is_text = |column| Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_str_or_null().is_ok());
                let mut not_text = false;
                for column in 0..6 {
                    not_text |= !is_text(column)?;
                }
                Ok(Self {
                    seq,
                    id: read(row, 0)?,
                    job_type: read(row, 1)?,
                    payload: read(row, 2)?,
                    key: read(row, 3)?,
                    holds: read(row, 4)?,
                    waiting_on: read(row, 5)?,
                    run_at: row.get(6)?,
                    not_text,
                })
            },
        )
    }

    fn admit(&self, tx: &Tx<'_>) -> Result<()> {
        match self.judge(tx) {
            Ok(Verdict::Fit { key, holds, waiting_on }) => {
                self.accept(tx, key.as_deref(), &holds, waiting_on.as_deref())
            }
            Ok(Verdict::DuplicateOf(other)) => self.cancel_as_duplicate(tx, &other),
            // What is wrong with the row ends the row; anything else ends this transaction.
            Err(error) if error.is_invalid() || error.is_not_found() || error.is_wrong_state() => {
                self.reject(tx, &error)
            }
            Err(error) => Err(error),
        }
    }

    fn judge(&self, tx: &Tx<'_>) -> Result<Verdict> {
        check_name(&self.id)?;
        if self.not_text {
            return Err(Error::invalid("row", "has a column that is not UTF-8 text"));
        }
        let payload = self.payload.as_str();
        let checked =
            tx.types.check(&self.job_type, payload).unwrap_or_else(|| Err(Error::invalid("type", "is not known")))?;
        let given = self.given_holds()?;
        let default = default_dedup(&checked, payload)?;
        let dedup = match self.key.as_deref() {
            Some("") => Dedup::None,
            // Queued by a process that did not know the type and used the rule for those.
            Some(key) if key.starts_with(json::DEFAULT_KEY) => default,
            Some(key) => Dedup::Key(key.to_owned()),
            None => default,
        };
        let duplicate = match &dedup {
            Dedup::None => None,
            Dedup::Key(key) => enqueue::by_active_key(tx, &self.job_type, key)?.filter(|f| f.seq != self.seq),
            Dedup::NewestHolder(keys) => enqueue::newest_holder(tx, &self.job_type, payload, keys, self.seq)?,
        };
        if let Some(other) = duplicate {
            return Ok(Verdict::DuplicateOf(other));
        }
        let waiting_on = match &self.waiting_on {
            Some(parent) if enqueue::open_parent(tx, parent, self.seq)? => Some(parent.clone()),
            _ => None,
        };
        let mut holds: Vec<String> = checked.holds.iter().map(|h| h.as_str().to_owned()).chain(given).collect();
        holds.sort();
        holds.dedup();
        let key = match dedup {
            Dedup::Key(key) => Some(key),
            Dedup::None | Dedup::NewestHolder(_) => None,
        };
        Ok(Verdict::Fit { key, holds, waiting_on })
    }

    /// A row may bring lanes of its own; anything else in `holds` is a mistake.
    fn given_holds(&self) -> Result<Vec<String>> {
        let Some(text) = self.holds.as_deref() else { return Ok(Vec::new()) };
        let wrong = || Error::invalid("holds", "is a JSON array of lanes, as in [\"lane:reports\"]");
        let keys: Vec<String> = serde_json::from_str(text).map_err(|_| wrong())?;
        keys.iter()
            .map(|key| Ok(Hold::lane(key.strip_prefix("lane:").ok_or_else(wrong)?)?.as_str().to_owned()))
            .collect()
    }

    fn accept(&self, tx: &Tx<'_>, key: Option<&str>, holds: &[String], waiting_on: Option<&str>) -> Result<()> {
        let waiter = Waiter { seq: self.seq, waiting_on, run_at: self.run_at, rescheduled: false, holds };
        let gate = gates::gate_of(tx, &waiter)?;
        let defaults = tx.types.defaults(&self.job_type);
        tx.execute(
            "UPDATE OR FAIL jobs SET gate = ?2, idempotency_key = ?3, holds = ?4, waiting_on = ?5, payload_hash = ?6,
                    timeout = coalesce(timeout, ?7), backoff_base = coalesce(backoff_base, ?8),
                    backoff_max = coalesce(backoff_max, ?9)
              WHERE seq = ?1 AND gate = 'new'",
            params![
                self.seq,
                gate,
                key,
                (!holds.is_empty()).then(|| serde_json::json!(holds).to_string()),
                waiting_on,
                json::sha256_hex(self.payload.as_bytes()),
                i64::try_from(defaults.timeout.as_millis()).unwrap_or(i64::MAX),
                i64::try_from(defaults.backoff.base_ms).unwrap_or(i64::MAX),
                i64::try_from(defaults.backoff.max_ms).unwrap_or(i64::MAX),
            ],
        )?;
        gates::take_holds(tx, self.seq, &self.id, holds, false)?;
        gates::demote_others(tx, self.seq, holds)
    }

    /// Every failure passes through `claimed`, this one too.
    fn reject(&self, tx: &Tx<'_>, why: &Error) -> Result<()> {
        let (token, event_seq) = tx
            .row(
                "UPDATE OR FAIL jobs SET status = 'claimed', gate = NULL, locked_by = 'admission', locked_at = ?2,
                        claimed_at = ?2, attempts = attempts + 1, token = token + 1, event_seq = event_seq + (event_seq < 9223372036854775807)
                  WHERE seq = ?1 AND status = 'pending' RETURNING token, event_seq",
                params![self.seq, tx.now],
                |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
            )?
            .ok_or_else(|| Error::not_found(&self.id))?;
        let claimed = NewEvent { job_id: &self.id, seq: event_seq, attempt: 1, event_type: "claimed", data: None };
        events::write(tx, &claimed)?;
        let lease = Lease { id: self.id.clone(), seq: self.seq, token };
        let held = lease::current(tx, &lease)?;
        // Lanes it may have named were never taken, so none are given back.
        let held = lease::Held { holds: Vec::new(), ..held };
        let failure = Failure::new("invalid_input", why.to_string());
        lease::end(tx, &lease, &held, End::failed(&failure)).map(drop)
    }

    fn cancel_as_duplicate(&self, tx: &Tx<'_>, other: &Found) -> Result<()> {
        // Who waited on this row waits on the one that stands for it, unless
        // that one is newer than the waiter: waits only point backwards.
        tx.execute(
            "UPDATE OR FAIL jobs SET waiting_on = ?2 WHERE waiting_on = ?1 AND seq > ?3",
            params![self.id, other.id, other.seq],
        )?;
        let why = cancel::Reason {
            last_error: Some(format!("duplicate of {}", other.id)),
            data: Some(serde_json::json!({ "duplicate_of": other.id }).to_string()),
        };
        cancel::cancel_pending(tx, self.seq, &why)
    }
}

/// Folders are named after jobs, so a job's name must not lead anywhere else.
fn check_name(id: &str) -> Result<()> {
    if id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')) {
        return Ok(());
    }
    Err(Error::invalid("id", "is at most 64 letters, digits, `-` or `_`"))
}
