//! The screen, drawn from the model and nothing else. Whatever does not fit is
//! left out, the least important first; a terminal of one character is fine.

mod jobs;
mod layout;
#[cfg(test)]
mod tests;
mod types;

use jobq::clock::rfc3339;
use jobq::{Status, printable};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use self::jobs::JobColumns;
use self::layout::Section;
use super::model::{Model, Panel, Question, Verb};
use super::page::{Page, Subject};
use super::snapshot::{Count, Snapshot};
use super::style::on_screen;
use crate::cli::output::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, status_style};
use crate::cli::text::{shorten, width};

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    match &model.page {
        Some(page) => draw_page(model, page, frame, area),
        None => draw_lists(model, frame, area),
    }
}

/// From the top: what it is; from the bottom: the keys, and what there is to say.
fn draw_lists(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let above = match area.height {
        0..4 => 0,
        4..8 => 1,
        _ => 2,
    };
    let below = area.height.saturating_sub(1).min(2);
    let body = Rect { y: area.y + above, height: area.height - above - below, ..area };
    put(frame, Rect { height: above, ..area }, [title(model, area.width), totals(model, area.width)]);
    put(frame, body, lists(model, body));
    draw_foot(model, LIST_KEYS, frame, below);
}

fn draw_foot(model: &Model, keys: &[Key], frame: &mut Frame<'_>, lines: u16) {
    let area = frame.area();
    let foot = Rect { y: area.bottom() - lines, height: lines, ..area };
    put(frame, foot, [said(model, area.width), keys_line(keys, model, area.width)]);
}

/// Lines from the top of an area; those below its end are left out.
fn put(frame: &mut Frame<'_>, area: Rect, lines: impl IntoIterator<Item = Line<'static>>) {
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

fn draw_page(model: &Model, page: &Page, frame: &mut Frame<'_>, area: Rect) {
    let (above, below) = Page::edges(area.height);
    let bold = on_screen(BOLD, model.colours);
    let head = match &page.subject {
        Subject::Help => Line::styled(" jobq top: keys and columns", bold),
        Subject::Job(row) => Line::from(vec![
            Span::styled(format!(" {}", printable(&row.id)), bold),
            Span::raw(format!("  {}  ", row.job_type)),
            Span::styled(row.status.as_str(), on_screen(status_style(row.status), model.colours)),
        ]),
    };
    put(frame, Rect { height: above, ..area }, [head]);
    let body = Rect { y: area.y + above, height: area.height - above - below, ..area };
    put(frame, body, page.lines.iter().skip(page.scroll).cloned());
    draw_foot(model, PAGE_KEYS, frame, below);
}

/// Types and the three lists, as many lines of each as there is room for.
fn lists(model: &Model, body: Rect) -> Vec<Line<'static>> {
    let Some(snapshot) = &model.snapshot else {
        let wait = if model.unavailable.is_some() { "" } else { " reading the queue …" };
        return vec![Line::styled(wait, on_screen(DIM, model.colours))];
    };
    if snapshot.types.is_empty() {
        return nothing_yet(model, body.width);
    }
    let columns = JobColumns::of(snapshot, body.width);
    // Most important first: what the cursor is on, what went wrong, what runs.
    let mut sections = vec![Section::Jobs(model.selection.panel)];
    let others = [Section::Jobs(Panel::Failed), Section::Jobs(Panel::Running), Section::Types];
    for section in others.into_iter().chain([Section::Jobs(Panel::Pending)]) {
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    let rows = |section: Section| match section {
        Section::Types => snapshot.types.len(),
        Section::Jobs(panel) => panel.rows(snapshot).len(),
    };
    let layout = layout::divide(&sections, usize::from(body.height), rows);
    let mut lines = Vec::new();
    for (section, height) in layout.parts {
        if layout.spaced {
            lines.push(Line::default());
        }
        match section {
            Section::Types => lines.extend(types::lines(snapshot, model.colours, body.width, height)),
            Section::Jobs(panel) => lines.extend(columns.lines(panel, model, snapshot, height)),
        }
    }
    lines
}

fn nothing_yet(model: &Model, width: u16) -> Vec<Line<'static>> {
    let dim = on_screen(DIM, model.colours);
    let next = "   jobq enqueue create_file '{\"path\":\"hello.txt\",\"content\":\"hi\"}'";
    let lines = [" no jobs yet; queue one in another terminal:", next];
    lines.into_iter().map(|text| Line::styled(shorten(text, usize::from(width)), dim)).collect()
}

/// What is shown, and as of when.
fn title(model: &Model, columns: u16) -> Line<'static> {
    let at = model.snapshot.as_ref().map(|snapshot| rfc3339(snapshot.at)).unwrap_or_default();
    let at = at.get(11..19).map(|clock| format!("{clock} UTC ")).unwrap_or_default();
    let name = " jobq top  ";
    let room = usize::from(columns).saturating_sub(width(name) + width(&at) + 1);
    let place = shorten(&model.root, room);
    let gap = room.saturating_sub(width(&place)) + 1;
    let mut spans = vec![Span::styled(name, on_screen(BOLD, model.colours)), Span::raw(place)];
    if room > 0 {
        spans.push(Span::styled(format!("{:gap$}{at}", ""), on_screen(DIM, model.colours)));
    }
    Line::from(spans)
}

