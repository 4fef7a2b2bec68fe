//! Reading: one job, many jobs.

use std::fmt::Write as _;

use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter, types::Value};

use super::connection::sql_error;
use super::pauses;
use super::row::{self, hold_keys};
use crate::clock::{Millis, rfc3339};
use crate::error::{Error, ErrorKind, Result, printable};
use crate::job::Job;
use crate::json::JsonText;
use crate::new_job::check_id;
use crate::state::{Gate, Status};
use crate::store::Filter;

pub(super) fn get(conn: &Connection, id: &str, now: Millis) -> Result<Job> {
    let sql = format!("SELECT {} FROM jobs WHERE id = ?1", row::COLUMNS);
    let job = conn.prepare_cached(&sql).map_err(sql_error)?.query_row([id], row::job).optional().map_err(sql_error)?;
    let mut job = job.ok_or_else(|| Error::not_found(id))?;
    job.blocked = why_blocked(conn, &job, now)?;
    Ok(job)
}

/// The job in this row.
pub(super) fn id_of(conn: &Connection, seq: i64) -> Result<Option<String>> {
    let mut statement = conn.prepare_cached("SELECT id FROM jobs WHERE seq = ?1").map_err(sql_error)?;
    statement.query_row([seq], |row| row::read(row, 0)).optional().map_err(sql_error)
}

/// The one id that starts with this, in either spelling of the alphabet.
pub(super) fn resolve(conn: &Connection, prefix: &str) -> Result<String> {
    if prefix.is_empty() {
        return Err(Error::invalid("id", "is empty; `jobq list` shows what there is"));
    }
    let mut statement = conn
        .prepare_cached("SELECT id FROM jobs WHERE id >= ?1 AND id < ?1 || x'7f' ORDER BY id LIMIT 3")
        .map_err(sql_error)?;
    let mut found: Vec<String> = Vec::new();
    let whole = check_id(prefix).unwrap_or_default();
    let spellings = [whole, prefix.to_owned(), prefix.to_ascii_uppercase(), prefix.to_ascii_lowercase()];
    for spelling in spellings.into_iter().filter(|s| !s.is_empty()) {
        let ids = statement.query_map([spelling], |row| row.get(0)).map_err(sql_error)?;
        found.extend(ids.collect::<rusqlite::Result<Vec<_>>>().map_err(sql_error)?);
    }
    found.sort();
    found.dedup();
    match found.as_slice() {
        [] => Err(Error::not_found(prefix)),
        [one] => Ok(one.clone()),
        many if many.iter().any(|id| id == prefix) => Ok(prefix.to_owned()),
        many => Err(Error::new(
            ErrorKind::Invalid,
            format!(
                "id: {} is the beginning of more than one job ({}, {} …); give more of it",
                printable(prefix),
                many[0],
                many[1]
            ),
        )),
    }
}

/// Newest first. The cursor is a seq, so rows that come or go do not shift a page.
pub(super) fn list(conn: &Connection, filter: &Filter, now: Millis) -> Result<Vec<Job>> {
    let (sql, values) = list_sql(filter);
    let mut statement = conn.prepare_cached(&sql).map_err(sql_error)?;
    let rows = statement.query_map(params_from_iter(values), row::job).map_err(sql_error)?;
    let mut jobs = rows.collect::<rusqlite::Result<Vec<_>>>().map_err(sql_error)?;
    for job in &mut jobs {
        job.blocked = why_blocked(conn, job, now)?;
    }
    Ok(jobs)
}

