//! Tables that fit: columns as wide as what is in them, and where that is more than the
//! terminal has, texts are cut, and columns left out that are less important. A note for
//! which there is no room beside its row goes below it.

mod fit;

use std::io::{self, Write};

use anstyle::Style;
use jobq::printable;

use self::fit::{GAP, fit};
use super::output::DIM;
use super::text::{command_first, fold, shorten, width, wrap};

/// How far a note is indented that is below its row.
const BELOW: usize = 4;
/// Lines of such a note; `jobq show` has all of it.
const NOTE_LINES: usize = 4;

/// A column's name, and how important it is: 0 is not left out, the highest is the first
/// to go.
pub(crate) type Head = (&'static str, u8);

/// A word in a table.
#[derive(Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
    kind: Kind,
    command_first: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// At the right of its column.
    Number,
    /// Of no use when it is cut.
    Whole,
    /// The last of its row, and often long.
    Note,
}

/// Plain SQL can insert ids and types of any length.
const WIDEST: usize = 200;

impl Cell {
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        let text = shorten(&printable(&text.into()), WIDEST);
        Self { text, style, kind: Kind::Text, command_first: false }
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Style::new())
    }

    /// A number, or something to be compared like one.
    pub(crate) fn number(text: impl std::fmt::Display, style: Style) -> Self {
        Self { kind: Kind::Number, ..Self::new(text.to_string(), style) }
    }

    /// A name that is to be copied, or a word of a few.
    pub(crate) fn whole(text: impl Into<String>, style: Style) -> Self {
        Self { kind: Kind::Whole, ..Self::new(text, style) }
    }

    /// A reason, as the last of a row.
    pub(crate) fn note(text: impl Into<String>, style: Style) -> Self {
        Self { text: printable(&text.into()), kind: Kind::Note, ..Self::new("", style) }
    }

    /// What to do is not cut off: where there is no room it comes before the reason.
    pub(crate) fn command_first(self) -> Self {
        Self { command_first: true, ..self }
    }

    fn cut(&self, room: usize) -> String {
        if self.command_first { command_first(&self.text, room) } else { shorten(&self.text, room) }
    }

    pub(crate) fn indented(&self) -> Self {
        Self { text: format!("  {}", self.text), ..self.clone() }
    }
}

