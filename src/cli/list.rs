//! `jobq list`: newest first, with the reason beside what cannot run.

use jobq::{Filter, Gate, Job, Queue, Status};

use super::args::ListArgs;
use super::ids::Ids;
use super::locate::{Place, now};
use super::output::{Cell, DIM, Output, ago, for_people, span, status_style};
use super::{Answer, Outcome};

pub(super) fn run(args: &ListArgs, place: &Place, out: &mut Output) -> Outcome {
    let since = args.since.map(|age| now().saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)));
    let filter =
        Filter { status: args.status, job_type: args.job_type.clone(), since, before: None, limit: args.limit };
    let queue = place.open_as_it_is()?;
    let jobs = queue.list(&filter)?;
    if out.json {
        for job in &jobs {
            out.json(job)?;
        }
        return Ok(Answer::Yes);
    }
    if jobs.is_empty() {
        out.hint(nothing(&queue)?)?;
        return Ok(Answer::Yes);
    }
    let now = now();
    let mut ids = Ids::new(&queue);
    let rows: Vec<Vec<Cell>> = jobs.iter().map(|job| row(job, now, &mut ids)).collect();
    out.table(&["ID", "TYPE", "STATUS", "TRIES", "AGE", "NOTE"], &rows)?;
    if jobs.len() == args.limit as usize {
        out.hint(format_args!("{DIM}the newest {}; --limit shows more{DIM:#}", jobs.len()))?;
    }
    Ok(Answer::Yes)
}

/// What to do next where there is nothing to show.
fn nothing(queue: &Queue) -> jobq::Result<&'static str> {
    let any = queue.list(&Filter { limit: 1, ..Filter::default() })?;
    Ok(if any.is_empty() {
        "no jobs yet; queue one with: jobq enqueue create_file '{\"path\":\"hello.txt\",\"content\":\"hi\"}'"
    } else {
        "no job is like that; `jobq list` shows all, `jobq stats` counts them by type and status"
    })
}

/// People want to know how long it takes and not when it is.
fn sooner(why: &str, gate: Option<Gate>, millis: i64) -> String {
    match gate {
        Some(Gate::Delayed) if why.starts_with("runs at") => format!("runs in {}", span(millis)),
        Some(Gate::Backoff) if why.starts_with("retries at") => format!("retries in {}", span(millis)),
        _ => why.to_owned(),
    }
}

fn row(job: &Job, now: i64, ids: &mut Ids<'_>) -> Vec<Cell> {
    // What went wrong on the way to a good end is in `jobq show`.
    let error = job.last_error.as_deref().filter(|_| job.status != Status::Completed);
    let note = match (job.blocked.as_deref(), job.run_at) {
        (None, _) => error.unwrap_or_default().to_owned(),
        (Some(why), Some(at)) if for_people() => ids.in_text(&sooner(why, job.gate, at.saturating_sub(now))),
        (Some(why), _) => ids.in_text(why),
    };
    vec![
        Cell::whole(ids.short(&job.id), anstyle::Style::new()),
        Cell::plain(&job.job_type),
        Cell::whole(job.status.as_str(), status_style(job.status)),
        Cell::number(format_args!("{}/{}", job.attempts, job.max_attempts), anstyle::Style::new()),
        Cell::number(ago(now, job.created_at), anstyle::Style::new()),
        Cell::new(note, DIM),
    ]
}
