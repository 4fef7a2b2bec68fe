//! Tables that fit: columns as wide as what is in them, and where that is more than
//! the terminal has, texts are cut and then columns left out, the last ones first.

use std::io::{self, Write};

use anstyle::Style;
use jobq::printable;

use super::output::DIM;
use super::text::{shorten, width};

/// Between two columns.
const GAP: usize = 2;
/// A text that is cut keeps at least this much.
const LEAST: usize = 12;
/// And one that ends its line, this much.
const LEAST_AT_END: usize = 16;

/// A word in a table.
#[derive(Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// At the right of its column.
    Number,
    /// Of no use when it is cut.
    Whole,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: printable(&text.into()), style, kind: Kind::Text }
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

    pub(crate) fn indented(&self) -> Self {
        Self { text: format!("  {}", self.text), ..self.clone() }
    }
}

/// In this many columns of a terminal, or without a limit.
pub(super) fn write(stream: &mut impl Write, head: &[&str], rows: &[Vec<Cell>], room: Option<usize>) -> io::Result<()> {
    let kinds: Vec<Kind> =
        (0..head.len()).map(|column| rows.first().map_or(Kind::Text, |row| row[column].kind)).collect();
    let natural = |column: usize| {
        let cells = rows.iter().map(|row| width(&row[column].text));
        cells.chain([width(head[column])]).max().unwrap_or(0)
    };
    let widths = fitted((0..head.len()).map(natural).collect(), &kinds, room.unwrap_or(usize::MAX));
    let head: Vec<Cell> = head.iter().map(|name| Cell::new(*name, DIM)).collect();
    for row in std::iter::once(&head).chain(rows) {
        let mut padding = 0;
        for ((cell, room), kind) in row.iter().zip(&widths).zip(&kinds) {
            let text = shorten(&cell.text, *room);
            let pad = room.saturating_sub(width(&text));
            let (before, after) = if *kind == Kind::Number { (pad, 0) } else { (0, pad) };
            // What comes after the last word of a line is nothing at all.
            if !text.is_empty() {
                write!(stream, "{:1$}", "", padding + before)?;
                write!(stream, "{}{text}{:#}", cell.style, cell.style)?;
                padding = 0;
            }
            padding += after + GAP + if text.is_empty() { before } else { 0 };
        }
        writeln!(stream)?;
    }
    Ok(())
}

/// The widths of the columns that are shown.
fn fitted(mut widths: Vec<usize>, kinds: &[Kind], room: usize) -> Vec<usize> {
    let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    loop {
        let over = total(&widths).saturating_sub(room);
        if over == 0 {
            return widths;
        }
        let texts = || (0..widths.len()).filter(|column| kinds[*column] == Kind::Text);
        // The last text is usually the longest and the least of a name; then the widest.
        let last = texts().next_back().filter(|column| *column + 1 == widths.len() && widths[*column] > LEAST_AT_END);
        let widest = texts().max_by_key(|column| widths[*column]).filter(|column| widths[*column] > LEAST);
        match last.or(widest) {
            Some(column) => {
                let floor = if last.is_some() { LEAST_AT_END } else { LEAST };
                // One by one, so that several that are wide share what is missing.
                let step = if last.is_some() { over } else { 1 };
                widths[column] = widths[column].saturating_sub(step).max(floor);
            }
            None if widths.len() > 1 => drop(widths.pop()),
            None => {
                widths[0] = room;
                return widths;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(head: &[&str], rows: &[Vec<Cell>], room: Option<usize>) -> Vec<String> {
        let mut text = Vec::new();
        write(&mut text, head, rows, room).unwrap();
        let text = anstream::adapter::strip_str(std::str::from_utf8(&text).unwrap()).to_string();
        text.lines().map(str::to_owned).collect()
    }

    fn jobs() -> Vec<Vec<Cell>> {
        let row = |id: &str, job_type: &str, tries: u32, note: &str| {
            let none = Style::new();
            vec![Cell::whole(id, none), Cell::plain(job_type), Cell::number(tries, none), Cell::plain(note)]
        };
        vec![
            row("01M7PFAGHZ", "create_file", 1, "behind another one that has the same path"),
            row("01M7PFAGJ7", "发送邮件", 10, ""),
        ]
    }

    const HEAD: [&str; 4] = ["ID", "TYPE", "TRIES", "NOTE"];

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
                assert!(line.starts_with("ID") || line.starts_with("01M7PFAG"), "{room}: {line:?}");
            }
        }
        assert_eq!(shown(&HEAD, &jobs(), Some(46))[1], "01M7PFAGHZ  create_file      1  behind anothe…");
        assert_eq!(shown(&HEAD, &jobs(), Some(40))[1], "01M7PFAGHZ  create_file      1");
        assert_eq!(shown(&HEAD, &jobs(), Some(25))[2], "01M7PFAGJ7  发送邮件");
    }

    #[test]
    fn several_wide_columns_share_what_is_missing() {
        let row = vec![Cell::plain("a".repeat(40)), Cell::plain("b".repeat(40)), Cell::number(1, Style::new())];
        let line = &shown(&["A", "B", "N"], &[row], Some(50))[1];
        assert_eq!((width(line), line.matches('a').count(), line.matches('b').count()), (50, 22, 21), "{line}");
    }
}
