//! Accepting a commit: INSERT, claim and decide in one transaction, so that it
//! is accepted whole or not at all.

use rusqlite::params;

use super::row::{self, read};
use super::tx::Tx;
use super::{admit, claim, decide, enqueue};
use crate::error::{Error, ErrorKind, Result};
use crate::job::Job;
use crate::store::{Commit, Committed, Decision};

pub(super) fn commit(tx: &Tx<'_>, commit: &Commit) -> Result<Committed> {
    // Rows that other programs inserted before this may hold its paths.
    admit::admit(tx)?;
    if enqueue::by_id(tx, &commit.files)?.is_some() {
        return Ok(Committed::Existing(Box::new(job(tx, &commit.files.id)?)));
    }
    refuse_busy_paths(tx, &commit.files.holds)?;
    (commit.still_so)()?;
    enqueue::insert(tx, &commit.files)?;
    let lease = claim::this_one(tx, &commit.owner, &commit.files.id)?;
    let mut jobs = Vec::with_capacity(commit.jobs.len());
    for (index, job) in commit.jobs.iter().enumerate() {
        jobs.push(enqueue::insert(tx, job).map_err(|e| e.in_item(index))?);
    }
    // Kept with the commit, for whoever submits it again.
    let result = serde_json::json!({ "files": commit.effects.len(), "jobs": jobs }).to_string();
    let decision = Decision { result: Some(result), effects: commit.effects.clone(), follow_ups: Vec::new() };
    decide::decide(tx, &lease, &decision)?;
    Ok(Committed::New { lease, jobs })
}

/// Whoever holds a path, running or waiting, comes before this commit and may
/// leave something else there than it was planned on.
fn refuse_busy_paths(tx: &Tx<'_>, holds: &[String]) -> Result<()> {
    for key in holds {
        let holder = tx.row(
            "SELECT h.job_id, j.type, j.status FROM job_holds h JOIN jobs j ON j.seq = h.seq
              WHERE h.key = ?1 ORDER BY h.active DESC, h.seq LIMIT 1",
            params![key],
            |row| Ok((read::<String>(row, 0)?, read::<String>(row, 1)?, read::<String>(row, 2)?)),
        )?;
        if let Some((id, job_type, status)) = holder {
            let path = key.strip_prefix("path:").unwrap_or(key);
            return Err(Error::new(
                ErrorKind::PathBusy,
                format!("{path} is held by {job_type} job {id} ({status}); commit again when it has ended"),
            ));
        }
    }
    Ok(())
}

fn job(tx: &Tx<'_>, id: &str) -> Result<Job> {
    let sql = format!("SELECT {} FROM jobs WHERE id = ?1", row::COLUMNS);
    tx.row(&sql, params![id], row::job)?.ok_or_else(|| Error::not_found(id))
}
