//! The lists of jobs, their columns below each other.

use jobq::Status;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use crate::cli::output::{BOLD, CYAN, DIM, ago, status_style};
use crate::cli::text::{command_first, shorten, width};
use crate::cli::top::model::{Model, Panel};
use crate::cli::top::snapshot::{Count, Row, Snapshot};
use crate::cli::top::style::on_screen;

/// Characters of a progress bar.
const BAR: usize = 10;
/// Columns for what there is to say of a job, without which its id is left out, and no
/// other's; the line below has the id of the selected one.
const LEAST_NOTE: usize = 16;

/// How wide each is; 0 is not shown.
pub(super) struct JobColumns {
    job_type: usize,
    id: usize,
    time: usize,
    tries: usize,
    note: usize,
    bar: bool,
}

impl JobColumns {
    pub(super) fn of(snapshot: &Snapshot, columns: u16) -> Self {
        let columns = usize::from(columns);
        let rows = || Panel::ALL.into_iter().flat_map(|panel| panel.rows(snapshot));
        let longest = |of: &dyn Fn(&Row) -> usize| rows().map(of).max().unwrap_or(0);
        let most = if columns < 100 { 18 } else { 28 };
        let job_type = longest(&|row| width(&row.job_type)).max(12).min(most).min(columns.saturating_sub(2));
        let (time, tries) = (if columns < 24 { 0 } else { 5 }, if columns < 48 { 0 } else { 5 });
        let used: usize = [job_type, time, tries].into_iter().filter(|w| *w > 0).map(|w| w + 2).sum();
        let left = columns.saturating_sub(used + 2);
        let most = left.saturating_sub(2 + LEAST_NOTE).min(36);
        let id = longest(&|row| Some(width(&row.short_id)).filter(|width| *width <= most).unwrap_or(0));
        // As wide as its heading, if there is one.
        let id = if id == 0 { 0 } else { id.max(2) };
        let note = if id == 0 { left } else { left - id - 2 };
        Self { job_type, id, time, tries, note, bar: columns >= 70 }
    }

    /// A heading and the rows around the cursor; a single line has no heading.
    pub(super) fn lines(&self, panel: Panel, model: &Model, snapshot: &Snapshot, height: usize) -> Vec<Line<'static>> {
        let rows = panel.rows(snapshot);
        let mut lines = Vec::new();
        if height > 1 {
            lines.push(self.head(panel, model, snapshot));
        }
        let fit = height - lines.len();
        if rows.is_empty() {
            let nothing = match panel {
                Panel::Running => "  nothing is running",
                Panel::Failed => "  nothing has failed",
                Panel::Pending => "  nothing is pending",
            };
            lines.push(Line::styled(nothing, on_screen(DIM, model.colours)));
            return lines;
        }
        let cursor = (panel == model.selection.panel).then_some(model.selection.index);
        let first = cursor.map_or(0, |cursor| (cursor + 1).saturating_sub(fit));
        for (index, row) in rows.iter().enumerate().skip(first).take(fit) {
            lines.push(self.row(row, snapshot, model.colours, cursor == Some(index)));
        }
        lines
    }

    fn head(&self, panel: Panel, model: &Model, snapshot: &Snapshot) -> Line<'static> {
        let (name, time, note) = match panel {
            Panel::Running => ("RUNNING", "FOR", "PROGRESS"),
            Panel::Failed => ("FAILED", "AGO", "ERROR"),
            Panel::Pending => ("PENDING", "AGE", "WHY"),
        };
        let total = match panel {
            Panel::Running => snapshot.total(|t| Count::exactly(t.claimed)),
            Panel::Failed => snapshot.total(|t| t.failed),
            Panel::Pending => snapshot.total(|t| Count::exactly(t.pending)),
        };
        let shown = panel.rows(snapshot).len();
        let dim = on_screen(DIM, model.colours);
        // Which they are is said where there are more than are read.
        let note = if i64::try_from(shown).is_ok_and(|shown| shown < total.jobs) {
            format!("{note} (the newest {shown})")
        } else {
            note.to_owned()
        };
        let mut spans = vec![Span::styled(format!("  {}", pad(name, self.job_type)), on_screen(BOLD, model.colours))];
        let cells = [(self.id, "ID", false), (self.time, time, true), (self.tries, "TRIES", true)];
        for (width, text, right) in cells.into_iter().filter(|cell| cell.0 > 0) {
            let text = if right { format!("  {text:>width$}") } else { format!("  {}", pad(text, width)) };
            spans.push(Span::styled(text, dim));
        }
        spans.push(Span::styled(format!("  {}", shorten(&note, self.note)), dim));
        Line::from(spans)
    }

    fn row(&self, row: &Row, snapshot: &Snapshot, colours: bool, selected: bool) -> Line<'static> {
        let style = on_screen(status_style(row.status), colours);
        let mut spans =
            vec![Span::raw(if selected { "> " } else { "  " }), Span::styled(pad(&row.job_type, self.job_type), style)];
        if self.id > 0 {
            spans.push(Span::styled(format!("  {}", pad(self.id_of(row), self.id)), on_screen(DIM, colours)));
        }
        let time = ago(snapshot.at, row.since);
        for (width, text) in [(self.time, &time), (self.tries, &row.tries)].into_iter().filter(|cell| cell.0 > 0) {
            spans.push(Span::raw(format!("  {:>width$}", shorten(text, width))));
        }
        let progress = row.percent.map(|percent| self.progress(percent)).unwrap_or_default();
        let room = self.note.saturating_sub(width(&progress));
        spans.push(Span::styled(format!("  {progress}"), on_screen(CYAN, colours)));
        let style = if row.status == Status::Failed { ratatui::style::Style::new() } else { on_screen(DIM, colours) };
        spans.push(Span::styled(note(row, room), style));
        let line = Line::from(spans);
        if selected { line.patch_style(Modifier::REVERSED) } else { line }
    }

    /// Half of one would name no job.
    fn id_of<'r>(&self, row: &'r Row) -> &'r str {
        if width(&row.short_id) <= self.id { &row.short_id } else { "" }
    }

    fn progress(&self, percent: u8) -> String {
        let percent = percent.min(100);
        if !self.bar {
            return format!("{percent:>3}% ");
        }
        let full = usize::from(percent) * BAR / 100;
        format!("{}{} {percent:>3}% ", "█".repeat(full), "░".repeat(BAR - full))
    }
}

/// What there is to say of a job. Of one that runs: what to do, rather than why.
pub(super) fn note(row: &Row, room: usize) -> String {
    if row.status == Status::Claimed { command_first(&row.note, room) } else { shorten(&row.note, room) }
}

/// Shortened or filled up to this width.
fn pad(text: &str, room: usize) -> String {
    let text = shorten(text, room);
    let pad = room.saturating_sub(width(&text));
    format!("{text}{:pad$}", "")
}
