//! What people and scripts see: tables that fit, colours that mean something,
//! JSON lines.

use std::io::{self, IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use jobq::clock::Millis;
use jobq::{Status, printable};
use serde::Serialize;

pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();

/// Standard output, as JSON lines or as text for people.
pub(crate) struct Output {
    stream: io::BufWriter<anstream::AutoStream<io::Stdout>>,
    pub(crate) json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { stream: io::BufWriter::new(anstream::stdout()), json }
    }

    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.stream, value)?;
        writeln!(self.stream)
    }

    pub(crate) fn line(&mut self, text: impl std::fmt::Display) -> io::Result<()> {
        writeln!(self.stream, "{text}")
    }

    /// The bytes as they are, for files meant for other programs.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }

    /// Columns as wide as their content, numbers at the right of theirs; the last
    /// one takes what is left of the terminal's width.
    pub(crate) fn table(&mut self, head: &[&str], rows: &[Vec<Cell>]) -> io::Result<()> {
        let last = head.len() - 1;
        let width_of = |column: usize| {
            let cells = rows.iter().map(|row| row[column].text.chars().count());
            cells.chain([head[column].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..last).map(width_of).collect();
        let is_number = |column: usize| rows.first().is_some_and(|row| row[column].number);
        let numbers: Vec<bool> = (0..last).map(is_number).collect();
        let last_width = if is_number(last) { width_of(last) } else { 0 };
        let used: usize = widths.iter().map(|w| w + 2).sum();
        let room = terminal_width().map_or(usize::MAX, |w| w.saturating_sub(used).max(10));
        let head: Vec<Cell> = head.iter().map(|name| Cell::new(*name, DIM)).collect();
        for row in std::iter::once(&head).chain(rows) {
            for ((cell, width), right) in row.iter().zip(&widths).zip(&numbers) {
                let pad = width - cell.text.chars().count();
                let (before, after) = if *right { (pad, 0) } else { (0, pad) };
                write!(self.stream, "{:before$}{}{}{:#}{:after$}  ", "", cell.style, cell.text, cell.style, "")?;
            }
            let cell = &row[last];
            let text = shorten(&cell.text, room);
            let pad = last_width.saturating_sub(text.chars().count());
            writeln!(self.stream, "{:pad$}{}{text}{:#}", "", cell.style, cell.style)?;
        }
        Ok(())
    }
}

/// A word in a table.
pub(crate) struct Cell {
    text: String,
    style: Style,
    number: bool,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: printable(&text.into()), style, number: false }
    }

    /// A number, or something to be compared like one.
    pub(crate) fn number(text: impl std::fmt::Display, style: Style) -> Self {
        Self { number: true, ..Self::new(text.to_string(), style) }
    }

    pub(crate) fn indented(&self) -> Self {
        Self { text: format!("  {}", self.text), style: self.style, number: self.number }
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Style::new())
    }
}

pub(crate) const fn status_style(status: Status) -> Style {
    match status {
        Status::Pending => YELLOW,
        Status::Claimed => CYAN,
        Status::Completed => GREEN,
        Status::Failed => RED,
        Status::Cancelled => DIM,
    }
}

/// `12s`, `3m`, `2h`, `5d`: enough to see at a glance.
pub(crate) fn ago(now: Millis, then: Millis) -> String {
    span(now.saturating_sub(then))
}

pub(crate) fn span(millis: Millis) -> String {
    match millis {
        ..1_000 => format!("{}ms", millis.max(0)),
        1_000..60_000 => format!("{}s", millis / 1_000),
        60_000..3_600_000 => format!("{}m", millis / 60_000),
        3_600_000..86_400_000 => format!("{}h", millis / 3_600_000),
        _ => format!("{}d", millis / 86_400_000),
    }
}

fn shorten(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

fn terminal_width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}
