//! `jobq events`: what happened, and with `--follow` what is happening.

use std::time::Duration;

use anstyle::Style;
use jobq::clock::rfc3339;
use jobq::{Event, EventQuery, printable};

use super::args::EventsArgs;
use super::locate::Place;
use super::output::{CYAN, DIM, GREEN, Output, RED, YELLOW};
use super::{Answer, Outcome};

/// Events read at once.
const PAGE: u32 = 1_000;
/// How often a follower looks when nothing happens.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) fn run(args: &EventsArgs, place: &Place, out: &mut Output) -> Outcome {
    let queue = place.open_as_it_is()?;
    let job_id = args.id.as_deref().map(|id| queue.resolve(id)).transpose()?;
    let mut query = EventQuery { job_id, after: args.after, limit: PAGE };
    loop {
        let events = queue.events(&query)?;
        for event in &events {
            if out.json {
                out.json(event)?;
            } else {
                out.line(event_line(event, true))?;
            }
            query.after = event.id;
        }
        if events.len() == PAGE as usize {
            continue;
        }
        if !args.follow {
            return Ok(Answer::Yes);
        }
        out.flush()?;
        std::thread::sleep(PAUSE);
    }
}

pub(super) fn event_style(event_type: &str) -> Style {
    match event_type {
        "completed" => GREEN,
        "failed" | "worker_lost" => RED,
        "claimed" | "decided" | "progress" => CYAN,
        "cancelled" => DIM,
        _ => YELLOW,
    }
}

/// One event on one line.
pub(super) fn event_line(event: &Event, with_job: bool) -> String {
    let style = event_style(&event.event_type);
    let job = if with_job { format!("  {}", printable(&event.job_id)) } else { String::new() };
    let data = event.data.as_ref().map(|d| format!("  {}", printable(d.as_str()))).unwrap_or_default();
    let attempt = if event.attempt == 0 { String::new() } else { format!("  attempt {}", event.attempt) };
    format!(
        "{DIM}{:>6}  {}{DIM:#}{job}  {style}{:<11}{style:#}{attempt}{DIM}{data}{DIM:#}",
        event.id,
        rfc3339(event.at),
        event.event_type
    )
}
