//! `jobq list`: newest first, with the reason beside what cannot run.

use jobq::{Filter, Gate, Job, Queue, Status};

use super::args::ListArgs;
use super::gone::Gone;
use super::ids::Ids;
use super::known_types::KnownTypes;
use super::locate::{Place, now};
use super::output::{Cell, DIM, Output, ago, for_people, status_style, until, while_paused};
use super::{Answer, Outcome};

pub(super) fn run(args: &ListArgs, place: &Place, out: &mut Output) -> Outcome {
    let since = args.since.map(|age| now().saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)));
    // One more than is shown, to know whether there are more.
    let limit = args.limit.saturating_add(1);
    let filter = Filter { status: args.status, job_type: args.job_type.clone(), since, before: None, limit };
    out.end_with_reader();
    let queue = place.open_as_it_is()?;
    let mut jobs = queue.list(&filter)?;
    let is_cut = jobs.len() > args.limit as usize;
    jobs.truncate(args.limit as usize);
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
    let gone = Gone::among(&jobs, &queue)?;
    let mut ids = Ids::new(&queue);
    let rows: Vec<Vec<Cell>> = jobs.iter().map(|job| row(job, now, &gone, &mut ids)).collect();
    out.table(&[("ID", 0), ("TYPE", 1), ("STATUS", 0), ("TRIES", 4), ("AGE", 2), ("NOTE", 3)], &rows)?;
    if is_cut {
        out.hint(format_args!("{DIM}the newest {}; --limit shows more{DIM:#}", jobs.len()))?;
    }
    Ok(Answer::Yes)
}

/// What to do next where there is nothing to show.
fn nothing(queue: &Queue) -> jobq::Result<&'static str> {
    let any = queue.list(&Filter { limit: 1, ..Filter::default() })?;
    Ok(if any.is_empty() {
        "no jobs yet; queue one with `jobq enqueue create_file '{\"path\":\"hello.txt\",\"content\":\"hi\"}'`"
    } else {
        "no job is like that; `jobq list` shows all, `jobq stats` counts them by type and status"
    })
}

/// Why a pending job does not run now. People want to know how long it takes and not
/// when it is.
pub(super) fn why(job: &Job, now: i64, ids: &mut Ids<'_>) -> Option<String> {
    let why = job.blocked.as_deref()?;
    if let Some(pause) = why.strip_prefix("paused until ") {
        let (end, reason) = pause.split_once(": ").map_or((pause, None), |(end, reason)| (end, Some(reason)));
        return Some(while_paused(end) + &reason.map(|reason| format!(": {reason}")).unwrap_or_default());
    }
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

fn row(job: &Job, now: i64, gone: &Gone, ids: &mut Ids<'_>) -> Vec<Cell> {
    vec![
        Cell::whole(ids.short(&job.id), anstyle::Style::new()),
        Cell::plain(&job.job_type),
        Cell::whole(job.status.as_str(), status_style(job.status)),
        Cell::number(format_args!("{}/{}", job.attempts, job.max_attempts), anstyle::Style::new()),
        Cell::number(ago(now, job.created_at), anstyle::Style::new()),
        note(job, now, gone, ids),
    ]
}

fn note(job: &Job, now: i64, gone: &Gone, ids: &mut Ids<'_>) -> Cell {
    if let Some(why) = gone.why(job) {
        return Cell::note(why, DIM).command_first();
    }
    // What went wrong on the way to a good end is in `jobq show`.
    let error = job.last_error.as_deref().filter(|_| job.status != Status::Completed);
    Cell::note(why(job, now, ids).unwrap_or_else(|| error.unwrap_or_default().to_owned()), DIM)
}
