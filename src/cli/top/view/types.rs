//! Counts by type and status.

use anstyle::Style;
use jobq::Status;
use ratatui::text::{Line, Span};

use super::{counted, number_style};
use crate::cli::output::{BOLD, DIM, YELLOW, span, status_style};
use crate::cli::text::{shorten, width};
use crate::cli::top::snapshot::{Count, Snapshot, TypeCounts};
use crate::cli::top::style::on_screen;

/// The least of a type's name, and what stands before it.
const LEAST_NAME: usize = 2 + 4;

/// A column of numbers, and the width from which on it is shown. Where numbers are so wide
/// that not even these fit, the one that is shown from the highest width on goes first.
struct Column {
    head: &'static str,
    from: u16,
    style: Style,
    value: fn(&TypeCounts) -> Value,
}

enum Value {
    Jobs(Count),
    Time(Option<i64>),
}

const COLUMNS: [Column; 8] = [
    Column { head: "PENDING", from: 20, style: status_style(Status::Pending), value: |t| exactly(t.pending) },
    Column { head: "READY", from: 90, style: status_style(Status::Pending), value: |t| exactly(t.ready) },
    Column { head: "RUNNING", from: 30, style: status_style(Status::Claimed), value: |t| exactly(t.claimed) },
    Column { head: "FAILED", from: 0, style: status_style(Status::Failed), value: |t| Value::Jobs(t.failed) },
    Column { head: "DONE 1H", from: 50, style: status_style(Status::Completed), value: |t| Value::Jobs(t.completed) },
    Column { head: "CANCELLED 1H", from: 90, style: Style::new(), value: |t| Value::Jobs(t.cancelled) },
    Column { head: "P50", from: 70, style: Style::new(), value: |t| Value::Time(t.p50) },
    Column { head: "P95", from: 70, style: Style::new(), value: |t| Value::Time(t.p95) },
];

fn exactly(jobs: i64) -> Value {
    Value::Jobs(Count::exactly(jobs))
}

impl Value {
    fn text(&self) -> String {
        match self {
            Self::Jobs(count) => counted(*count),
            Self::Time(time) => time.map(span).unwrap_or_default(),
        }
    }
}

/// A heading and as many types as there is room for.
pub(super) fn lines(snapshot: &Snapshot, colours: bool, columns: u16, height: usize) -> Vec<Line<'static>> {
    let types = &snapshot.types;
    let widest = |column: &Column| types.iter().map(|t| width(&(column.value)(t).text())).max().unwrap_or(0);
    let mut shown: Vec<(&Column, usize)> = COLUMNS
        .iter()
        .filter(|column| columns >= column.from)
        .map(|column| (column, widest(column).max(column.head.len())))
        .collect();
    let wide = |shown: &[(&Column, usize)]| shown.iter().map(|(_, width)| width + 2).sum::<usize>();
    while LEAST_NAME + wide(&shown) > usize::from(columns)
        && let Some(first) = (0..shown.len()).max_by_key(|at| shown[*at].0.from).filter(|_| shown.len() > 1)
    {
        shown.remove(first);
    }
    let numbers = wide(&shown);
    let room = usize::from(columns).saturating_sub(numbers + 3);
    let longest = types.iter().map(|t| width(&t.name)).max().unwrap_or(0);
    let name_width = longest.max(16).min(room.max(4)).min(36);
    let dim = on_screen(DIM, colours);
    let mut head = vec![Span::styled(format!("  {:name_width$}", "TYPE"), on_screen(BOLD, colours))];
    head.extend(shown.iter().map(|(column, width)| Span::styled(format!("  {:>width$}", column.head), dim)));
    let mut lines = vec![Line::from(head)];
    let fit = height.saturating_sub(1);
    // The last line is for those that do not fit.
    let rows = if types.len() > fit { fit.saturating_sub(1) } else { fit };
    for counts in types.iter().take(rows) {
        let name = shorten(&counts.name, name_width);
        let pad = name_width - width(&name);
        let mut line = vec![Span::raw(format!("  {name}{:pad$}", ""))];
        for (column, width) in &shown {
            let value = (column.value)(counts);
            let style = match value {
                Value::Jobs(count) => number_style(count.jobs, column.style, colours),
                Value::Time(_) => on_screen(column.style, colours),
            };
            line.push(Span::styled(format!("  {:>width$}", value.text()), style));
        }
        if let Some(paused) = &counts.paused {
            line.push(Span::styled(format!("  {paused}"), on_screen(YELLOW, colours)));
        }
        lines.push(Line::from(line));
    }
    if types.len() > rows && fit > 0 {
        let more = types.len() - rows;
        let word = if more == 1 { "type" } else { "types" };
        lines.push(Line::styled(format!("  … {more} more {word}"), dim));
    }
    lines
}
