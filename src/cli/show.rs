//! `jobq show`: everything about one job.

use std::collections::BTreeMap;
use std::time::Duration;

use jobq::{EventQuery, Job, Queue, printable};
use serde_json::value::RawValue;

use super::args::ShowArgs;
use super::events::event_line;
use super::gone::Gone;
use super::locate::{Place, now};
use super::output::{BOLD, DIM, Output, ago, exact, span, status_style};
use super::text::json;
use super::{Answer, Outcome};

pub(super) fn run(args: &ShowArgs, place: &Place, out: &mut Output) -> Outcome {
    let queue = place.open_as_it_is()?;
    let job = queue.get(&queue.resolve(&args.id)?)?;
    let events = all_events(&queue, &job.id)?;
    if out.json {
        let mut line = json(&job).map_err(std::io::Error::from)?;
        // Added to the text: a value in between would rewrite what the payload says.
        line.truncate(line.len() - 1);
        let events = json(&events).map_err(std::io::Error::from)?;
        out.line(format_args!("{line},\"events\":{events}}}"))?;
        return Ok(Answer::Yes);
    }
    let style = status_style(job.status);
    let (id, job_type) = (printable(&job.id), printable(&job.job_type));
    out.line(format_args!("{BOLD}{id}{BOLD:#}  {job_type}  {style}{}{style:#}", job.status))?;
    let gone = Gone::among(std::slice::from_ref(&job), &queue)?;
    print_columns(&job, &gone, out)?;
    out.line(format_args!("{DIM}events{DIM:#}"))?;
    for event in &events {
        out.behind("  ", 2, &event_line(event, None))?;
    }
    Ok(Answer::Yes)
}

fn print_columns(job: &Job, gone: &Gone, out: &mut Output) -> std::io::Result<()> {
    for (name, text) in columns(job, gone)? {
        out.behind(format_args!("  {DIM}{name:<16}{DIM:#} "), 19, &text)?;
    }
    Ok(())
}

/// Columns that say something, after what nobody has written into one; the id, type and
/// status stand above.
pub(super) fn columns(job: &Job, gone: &Gone) -> serde_json::Result<Vec<(&'static str, String)>> {
    let text = serde_json::to_string(job)?;
    let columns: BTreeMap<String, &RawValue> = serde_json::from_str(&text)?;
    let order = [
        "blocked",
        "last_error",
        "payload",
        "result",
        "outcome",
        "progress",
        "checkpoint",
        "gate",
        "priority",
        "attempts",
        "created_at",
        "run_at",
        "claimed_at",
        "completed_at",
        "locked_by",
        "locked_at",
        "heartbeat_at",
        "waiting_on",
        "holds",
        "idempotency_key",
        "correlation_id",
        "timeout",
        "backoff_base",
        "backoff_max",
        "cancel_requested",
        "token",
        "seq",
        "payload_hash",
    ];
    let mut said: Vec<_> = gone.why(job).map(|why| ("stuck", why.to_owned())).into_iter().collect();
    for name in order {
        let text = match columns.get(name).map(|raw| raw.get()) {
            None | Some("null" | "false") => continue,
            Some(raw) => serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned()),
        };
        said.push((name, printable(&readable(name, &text, job))));
    }
    Ok(said)
}

/// Times with how long ago they are, and durations in units.
fn readable(name: &str, text: &str, job: &Job) -> String {
    let then = match name {
        "attempts" => return format!("{text} of {}", job.max_attempts),
        "timeout" | "backoff_base" | "backoff_max" => {
            return text.parse().map_or(text.to_owned(), |millis| exact(Duration::from_millis(millis)));
        }
        "created_at" => Some(job.created_at),
        "run_at" => job.run_at,
        "claimed_at" => job.claimed_at,
        "completed_at" => job.completed_at,
        "locked_at" => job.locked_at,
        "heartbeat_at" => job.heartbeat_at,
        _ => None,
    };
    match then {
        Some(then) if then > now() => format!("{text}  (in {})", span(then - now())),
        Some(then) => format!("{text}  ({} ago)", ago(now(), then)),
        None => text.to_owned(),
    }
}

fn all_events(queue: &Queue, id: &str) -> jobq::Result<Vec<jobq::Event>> {
    queue.events(&EventQuery { job_id: Some(id.to_owned()), after: 0, limit: u32::MAX })
}
