//! A text over the whole screen that can be scrolled: a job, or the help.

use std::fmt::Write as _;

use jobq::clock::rfc3339;
use jobq::{Event, EventQuery, Queue, Result, printable};
use ratatui::text::{Line, Span};

use super::snapshot::Row;
use super::style::on_screen;
use crate::cli::events::event_style;
use crate::cli::gone::Gone;
use crate::cli::output::{BOLD, DIM, RED};
use crate::cli::show::columns;
use crate::cli::text::{fold, shorten};

/// Bytes of one column that are shown; `jobq show` has all of it.
const MOST_TEXT: usize = 64 * 1024;
/// Events that are shown.
const MOST_EVENTS: u32 = 1_000;
/// The widest name of a column, and what stands around it.
const NAME: usize = 19;
/// Below this the text of a column gets lines of its own.
const NARROW: usize = 50;

pub(super) enum Subject {
    Help,
    Job(Row),
}

pub(super) struct Page {
    pub(super) subject: Subject,
    pub(super) lines: Vec<Line<'static>>,
    pub(super) scroll: usize,
    /// What the lines are made of; nothing while it is being read.
    detail: Option<std::result::Result<Detail, String>>,
}

/// What `jobq show` shows.
pub(super) struct Detail {
    pub(super) row: Row,
    columns: Vec<(&'static str, String)>,
    events: Vec<Event>,
    more_events: bool,
}

impl Detail {
    pub(super) fn of(queue: &Queue, id: &str) -> Result<Self> {
        let job = queue.get(id)?;
        let query = EventQuery { job_id: Some(id.to_owned()), after: 0, limit: MOST_EVENTS };
        let events = queue.events(&query)?;
        let gone = Gone::among(std::slice::from_ref(&job), queue)?;
        let mut columns =
            columns(&job, &gone).map_err(|e| jobq::Error::new(jobq::ErrorKind::Internal, format!("job {id}: {e}")))?;
        for (_, text) in &mut columns {
            cut(text);
        }
        Ok(Self { row: Row::of(&job), columns, more_events: events.len() == MOST_EVENTS as usize, events })
    }
}

fn cut(text: &mut String) {
    if text.len() > MOST_TEXT {
        let more = text.len() - MOST_TEXT;
        text.truncate((0..=MOST_TEXT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
        let _ = write!(text, " … and some {} KiB more: `jobq show` has all of it", more.div_ceil(1024));
    }
}

impl Page {
    pub(super) fn of(row: Row, width: u16, colours: bool) -> Self {
        let mut page = Self { subject: Subject::Job(row), lines: Vec::new(), scroll: 0, detail: None };
        page.wrap(width, colours);
        page
    }

    pub(super) fn help(width: u16, colours: bool) -> Self {
        let mut page = Self { subject: Subject::Help, lines: Vec::new(), scroll: 0, detail: None };
        page.wrap(width, colours);
        page
    }

    /// What was read of the job; an answer that comes when another page is open is
    /// not for this one.
    pub(super) fn show(&mut self, detail: std::result::Result<Detail, String>, width: u16, colours: bool) {
        let Subject::Job(row) = &mut self.subject else { return };
        if let Ok(detail) = &detail {
            if detail.row.id != row.id {
                return;
            }
            *row = detail.row.clone();
        }
        self.detail = Some(detail);
        self.wrap(width, colours);
    }

    /// Breaks the text into lines of this width.
    pub(super) fn wrap(&mut self, width: u16, colours: bool) {
        let width = usize::from(width).max(1);
        self.lines = match (&self.subject, &self.detail) {
            (Subject::Help, _) => help(width, colours),
            (_, None) => vec![Line::styled(" reading …", on_screen(DIM, colours))],
            (_, Some(Err(why))) => {
                let red = on_screen(RED, colours);
                fold(&printable(why), width).into_iter().map(|line| Line::styled(line, red)).collect()
            }
            (_, Some(Ok(detail))) => job(detail, width, colours),
        };
    }

    /// Lines above and below what is scrolled, on a screen of this height: the title,
    /// and what is said with the keys.
    pub(super) fn edges(height: u16) -> (u16, u16) {
        (u16::from(height >= 4), height.saturating_sub(1).min(2))
    }

    /// By lines, `height` of which are to be seen at once.
    pub(super) fn scroll_by(&mut self, lines: isize, height: usize) {
        let last = self.lines.len().saturating_sub(height);
        self.scroll = self.scroll.saturating_add_signed(lines).min(last);
    }
}

fn job(detail: &Detail, width: usize, colours: bool) -> Vec<Line<'static>> {
    let dim = on_screen(DIM, colours);
    let mut lines = Vec::new();
    for (name, text) in &detail.columns {
        let style = if *name == "last_error" { on_screen(RED, colours) } else { ratatui::style::Style::new() };
        lines.extend(item(Span::styled(*name, dim), &Span::styled(text.as_str(), style), width));
    }
    lines.push(Line::styled(" events", dim));
    for event in &detail.events {
        lines.extend(event_lines(event, width, colours));
    }
    if detail.more_events {
        lines.push(Line::styled(format!("   the first {MOST_EVENTS}; `jobq events` has all of them"), dim));
    }
    lines
}

/// The same as a line of `jobq events`, broken where it has to be.
fn event_lines(event: &Event, width: usize, colours: bool) -> Vec<Line<'static>> {
    let dim = on_screen(DIM, colours);
    let word = printable(&event.event_type);
    let attempt = if event.attempt == 0 { String::new() } else { format!(" attempt {}", event.attempt) };
    let mut data = event.data.as_ref().map(|data| printable(data.as_str())).unwrap_or_default();
    cut(&mut data);
    let head = Line::from(vec![
        Span::styled(format!("   {:>6} {} ", event.id, rfc3339(event.at)), dim),
        Span::styled(format!("{word:<11}"), on_screen(event_style(&event.event_type), colours)),
        Span::raw(attempt),
    ]);
    let mut lines = vec![head];
    let indent = NAME.min(width / 4);
    if !data.is_empty() {
        let broken = fold(&data, width.saturating_sub(indent + 1).max(1));
        lines.extend(broken.into_iter().map(|part| Line::styled(format!("{:indent$}{part}", ""), dim)));
    }
    lines
}

/// A name and its text beside it, or below it where there is no room.
fn item(name: Span<'static>, text: &Span<'_>, width: usize) -> Vec<Line<'static>> {
    let (indent, own_line) = if width < NARROW { (3, true) } else { (NAME, false) };
    let style = text.style;
    let mut parts = fold(&text.content, width.saturating_sub(indent + 1).max(1)).into_iter();
    let mut lines = Vec::new();
    if own_line {
        lines.push(Line::from(vec![Span::raw(" "), name]));
    } else {
        let pad = indent.saturating_sub(1 + name.width());
        let first = Span::styled(parts.next().unwrap_or_default(), style);
        lines.push(Line::from(vec![Span::raw(" "), name, Span::raw(" ".repeat(pad)), first]));
    }
    lines.extend(parts.map(|part| Line::from(vec![Span::raw(" ".repeat(indent)), Span::styled(part, style)])));
    lines
}

fn help(width: usize, colours: bool) -> Vec<Line<'static>> {
    const KEYS: [(&str, &str); 13] = [
        ("↑ ↓  k j", "select a job; on a page like this one: scroll"),
        ("Tab", "the next list: running, failed, pending"),
        ("PgUp PgDn", "ten jobs, or a page; Home and End: first and last"),
        ("Enter  i", "inspect: all about the selected job, and back"),
        ("r", "retry a failed job: pending again, attempts 0; asks first"),
        ("c", "cancel a pending or running job, and what waits on it; asks first"),
        ("?", "this help, and back"),
        ("Esc  q", "back; on the lists q quits"),
        ("Ctrl-C", "quit"),
        ("Ctrl-L", "draw everything again"),
        ("Ctrl-Z", "back to the shell for a while; `fg` comes back"),
        ("DONE 1H", "completed in the last hour; + means: at least"),
        ("P50 P95", "how long the newest completed jobs took: half, and 95 of 100, no longer than this"),
    ];
    let bold = on_screen(BOLD, colours);
    let items = KEYS.into_iter().flat_map(|(key, text)| item(Span::styled(key, bold), &Span::raw(text), width));
    items.chain([Line::raw(shorten(" Looking changes nothing.", width))]).collect()
}