/// All types together, and the rate.
fn totals(model: &Model, columns: u16) -> Line<'static> {
    let Some(snapshot) = &model.snapshot else { return Line::default() };
    let style = |status| on_screen(status_style(status), model.colours);
    let total = |of: fn(&super::snapshot::TypeCounts) -> Count| counted(snapshot.total(of));
    let parts = [
        (format!("{} running", total(|t| Count::exactly(t.claimed))), style(Status::Claimed)),
        (format!("{} pending", total(|t| Count::exactly(t.pending))), style(Status::Pending)),
        (format!("{} failed", total(|t| t.failed)), style(Status::Failed)),
        (rate(snapshot), on_screen(BOLD, model.colours)),
        (format!("{} done/h", total(|t| t.completed)), style(Status::Completed)),
    ];
    let mut spans = Vec::new();
    let mut used = 0;
    for (text, style) in parts {
        used += width(&text) + 2;
        if used > usize::from(columns) {
            break;
        }
        // Two columns between them, and one before the first.
        spans.push(Span::raw(if spans.is_empty() { " " } else { "  " }));
        spans.push(Span::styled(text, style));
    }
    Line::from(spans)
}

/// Jobs that ended: now, by the last ten seconds, and in the last minute.
fn rate(snapshot: &Snapshot) -> String {
    let Count { jobs, at_least } = snapshot.ended_in_ten_seconds;
    let more = if at_least { "+" } else { "" };
    let minute = counted(snapshot.ended_in_a_minute);
    if jobs >= 1_000 {
        format!("{}{more} jobs/s ({minute}/min)", jobs / 10)
    } else {
        format!("{}.{}{more} jobs/s ({minute}/min)", jobs / 10, jobs % 10)
    }
}

fn counted(count: Count) -> String {
    format!("{}{}", count.jobs, if count.at_least { "+" } else { "" })
}

/// One line for the person: a question, trouble, an answer, or the selected job.
fn said(model: &Model, columns: u16) -> Line<'static> {
    let columns = usize::from(columns);
    if let Some(question) = &model.question {
        let style = on_screen(YELLOW, model.colours).add_modifier(Modifier::BOLD);
        return Line::styled(asked(question, columns), style);
    }
    let (text, style) = if let Some(why) = &model.unavailable {
        let notice = model.notice.as_ref().map(|notice| format!("; {}", notice.text)).unwrap_or_default();
        (format!("cannot read the queue: {why}{notice}"), RED)
    } else if let Some(notice) = &model.notice {
        (notice.text.clone(), if notice.refused { RED } else { GREEN })
    } else if model.unanswered > 0 {
        ("working …".to_owned(), CYAN)
    } else if let (None, Some(row)) = (&model.page, model.selected()) {
        let id = printable(&row.id);
        let note = jobs::note(row, columns.saturating_sub(width(&id) + 3));
        (format!("{id}  {note}"), DIM)
    } else {
        return Line::default();
    };
    Line::styled(shorten(&format!(" {}", printable(&text)), columns), on_screen(style, model.colours))
}

/// What the answers are is to be seen even where the rest is cut.
fn asked(Question { verb, row }: &Question, columns: usize) -> String {
    const ANSWERS: &str = "? y/N";
    let verb = match verb {
        Verb::Retry => "retry",
        Verb::Cancel => "cancel",
    };
    let status = if row.status == Status::Claimed { "running" } else { row.status.as_str() };
    let what = format!(" {verb} the {status} {} {}", row.job_type, printable(&row.id));
    shorten(&what, columns.saturating_sub(width(ANSWERS))) + ANSWERS
}

/// A key, what it does, and how important it is to be told: 0 first.
type Key = (&'static str, &'static str, u8);

const LIST_KEYS: &[Key] = &[
    ("↑↓", "select", 5),
    ("Tab", "next list", 6),
    ("Enter", "inspect", 2),
    ("r", "retry", 3),
    ("c", "cancel", 4),
    ("?", "help", 1),
    ("q", "quit", 0),
];

const PAGE_KEYS: &[Key] =
    &[("↑↓", "scroll", 1), ("r", "retry", 2), ("c", "cancel", 3), ("q", "back", 0), ("Ctrl-C", "quit", 4)];

fn keys_line(keys: &[Key], model: &Model, columns: u16) -> Line<'static> {
    let about_a_job = !matches!(model.page.as_ref().map(|page| &page.subject), Some(Subject::Help));
    let of = |key: &&Key| about_a_job || !matches!(key.0, "r" | "c");
    let keys: Vec<&Key> = keys.iter().filter(of).collect();
    let length = |key: &Key| width(key.0) + width(key.1) + 3;
    let fits = |most: u8| keys.iter().filter(|key| key.2 <= most).map(|key| length(key)).sum::<usize>();
    let most = (0..=6).rev().find(|most| fits(*most) <= usize::from(columns));
    let (bold, dim) = (on_screen(BOLD, model.colours), on_screen(DIM, model.colours));
    let shown = keys.into_iter().filter(|key| most.is_some_and(|most| key.2 <= most));
    let spans = shown
        .flat_map(|(key, text, _)| [Span::raw(" "), Span::styled(*key, bold), Span::styled(format!(" {text} "), dim)]);
    Line::from(spans.collect::<Vec<_>>())
}

/// A number in its column: nothing to see is dim.
fn number_style(jobs: i64, style: anstyle::Style, colours: bool) -> Style {
    on_screen(if jobs == 0 { DIM } else { style }, colours)
}
