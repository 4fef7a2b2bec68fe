//! What jobs say they cost: the number `total_cost_usd` of their results,
//! whatever their type is called. A type whose newest jobs say nothing of the
//! kind is not looked at any further, so that only those pay for the sum who have one.

use rusqlite::{Connection, Row, params};
use serde::Deserialize;

use super::connection::sql_error;
use super::stats::TypeName;
use crate::error::Result;
use crate::state::Status;
use crate::store::CostGroup;

/// The newest results of a type. A job that could not be applied has left its
/// result in what it had decided; it was paid for all the same.
pub(super) const RESULTS: &str = "SELECT result, CASE WHEN result IS NULL THEN outcome END
       FROM jobs INDEXED BY jobs_finished
      WHERE type = CAST(?1 AS TEXT) AND status = ?2 AND completed_at IS NOT NULL
      ORDER BY completed_at DESC LIMIT ?3";

#[derive(Deserialize)]
struct Paid {
    total_cost_usd: Option<f64>,
}

#[derive(Deserialize)]
struct Decided {
    result: Option<Paid>,
}

/// The sum over kept jobs that completed or failed, of each at most this many.
pub(super) fn of(conn: &Connection, job_type: &TypeName, most: i64) -> Result<Option<CostGroup>> {
    let ends = [Status::Completed, Status::Failed];
    let mut says_so = false;
    for status in ends {
        says_so = says_so || sum(conn, job_type, status, 1)?.jobs > 0;
    }
    if !says_so {
        return Ok(None);
    }
    let mut group = CostGroup { job_type: job_type.shown(), jobs: 0, at_least: false, total_cost_usd: 0.0 };
    for status in ends {
        let sum = sum(conn, job_type, status, most)?;
        group.jobs += sum.jobs;
        group.at_least |= sum.looked_at == most;
        group.total_cost_usd += sum.usd;
    }
    // Sums of such numbers have a tail of digits that nobody has paid.
    group.total_cost_usd = (group.total_cost_usd * 1e6).round() / 1e6;
    Ok(Some(group))
}

#[derive(Default)]
struct Sum {
    looked_at: i64,
    jobs: i64,
    usd: f64,
}

fn sum(conn: &Connection, job_type: &TypeName, status: Status, most: i64) -> Result<Sum> {
    let mut statement = conn.prepare_cached(RESULTS).map_err(sql_error)?;
    let mut rows = statement.query(params![job_type, status, most]).map_err(sql_error)?;
    let mut sum = Sum::default();
    while let Some(row) = rows.next().map_err(sql_error)? {
        sum.looked_at += 1;
        if let Some(usd) = cost(row).map_err(sql_error)? {
            sum.jobs += 1;
            sum.usd += usd;
        }
    }
    Ok(sum)
}

/// A result that is no such object has cost nothing that is known.
fn cost(row: &Row<'_>) -> rusqlite::Result<Option<f64>> {
    let (result, outcome) = (row.get_ref(0)?, row.get_ref(1)?);
    let paid = match (result.as_bytes_or_null()?, outcome.as_bytes_or_null()?) {
        (Some(result), _) => serde_json::from_slice::<Paid>(result).ok(),
        (None, Some(outcome)) => serde_json::from_slice::<Decided>(outcome).ok().and_then(|decided| decided.result),
        (None, None) => None,
    };
    Ok(paid.and_then(|paid| paid.total_cost_usd))
}
