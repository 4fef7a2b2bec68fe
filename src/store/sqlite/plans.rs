//! The statements whose plans must not depend on what lies in the tables or on
//! statistics. A test asks SQLite to explain each of them.

use super::{apply, claim, complete, completed, costs, gates, limits, pauses, prune, query, recent, reclaim, stats};
use crate::state::Status;
use crate::store::Filter;

/// Name and text of each hot statement.
#[must_use]
pub fn hot_statements() -> Vec<(&'static str, String)> {
    let by = |status, job_type: Option<&str>| {
        query::list_sql(&Filter { status, job_type: job_type.map(str::to_owned), ..Filter::default() }).0
    };
    vec![
        ("claim", claim::candidates_sql(1)),
        ("claim, three types", claim::candidates_sql(3)),
        ("claim one row", claim::TAKE.to_owned()),
        ("completed ones", complete::ENDED.to_owned()),
        ("paused types", pauses::ALL.to_owned()),
        ("running of a type", limits::RUNNING.to_owned()),
        ("take over", claim::take_over_sql()),
        ("apply", apply::PLANNED.to_owned()),
        ("reclaim", reclaim::OWNED_BY.to_owned()),
        ("promote due", gates::PROMOTE_DUE.to_owned()),
        ("promote early", gates::PROMOTE_EARLY.to_owned()),
        ("prune", prune::PRUNABLE.to_owned()),
        ("prune events", prune::WITH_EVENTS.to_owned()),
        ("stats: types", stats::NEXT_TYPE.to_owned()),
        ("stats: outstanding", stats::OUTSTANDING.to_owned()),
        ("stats: times", stats::TIMES.to_owned()),
        ("stats: newest failed", stats::NEWEST_FAILED.to_owned()),
        ("stats: count", stats::COUNT.to_owned()),
        ("stats: costs", costs::RESULTS.to_owned()),
        ("stats: stuck", stats::STUCK.to_owned()),
        ("stats: blocked", stats::BLOCKED.to_owned()),
        ("stats: duplicates", stats::DUPLICATES.to_owned()),
        ("recent: failures", recent::NEWEST_FAILURES.to_owned()),
        ("completed", completed::PAGE.to_owned()),
        ("list", by(None, None)),
        ("list by status", by(Some(Status::Failed), None)),
        ("list by type", by(None, Some("t"))),
        ("list by status and type", by(Some(Status::Failed), Some("t"))),
        ("list completed by type", by(Some(Status::Completed), Some("t"))),
    ]
}
