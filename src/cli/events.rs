//! `jobq events`: what happened, and with `--follow` what is happening.

use std::time::Duration;

use anstyle::Style;
use jobq::clock::rfc3339;
use jobq::{Event, EventQuery, printable};

use super::args::EventsArgs;
use super::ids::Ids;
use super::locate::Place;
use super::output::{CYAN, DIM, GREEN, Output, RED, YELLOW, terminal_width};
use super::text::{shorten, width};
use super::{Answer, Outcome};

/// Events read at once.
const PAGE: u32 = 1_000;
/// How often a follower looks when nothing happens.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) fn run(args: &EventsArgs, place: &Place, out: &mut Output) -> Outcome {
    out.end_with_reader();
    let queue = place.open_as_it_is()?;
    let job_id = args.id.as_deref().map(|id| queue.resolve(id)).transpose()?;
    let mut ids = Ids::new(&queue);
    let mut query = EventQuery { job_id, after: args.after, limit: PAGE };
    loop {
        let events = queue.events(&query)?;
        for event in &events {
            if out.json {
                out.json(event)?;
            } else {
                out.line(event_line(event, Some(ids.short(&event.job_id))))?;
            }
            query.after = event.id;
        }
        if events.len() == PAGE as usize {
            continue;
        }
        if !args.follow {
            return Ok(Answer::Yes);
        }
        queue.still_there()?;
        out.pause(PAUSE)?;
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

/// One event on one line, with its job where that is not clear already. Where people
/// look at many jobs, what there is to say is cut to the line; `jobq show` has all.
pub(super) fn event_line(event: &Event, job: Option<String>) -> String {
    let style = event_style(&event.event_type);
    let columns = terminal_width();
    let at = rfc3339(event.at);
    // Without the year and the milliseconds, and where there is little room without the day.
    let at = match columns {
        Some(0..60) => at[11..19].to_owned(),
        Some(_) => at[5..19].replace('T', " "),
        None => at,
    };
    let room = job.as_ref().and(columns);
    let start = format!("{:>6}  {at}  ", event.id);
    let job = job.map(|id| match room.map(|room| room.saturating_sub(width(&start) + width(&event.event_type) + 2)) {
        // What has happened is seen beside any id.
        Some(room) => format!("{}  ", shorten(&printable(&id), room)),
        None => format!("{}  ", printable(&id)),
    });
    let start = start + &job.unwrap_or_default();
    let mut end = if event.attempt == 0 { String::new() } else { format!("  attempt {}", event.attempt) };
    if let Some(data) = &event.data {
        end = format!("{end}  {}", printable(data.as_str()));
    }
    let mut kind = if end.is_empty() { event.event_type.clone() } else { format!("{:<11}", event.event_type) };
    if let Some(room) = room {
        let left = room.saturating_sub(width(&start) + width(&kind));
        // What would be no more than a dot or two is left out.
        end = if left < 8 { String::new() } else { shorten(&end, left) };
        kind.truncate(if end.is_empty() { event.event_type.len() } else { kind.len() });
    }
    format!("{DIM}{start}{DIM:#}{style}{kind}{style:#}{DIM}{end}{DIM:#}")
}
