//! What people and scripts see: tables that fit, colours that mean something,
//! JSON lines.

use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use jobq::Status;
use jobq::clock::{Millis, millis};
use jobq::store::Stuck;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;

use super::locate::now;
use super::progress::past_the_bar;
pub(crate) use super::table::{Cell, Head};
use super::{table, text};

pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();

/// Columns in which no text can be read.
const HARDLY: usize = 24;
/// How far a text is indented that begins on a line of its own.
const BELOW: usize = 4;

/// Standard output, as JSON lines or as text for people.
///
/// A command goes on to its answer though nobody reads any more: what cannot be written is kept for `close`, and is no
/// error of the one who writes. Only those are told at once whose answer is what they print.
pub(crate) struct Output {
    stream: io::BufWriter<anstream::AutoStream<io::Stdout>>,
    failed: Option<io::Error>,
    ends_with_reader: bool,
    pub(crate) json: bool,
    /// No hints and no progress.
    pub(crate) quiet: bool,
}

impl Output {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let stream = io::BufWriter::new(anstream::stdout());
        Self { stream, failed: None, ends_with_reader: false, json, quiet }
    }

    /// For those that print for long, or for ever, and do nothing else: from now on the first error of a write ends them.
    pub(crate) fn end_with_reader(&mut self) {
        self.ends_with_reader = true;
    }

    /// What could not be written, if anything.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.ends_with_reader = false;
        self.flush()?;
        self.failed.take().map_or(Ok(()), Err)
    }

    fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        // What comes after a gap would be taken for what should have stood there.
        if self.failed.is_some() {
            return Ok(());
        }
        let Err(error) = write(&mut self.stream) else { return Ok(()) };
        if self.ends_with_reader {
            return Err(error);
        }
        self.failed = Some(error);
        Ok(())
    }

    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.line(text::json(value)?)
    }

    pub(crate) fn line(&mut self, text: impl std::fmt::Display) -> io::Result<()> {
        self.write(|stream| writeln!(stream, "{text}"))
    }

    /// For people, beside the results: what to do next, say.
    pub(crate) fn hint(&mut self, text: impl std::fmt::Display) -> io::Result<()> {
        if self.json || self.quiet {
            return Ok(());
        }
        self.flush()?;
        tell(text);
        Ok(())
    }

    /// Nothing is refused for it, but somebody should look. For scripts, too: it is beside the results.
    pub(crate) fn warnings(&mut self, warnings: &[impl std::fmt::Display]) -> io::Result<()> {
        if self.quiet {
            return Ok(());
        }
        self.flush()?;
        warnings.iter().for_each(super::print_warning);
        Ok(())
    }

    /// The bytes as they are, for files meant for other programs.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(|stream| stream.write_all(bytes))
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.write(|stream| stream.flush())
    }

    /// Lets time go by with everything written; an error as soon as nobody reads it any more,
    /// which is otherwise found out only when there is more to write.
    pub(crate) fn pause(&mut self, time: Duration) -> io::Result<()> {
        self.flush()?;
        let stdout = io::stdout();
        // Nothing is asked for: an end of the other side is told anyway.
        let mut ends = [PollFd::new(&stdout, PollFlags::empty())];
        let time = Timespec::try_from(time).map_err(io::Error::other)?;
        match poll(&mut ends, Some(&time)) {
            Ok(0) | Err(Errno::INTR) => Ok(()),
            Ok(_) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Columns as wide as their content, numbers at the right of theirs, in what
    /// width the terminal has.
    pub(crate) fn table(&mut self, head: &[Head], rows: &[Vec<Cell>]) -> io::Result<()> {
        self.write(|mut stream| table::write(&mut stream, head, rows, terminal_width()))
    }

    /// A text behind something that is as wide as `indent`; on a terminal it goes on
    /// below its own beginning, or begins below where there is hardly any room.
    pub(crate) fn behind(&mut self, start: impl std::fmt::Display, indent: usize, text: &str) -> io::Result<()> {
        let Some(columns) = terminal_width() else { return self.line(format_args!("{start}{text}")) };
        let room = columns.saturating_sub(indent);
        let below = indent > BELOW && room < HARDLY && text::width(text) > room;
        let indent = if below { BELOW } else { indent };
        let lines = below_each_other(text, indent, columns);
        let gap = if below { format!("\n{:indent$}", "") } else { String::new() };
        self.line(format_args!("{start}{gap}{lines}"))
    }
}

/// Lines that begin in this column.
pub(crate) fn below_each_other(text: &str, indent: usize, columns: usize) -> String {
    text::wrap(text, columns.saturating_sub(indent)).join(&format!("\n{:indent$}", ""))
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
    let millis = now.saturating_sub(then);
    if millis < 1_000 { "0s".to_owned() } else { span(millis) }
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

/// How long it will be, to two units: `1h 30m`. Not less than it is.
pub(crate) fn until(millis: Millis) -> String {
    let unit = match millis {
        ..3_600_000 => 1_000,
        3_600_000..86_400_000 => 60_000,
        _ => 3_600_000,
    };
    let millis = u64::try_from(millis).unwrap_or(0);
    exact(Duration::from_millis(millis.div_ceil(unit) * unit))
}

/// When a job gave its last sign of life; people are told how long ago that is.
pub(crate) fn heard(stuck: &Stuck) -> String {
    let Some(last) = &stuck.last_sign_of_life else { return "never".to_owned() };
    match humantime::parse_rfc3339(last) {
        Ok(then) if for_people() => format!("{} ago", ago(now(), millis(then))),
        _ => last.clone(),
    }
}

/// That a type is paused, and until when; people are told how long that will be.
pub(crate) fn while_paused(end: &str) -> String {
    match humantime::parse_rfc3339(end) {
        Ok(then) if for_people() => format!("paused for another {}", until(millis(then).saturating_sub(now()))),
        _ => format!("paused until {end}"),
    }
}

/// A time to the millisecond, as it is typed: `1h 30m`.
pub(crate) fn exact(time: Duration) -> String {
    let mut left = time.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let parts = units.map(|(unit, size)| {
        let count = left / size;
        left %= size;
        if count == 0 { String::new() } else { format!("{count}{unit}") }
    });
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// `1 job`, `2 jobs`.
pub(crate) fn counted(count: u64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// Whether people look at this: then ids and times are short, and lines fit.
pub(crate) fn for_people() -> bool {
    io::stdout().is_terminal()
}

/// To standard error; on a terminal lines are broken between words. Nothing depends on whether somebody hears it.
pub(crate) fn tell(text: impl std::fmt::Display) {
    let text = text.to_string();
    let text = width_of(&io::stderr()).map_or(text.clone(), |columns| text::wrap(&text, columns).join("\n"));
    past_the_bar(|| drop(writeln!(anstream::stderr(), "{text}")));
}

pub(crate) fn terminal_width() -> Option<usize> {
    width_of(&io::stdout())
}

/// None if it is no terminal, or one that does not tell.
fn width_of(stream: &(impl io::IsTerminal + AsFd)) -> Option<usize> {
    let size = stream.is_terminal().then(|| terminal_size::terminal_size_of(stream.as_fd())).flatten();
    size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_exactly() {
        for (millis, text) in [
            (0, "0s"),
            (1, "1ms"),
            (1_000, "1s"),
            (5_400_000, "1h 30m"),
            (14 * 86_400_000, "14d"),
            (61_001, "1m 1s 1ms"),
        ] {
            assert_eq!(exact(Duration::from_millis(millis)), text);
            assert_eq!(humantime::parse_duration(text).unwrap(), Duration::from_millis(millis), "it can be typed");
        }
    }
}
