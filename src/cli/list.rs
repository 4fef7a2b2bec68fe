//! `jobq list`: newest first, with the reason beside what cannot run.

use jobq::{Filter, Gate, Job, Queue, Status};

use super::args::ListArgs;
use super::ids::Ids;
use super::known_types::KnownTypes;
use super::locate::{Place, now};
use super::output::{Cell, DIM, Output, ago, for_people, status_style, terminal_width, until};
use super::{Answer, Outcome};

/// Below this not all columns have room.
const NARROW: usize = 68;
/// The place of that column.
const TRIES: usize = 3;

pub(super) fn run(args: &ListArgs, place: &Place, out: &mut Output) -> Outcome {
    let since = args.since.map(|age| now().saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)));
    let filter =
        Filter { status: args.status, job_type: args.job_type.clone(), since, before: None, limit: args.limit };
    let queue = place.open_as_it_is()?;
    let jobs = queue.list(&filter)?;
    // The answer is right, but perhaps not to what was meant.
    if let (true, Some(job_type)) = (jobs.is_empty(), &args.job_type)
        && let Some(told) = KnownTypes::at(place)?.unheard_of(job_type)
    {
        out.warnings(&[told])?;
        return Ok(Answer::Yes);
    }
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
    let mut rows: Vec<Vec<Cell>> = jobs.iter().map(|job| row(job, now, &mut ids)).collect();
    let mut head = vec!["ID", "TYPE", "STATUS", "TRIES", "AGE", "NOTE"];
    if terminal_width().is_some_and(|width| width < NARROW) {
        // The reason is of more use.
        head.remove(TRIES);
        for row in &mut rows {
            row.remove(TRIES);
        }
    }
    out.table(&head, &rows)?;
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

/// Why a pending job does not run now. People want to know how long it takes and not
/// when it is.
pub(super) fn why(job: &Job, now: i64, ids: &mut Ids<'_>) -> Option<String> {
    let why = job.blocked.as_deref()?;
    let verb = match job.gate {
        Some(Gate::Delayed) if why.starts_with("runs at") => "runs",
        Some(Gate::Backoff) if why.starts_with("retries at") => "retries",
        _ => return Some(ids.in_text(why)),
    };
    Some(match job.run_at.map(|at| at.saturating_sub(now)) {
        Some(millis) if for_people() && millis <= 0 => "due now".to_owned(),
        Some(millis) if for_people() => format!("{verb} in {}", until(millis)),
        _ => why.to_owned(),
    })
}

fn row(job: &Job, now: i64, ids: &mut Ids<'_>) -> Vec<Cell> {
    // What went wrong on the way to a good end is in `jobq show`.
    let error = job.last_error.as_deref().filter(|_| job.status != Status::Completed);
    let note = why(job, now, ids).unwrap_or_else(|| error.unwrap_or_default().to_owned());
    vec![
        Cell::whole(ids.short(&job.id), anstyle::Style::new()),
        Cell::plain(&job.job_type),
        Cell::whole(job.status.as_str(), status_style(job.status)),
        Cell::number(format_args!("{}/{}", job.attempts, job.max_attempts), anstyle::Style::new()),
        Cell::number(ago(now, job.created_at), anstyle::Style::new()),
        Cell::new(note, DIM),
    ]
}
