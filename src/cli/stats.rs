//! `jobq stats`: the six questions, each with its answer.

use jobq::{Stats, printable};

use super::locate::Place;
use super::output::{BOLD, Cell, DIM, Output, RED, span, status_style};
use super::{Answer, Outcome};

pub(super) fn run(place: &Place, out: &mut Output) -> Outcome {
    let stats = place.open_as_it_is()?.stats()?;
    if out.json {
        out.json(&stats)?;
    } else {
        print(&stats, out)?;
    }
    Ok(Answer::Yes)
}

fn print(stats: &Stats, out: &mut Output) -> std::io::Result<()> {
    question("What work is outstanding right now?", stats.outstanding.is_empty(), out)?;
    if !stats.outstanding.is_empty() {
        let rows = stats.outstanding.iter().map(|o| {
            vec![
                Cell::plain(&o.job_type),
                Cell::new(o.status.as_str(), status_style(o.status)),
                Cell::plain(o.gate.map_or("", jobq::Gate::as_str)),
                Cell::plain(o.jobs.to_string()),
                Cell::new(o.oldest.clone().unwrap_or_default(), DIM),
            ]
        });
        out.table(&["  TYPE", "STATUS", "GATE", "JOBS", "OLDEST"], &indented(rows))?;
    }
    question("What failed and why?", stats.failed.is_empty(), out)?;
    for group in &stats.failed {
        let why = printable(group.last_error.as_deref().unwrap_or_default());
        out.line(format_args!(
            "  {RED}{}{RED:#} {}, newest {}: {why}",
            group.jobs,
            printable(&group.job_type),
            printable(&group.newest)
        ))?;
    }
    question("Is anything stuck?", stats.stuck.is_empty() && stats.blocked.is_empty(), out)?;
    for blocked in &stats.blocked {
        let (jobs, id) = (blocked.jobs, printable(&blocked.id));
        let wait = if jobs == 1 { "job waits" } else { "jobs wait" };
        out.line(format_args!(
            "  {RED}{jobs}{RED:#} {wait} on {} {id}, which failed ({}); `jobq retry {id}` or `jobq cancel {id}`",
            printable(&blocked.job_type),
            printable(blocked.last_error.as_deref().unwrap_or_default())
        ))?;
    }
    for stuck in &stats.stuck {
        let (by, last) = (stuck.locked_by.as_deref().unwrap_or("nobody"), stuck.last_sign_of_life.as_deref());
        out.line(format_args!(
            "  {} {} held by {by}, last heard of {}",
            stuck.id,
            stuck.job_type,
            last.unwrap_or("never")
        ))?;
    }
    question("How long do jobs take?", stats.durations.is_empty(), out)?;
    if !stats.durations.is_empty() {
        let rows = stats.durations.iter().map(|d| {
            vec![
                Cell::plain(&d.job_type),
                Cell::plain(d.jobs.to_string()),
                Cell::plain(span(d.min_ms)),
                Cell::plain(span(d.avg_ms)),
                Cell::plain(span(d.max_ms)),
            ]
        });
        out.table(&["  TYPE", "JOBS", "MIN", "MEAN", "MAX"], &indented(rows))?;
    }
    question("Are there duplicate jobs?", stats.duplicates == 0, out)?;
    if stats.duplicates > 0 {
        out.line(format_args!("  {RED}{}{RED:#} keys have more than one unfinished job", stats.duplicates))?;
    }
    question("What ran in the last hour?", stats.last_hour.is_empty(), out)?;
    for group in &stats.last_hour {
        let style = status_style(group.status);
        out.line(format_args!("  {} {} {style}{}{style:#}", group.jobs, group.job_type, group.status))?;
    }
    Ok(())
}

fn question(text: &str, nothing: bool, out: &mut Output) -> std::io::Result<()> {
    out.line(format_args!("{BOLD}{text}{BOLD:#}{}", if nothing { " Nothing." } else { "" }))
}

fn indented(rows: impl Iterator<Item = Vec<Cell>>) -> Vec<Vec<Cell>> {
    rows.map(|mut row| {
        row[0] = row[0].indented();
        row
    })
    .collect()
}