/// In this many columns of a terminal, or without a limit.
pub(super) fn write(stream: &mut impl Write, head: &[Head], rows: &[Vec<Cell>], room: Option<usize>) -> io::Result<()> {
    let room = room.unwrap_or(usize::MAX);
    let kinds: Vec<Kind> =
        (0..head.len()).map(|column| rows.first().map_or(Kind::Text, |row| row[column].kind)).collect();
    let natural = |column: usize| {
        let cells = rows.iter().map(|row| width(&row[column].text));
        cells.chain([width(head[column].0)]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(natural).collect();
    let shown = fit(head, &kinds, &widths, room);
    let note_below = kinds.last() == Some(&Kind::Note) && shown.last().is_none_or(|last| last.column + 1 < head.len());
    let head: Vec<Cell> = head.iter().map(|(name, _)| Cell::new(*name, DIM)).collect();
    for row in std::iter::once(&head).chain(rows) {
        let mut padding = 0;
        for one in &shown {
            let cell = &row[one.column];
            let text = cell.cut(one.width);
            let pad = one.width.saturating_sub(width(&text));
            let (before, after) = if kinds[one.column] == Kind::Number { (pad, 0) } else { (0, pad) };
            // What comes after the last word of a line is nothing at all.
            if !text.is_empty() {
                write!(stream, "{:1$}", "", padding + before)?;
                write!(stream, "{}{text}{:#}", cell.style, cell.style)?;
                padding = 0;
            }
            padding += after + GAP + if text.is_empty() { before } else { 0 };
        }
        writeln!(stream)?;
        if let Some(note) = row.last().filter(|cell| note_below && cell.kind == Kind::Note) {
            below(stream, note, room)?;
        }
    }
    Ok(())
}

/// Broken between words, and within one that is too long.
fn below(stream: &mut impl Write, note: &Cell, room: usize) -> io::Result<()> {
    if note.text.is_empty() {
        return Ok(());
    }
    let indent = BELOW.min(room.saturating_sub(1));
    let room = room.saturating_sub(indent).max(1);
    let mut lines: Vec<String> = wrap(&note.text, room).iter().flat_map(|line| fold(line, room)).collect();
    if lines.len() > NOTE_LINES {
        lines.truncate(NOTE_LINES);
        let last = lines.pop().unwrap_or_default();
        lines.push(shorten(&format!("{} …", last.trim_end()), room));
    }
    let style = note.style;
    lines.iter().try_for_each(|line| writeln!(stream, "{:indent$}{style}{}{style:#}", "", line.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(head: &[Head], rows: &[Vec<Cell>], room: Option<usize>) -> Vec<String> {
        let mut text = Vec::new();
        write(&mut text, head, rows, room).unwrap();
        let text = anstream::adapter::strip_str(std::str::from_utf8(&text).unwrap()).to_string();
        text.lines().map(str::to_owned).collect()
    }

    fn jobs() -> Vec<Vec<Cell>> {
        let row = |id: &str, job_type: &str, tries: u32, note: &str| {
            let none = Style::new();
            vec![Cell::whole(id, none), Cell::plain(job_type), Cell::number(tries, none), Cell::note(note, none)]
        };
        vec![
            row("01M7PFAGHZ", "create_file", 1, "behind another one that has the same path"),
            row("01M7PFAGJ7", "发送邮件", 10, ""),
        ]
    }

    const HEAD: [Head; 4] = [("ID", 0), ("TYPE", 1), ("TRIES", 3), ("NOTE", 2)];

    #[test]
    fn columns_are_aligned_by_what_is_seen_and_lines_end_with_their_last_word() {
        let lines = shown(&HEAD, &jobs(), None);
        assert_eq!(lines[0], "ID          TYPE         TRIES  NOTE");
        assert_eq!(lines[1], "01M7PFAGHZ  create_file      1  behind another one that has the same path");
        assert_eq!(lines[2], "01M7PFAGJ7  发送邮件        10", "a wide character takes two columns");
    }

    #[test]
    fn a_table_fits_whatever_room_there_is_and_ids_stay_whole() {
        for room in 12..100 {
            for line in shown(&HEAD, &jobs(), Some(room)) {
                assert!(width(&line) <= room, "{room}: {line:?}");
                let id = line.split(' ').next().unwrap();
                assert!(["ID", "01M7PFAGHZ", "01M7PFAGJ7", ""].contains(&id), "{room}: {line:?}");
            }
        }
        let at = |room| shown(&HEAD, &jobs(), Some(room));
        assert_eq!(at(60)[1], "01M7PFAGHZ  create_file      1  behind another one that has…");
        assert_eq!(at(54)[1], "01M7PFAGHZ  create_file  behind another one that has …", "rather than the tries");
        let below = ["01M7PFAGHZ  create_file      1", "    behind another one that has the same", "    path"];
        assert_eq!(at(40)[1..4], below, "and below where there is no room");
        assert_eq!(at(25)[1], "01M7PFAGHZ  create_file");
        assert_eq!(at(25)[5], "01M7PFAGJ7  发送邮件", "nothing below one that has none");
    }

    #[test]
    fn several_wide_columns_share_what_is_missing() {
        let row = vec![Cell::plain("a".repeat(40)), Cell::plain("b".repeat(40)), Cell::number(1, Style::new())];
        let line = &shown(&[("A", 0), ("B", 1), ("N", 2)], &[row], Some(50))[1];
        assert_eq!((width(line), line.matches('a').count(), line.matches('b').count()), (50, 22, 21), "{line}");
    }

    #[test]
    fn what_is_more_important_stays_wherever_it_stands() {
        let row = vec![Cell::plain("create_file"), Cell::number(12, Style::new()), Cell::whole("completed", DIM)];
        let at = |room| shown(&[("TYPE", 0), ("JOBS", 1), ("STATUS", 0)], std::slice::from_ref(&row), Some(room));
        assert_eq!(at(30)[1], "create_file    12  completed");
        assert_eq!(at(22)[1], "create_file  completed");
        assert_eq!(at(20)[1], "create_f…  completed");
        assert_eq!(at(16)[1], "create_…  compl…", "of a word of a few there is enough to know it");
        assert_eq!(at(9)[1], "create_…");
    }

    #[test]
    fn a_note_that_goes_on_and_on_does_not() {
        let rows = [vec![Cell::whole("01M7PFAGHZ", DIM), Cell::note("word ".repeat(100), DIM)]];
        let lines = shown(&[("ID", 0), ("NOTE", 1)], &rows, Some(20));
        assert_eq!(
            lines[1..],
            ["01M7PFAGHZ", "    word word word", "    word word word", "    word word word", "    word word word …"]
        );
    }
}