/// Backwards along the table, or along the stretch of an index that matches.
/// The index is named and the page drives the join, so the plan does not depend
/// on statistics. With both filters: most jobs of a type have completed, few
/// have any other status.
pub(super) fn list_sql(filter: &Filter) -> (String, Vec<Value>) {
    let limit = if filter.limit == 0 { 50 } else { filter.limit };
    let mut values = vec![Value::from(limit), Value::from(filter.before.unwrap_or(i64::MAX))];
    let mut and = String::new();
    if let Some(since) = filter.since {
        values.push(Value::from(since));
        let _ = write!(and, " AND created_at >= ?{}", values.len());
    }
    let index = match (filter.status, &filter.job_type) {
        (None, None) => "NOT INDEXED",
        (None | Some(Status::Completed), Some(_)) => "INDEXED BY jobs_by_type",
        (Some(_), _) => "INDEXED BY jobs_by_status",
    };
    // The + keeps a filter from being anything but a filter.
    if let Some(job_type) = &filter.job_type {
        values.push(Value::from(job_type.clone()));
        let plus = if index.ends_with("type") { "" } else { "+" };
        let _ = write!(and, " AND {plus}type = ?{}", values.len());
    }
    if let Some(status) = filter.status {
        let plus = if index.ends_with("status") { "" } else { "+" };
        let _ = write!(and, " AND {plus}status = '{status}'");
    }
    let sql = format!(
        "SELECT {} FROM (SELECT seq AS newest FROM jobs {index} WHERE seq < ?2{and} ORDER BY seq DESC LIMIT ?1)
          CROSS JOIN jobs NOT INDEXED ON seq = newest ORDER BY newest DESC",
        row::COLUMNS
    );
    (sql, values)
}

/// For a pending job that cannot run: the reason, in words.
fn why_blocked(conn: &Connection, job: &Job, now: Millis) -> Result<Option<String>> {
    if let Some(paused) = paused(conn, job, now)? {
        return Ok(Some(paused));
    }
    let reason = match job.gate {
        None | Some(Gate::Ready) => return Ok(None),
        Some(gate @ (Gate::New | Gate::Waiting)) => match waits_on(conn, job)? {
            // It would wait, even if it were admitted.
            Some((parent, Some(Status::Failed))) => {
                format!("waits on {parent}, which failed: retry or cancel that one")
            }
            _ if gate == Gate::New => "waits for a process that knows its type to admit it".to_owned(),
            Some((parent, Some(status))) => format!("waits on {parent} ({status})"),
            Some((parent, None)) => format!("waits on {parent}"),
            None => "waits on another job".to_owned(),
        },
        Some(Gate::Delayed) => format!("runs at {}", job.run_at.map(rfc3339).unwrap_or_default()),
        Some(Gate::Backoff) => format!("retries at {}", job.run_at.map(rfc3339).unwrap_or_default()),
        Some(Gate::Held) => held_by(conn, job)?,
    };
    Ok(Some(reason))
}

/// If what keeps a job from running longest is that its type is paused.
fn paused(conn: &Connection, job: &Job, now: Millis) -> Result<Option<String>> {
    let due = match job.gate {
        Some(Gate::Ready) => now,
        Some(Gate::Delayed | Gate::Backoff) => job.run_at.unwrap_or(now),
        _ => return Ok(None),
    };
    let pause = pauses::of(conn, &job.job_type, now)?.filter(|pause| pause.until > due);
    Ok(pause.map(|pause| {
        let until = rfc3339(pause.until);
        pause.reason.map_or_else(|| format!("paused until {until}"), |reason| format!("paused until {until}: {reason}"))
    }))
}

/// The job that this one waits on, and how that is.
fn waits_on<'j>(conn: &Connection, job: &'j Job) -> Result<Option<(&'j str, Option<Status>)>> {
    let Some(parent) = job.waiting_on.as_deref() else { return Ok(None) };
    let status = conn
        .prepare_cached("SELECT status FROM jobs WHERE id = ?1")
        .and_then(|mut s| s.query_row([parent], |row| row.get(0)).optional())
        .map_err(sql_error)?;
    Ok(Some((parent, status)))
}

fn held_by(conn: &Connection, job: &Job) -> Result<String> {
    for key in hold_keys(job.holds.as_ref().map(JsonText::as_str)) {
        let ahead = conn
            .prepare_cached(
                "SELECT job_id FROM job_holds WHERE key = ?1 AND seq <> ?2 AND (seq < ?2 OR active = 1)
                  ORDER BY active DESC, seq LIMIT 1",
            )
            .and_then(|mut s| s.query_row(params![key, job.seq], |row| row.get::<_, String>(0)).optional())
            .map_err(sql_error)?;
        if let Some(ahead) = ahead {
            return Ok(format!("behind {ahead} on {}", printable(&key)));
        }
    }
    Ok("behind another job on one of its holds".to_owned())
}
