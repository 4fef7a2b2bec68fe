//! A worker's lifecycle on stdout: a readable line each on a terminal, JSON
//! lines otherwise.

mod lines;
mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use jobq::WorkerEvent;
use jobq::worker::AttemptEnd;

use self::lines::Lines;
use super::output::terminal_width;
use super::progress;

pub(crate) struct Lifecycle {
    reader: Reader,
    quiet: bool,
    bar: bool,
    lines: Arc<Lines>,
    cancelled: AtomicU64,
}

#[derive(Clone, Copy)]
enum Reader {
    Program,
    Person { colours: bool },
}

impl Lifecycle {
    /// For people or programs; with a bar of that many jobs, only what did not go well
    /// gets a line.
    pub(crate) fn new(people: bool, quiet: bool, jobs: Option<u64>) -> Self {
        let lines = Arc::<Lines>::default();
        let ours = Arc::clone(&lines);
        let bar = jobs.map(bar_of);
        let has_bar = bar.is_some();
        std::thread::spawn(move || ours.write(bar.as_ref()));
        let colours = anstream::stdout().current_choice() != anstream::ColorChoice::Never;
        let reader = if people { Reader::Person { colours } } else { Reader::Program };
        Self { reader, quiet, bar: has_bar, lines, cancelled: AtomicU64::new(0) }
    }

    pub(crate) fn print(&self, event: &WorkerEvent) {
        if let WorkerEvent::Attempt(attempt) = event
            && attempt.outcome == AttemptEnd::Cancelled
        {
            self.cancelled.fetch_add(1, Ordering::Relaxed);
        }
        if self.bar
            && let WorkerEvent::Attempt(attempt) = event
        {
            let ended = [AttemptEnd::Completed, AttemptEnd::Failed, AttemptEnd::Cancelled].contains(&attempt.outcome);
            self.lines.count(u64::from(ended));
            if attempt.outcome == AttemptEnd::Completed {
                return;
            }
        }
        if self.quiet {
            return;
        }
        let line = match self.reader {
            Reader::Program => words::for_programs(event),
            Reader::Person { colours: true } => words::for_people(event, terminal_width()),
            Reader::Person { colours: false } => {
                words::for_people(event, terminal_width()).map(|line| anstream::adapter::strip_str(&line).to_string())
            }
        };
        if let Some(line) = line {
            self.lines.add(&line);
        }
    }

    /// Jobs that were cancelled while they ran; the worker's own sums have them among others.
    pub(crate) fn cancelled(&self) -> u64 {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Writes what is left.
    pub(crate) fn finish(&self) {
        self.lines.close();
    }
}

fn bar_of(jobs: u64) -> ProgressBar {
    // As wide as there is room beside the numbers.
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} jobs  {rate}  {eta} left");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let rate = |state: &ProgressState, to: &mut dyn std::fmt::Write| {
        let _ = write!(to, "{:.0}/s", state.per_sec());
    };
    progress::bar(Some(jobs)).with_style(style.with_key("rate", rate))
}
