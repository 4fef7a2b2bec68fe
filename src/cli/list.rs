//! `jobq list`: newest first, with the reason beside what cannot run.

use jobq::{Filter, Job, Status};

use super::args::ListArgs;
use super::locate::{Place, now};
use super::output::{Cell, DIM, Output, ago, status_style};
use super::{Answer, Outcome};

pub(super) fn run(args: &ListArgs, place: &Place, out: &mut Output) -> Outcome {
    let since = args.since.map(|age| now().saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)));
    let filter =
        Filter { status: args.status, job_type: args.job_type.clone(), since, before: None, limit: args.limit };
    let jobs = place.open_as_it_is()?.list(&filter)?;
    if out.json {
        for job in &jobs {
            out.json(job)?;
        }
        return Ok(Answer::Yes);
    }
    if jobs.is_empty() {
        let filtered = args.status.is_some() || args.job_type.is_some() || args.since.is_some();
        out.line(if filtered {
            "no such jobs; `jobq list` shows all, `jobq stats` counts them"
        } else {
            "no jobs yet; queue one with: jobq enqueue create_file '{\"path\":\"hello.txt\",\"content\":\"hi\"}'"
        })?;
        return Ok(Answer::Yes);
    }
    let now = now();
    let rows: Vec<Vec<Cell>> = jobs.iter().map(|job| row(job, now)).collect();
    out.table(&["ID", "TYPE", "STATUS", "TRIES", "AGE", "NOTE"], &rows)?;
    if jobs.len() == args.limit as usize {
        out.line(format_args!("{DIM}the newest {}; --limit shows more{DIM:#}", jobs.len()))?;
    }
    Ok(Answer::Yes)
}

fn row(job: &Job, now: i64) -> Vec<Cell> {
    // What went wrong on the way to a good end is in `jobq show`.
    let error = job.last_error.as_deref().filter(|_| job.status != Status::Completed);
    let note = job.blocked.as_deref().or(error).unwrap_or_default();
    vec![
        Cell::plain(&job.id),
        Cell::plain(&job.job_type),
        Cell::new(job.status.as_str(), status_style(job.status)),
        Cell::plain(format!("{}/{}", job.attempts, job.max_attempts)),
        Cell::plain(ago(now, job.created_at)),
        Cell::new(note, DIM),
    ]
}
