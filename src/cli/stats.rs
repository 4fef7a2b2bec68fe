//! `jobq stats`: the six questions, each with its answer.

use anstyle::Style;
use jobq::{Gate, Stats, printable};

use super::gone::Gone;
use super::ids::Ids;
use super::locate::Place;
use super::output::{BOLD, Cell, DIM, Head, Output, RED, heard, span, status_style, while_paused};
use super::{Answer, Outcome};

pub(super) fn run(place: &Place, out: &mut Output) -> Outcome {
    let queue = place.open_as_it_is()?;
    let stats = queue.stats()?;
    if out.json {
        out.json(&stats)?;
    } else {
        print(&stats, &Gone::from(&queue)?, &mut Ids::new(&queue), out)?;
    }
    Ok(Answer::Yes)
}

fn print(stats: &Stats, gone: &Gone, ids: &mut Ids<'_>, out: &mut Output) -> std::io::Result<()> {
    question("What work is outstanding right now?", "Nothing.", stats.outstanding.is_empty(), out)?;
    let rows = stats.outstanding.iter().map(|o| {
        vec![
            Cell::plain(&o.job_type),
            Cell::whole(o.status.as_str(), status_style(o.status)),
            Cell::whole(o.gate.map_or("", Gate::as_str), Style::new()),
            number(o.jobs),
            time(o.age_ms),
            Cell::whole(ids.short(&o.oldest_id), DIM),
        ]
    });
    table(&[("  TYPE", 0), ("STATUS", 1), ("GATE", 3), ("JOBS", 0), ("AGE", 2), ("OLDEST", 4)], rows, out)?;
    for paused in &stats.paused {
        let text = format!(
            "{RED}{}{RED:#} is {} ({})",
            printable(&paused.job_type),
            while_paused(&paused.until),
            printable(paused.reason.as_deref().unwrap_or("for no reason that is known"))
        );
        out.behind("  ", 2, &text)?;
    }
    question("What failed and why?", "Nothing.", stats.failed.is_empty(), out)?;
    let rows = stats.failed.iter().map(|f| {
        vec![
            Cell::plain(&f.job_type),
            Cell::number(counted(f.jobs, f.at_least), RED),
            Cell::whole(ids.short(&f.newest), DIM),
            Cell::note(f.last_error.as_deref().unwrap_or_default(), Style::new()),
        ]
    });
    table(&[("  TYPE", 0), ("JOBS", 2), ("NEWEST", 0), ("ERROR", 1)], rows, out)?;
    question("Is anything stuck?", "No.", stats.stuck.is_empty() && stats.blocked.is_empty(), out)?;
    stuck(stats, gone, ids, out)?;
    question("How long do jobs take?", "None has completed.", stats.durations.is_empty(), out)?;
    let rows = stats.durations.iter().map(|d| {
        let mut row = vec![Cell::plain(&d.job_type), number(d.jobs)];
        row.extend([d.min_ms, d.avg_ms, d.p50_ms, d.p95_ms, d.max_ms].map(time));
        row
    });
    table(&[("  TYPE", 0), ("NEWEST", 6), ("MIN", 5), ("MEAN", 4), ("P50", 1), ("P95", 2), ("MAX", 3)], rows, out)?;
    if !stats.latencies.is_empty() {
        out.line(format_args!("{BOLD}How long do they wait before they run?{BOLD:#}"))?;
    }
    let rows = stats.latencies.iter().map(|l| {
        let mut row = vec![Cell::plain(&l.job_type), number(l.jobs)];
        row.extend([l.p50_ms, l.p95_ms, l.max_ms].map(time));
        row
    });
    table(&[("  TYPE", 0), ("NEWEST", 4), ("P50", 1), ("P95", 2), ("MAX", 3)], rows, out)?;
    question("Are there duplicate jobs?", "No.", stats.duplicates == 0, out)?;
    if stats.duplicates > 0 {
        out.line(format_args!("  {RED}{}{RED:#} keys have more than one unfinished job", stats.duplicates))?;
    }
    question("What ran in the last hour?", "Nothing.", stats.last_hour.is_empty(), out)?;
    let rows = stats.last_hour.iter().map(|group| {
        let end = Cell::whole(group.status.as_str(), status_style(group.status));
        vec![Cell::plain(&group.job_type), number(counted(group.jobs, group.at_least)), end]
    });
    table(&[("  TYPE", 0), ("JOBS", 1), ("STATUS", 0)], rows, out)?;
    costs(stats, out)
}

/// Most queues have nothing that costs anything, and hear nothing of it.
fn costs(stats: &Stats, out: &mut Output) -> std::io::Result<()> {
    if stats.costs.is_empty() {
        return Ok(());
    }
    question("What did jobs cost?", "", false, out)?;
    let rows = stats.costs.iter().map(|cost| {
        let more = if cost.at_least { "+" } else { "" };
        let usd = number(format_args!("{:.4}{more}", cost.total_cost_usd));
        vec![Cell::plain(&cost.job_type), number(counted(cost.jobs, cost.at_least)), usd]
    });
    table(&[("  TYPE", 0), ("JOBS", 1), ("USD", 0)], rows, out)
}

fn stuck(stats: &Stats, gone: &Gone, ids: &mut Ids<'_>, out: &mut Output) -> std::io::Result<()> {
    for blocked in &stats.blocked {
        let (jobs, id) = (blocked.jobs, printable(&ids.short(&blocked.id)));
        let wait = if jobs == 1 { "job waits" } else { "jobs wait" };
        let text = format!(
            "{RED}{jobs}{RED:#} {wait} on {} {id}, which failed ({}); `jobq retry {id}` or `jobq cancel {id}`",
            printable(&blocked.job_type),
            printable(blocked.last_error.as_deref().unwrap_or_default())
        );
        out.behind("  ", 2, &text)?;
    }
    for stuck in &stats.stuck {
        let so = if gone.has(stuck) {
            "which is gone; `jobq reclaim`, or any worker, takes it back".to_owned()
        } else {
            format!("last heard of {}; see `jobq doctor`", heard(stuck))
        };
        let text = format!(
            "{RED}{}{RED:#} {} held by {}, {so}",
            printable(&ids.short(&stuck.id)),
            printable(&stuck.job_type),
            printable(stuck.locked_by.as_deref().unwrap_or("nobody"))
        );
        out.behind("  ", 2, &text)?;
    }
    Ok(())
}

/// With the answer, if that is all there is to say.
fn question(text: &str, answer: &str, nothing: bool, out: &mut Output) -> std::io::Result<()> {
    let answer = if nothing { format!(" {answer}") } else { String::new() };
    out.line(format_args!("{BOLD}{text}{BOLD:#}{answer}"))
}

/// Nothing at all when there are no rows.
fn table(head: &[Head], rows: impl Iterator<Item = Vec<Cell>>, out: &mut Output) -> std::io::Result<()> {
    let indent = |mut row: Vec<Cell>| {
        row[0] = row[0].indented();
        row
    };
    let rows: Vec<_> = rows.map(indent).collect();
    if rows.is_empty() { Ok(()) } else { out.table(head, &rows) }
}

fn number(value: impl std::fmt::Display) -> Cell {
    Cell::number(value, Style::new())
}

fn time(millis: i64) -> Cell {
    number(span(millis))
}

/// Counting stops somewhere.
fn counted(jobs: i64, at_least: bool) -> String {
    format!("{jobs}{}", if at_least { "+" } else { "" })
}
