//! Something that moves while people wait: on stderr, only at a terminal, and gone
//! when it is over, however it ends.

mod beside;
mod narrow;

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use self::beside::{Logs, past_the_bar, suspend};
use super::output::Output;

pub(crate) struct Progress {
    bar: ProgressBar,
    shown: bool,
}

impl Progress {
    /// How many so far, where nobody knows how many there are.
    pub(crate) fn counting(what: &'static str, out: &Output) -> Self {
        let shown = is_wanted(out);
        if !shown {
            return Self { bar: ProgressBar::hidden(), shown };
        }
        let style = ProgressStyle::with_template("{spinner} {human_pos} {msg}  {elapsed}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = bar(None).with_style(style).with_message(what);
        clear_when_interrupted(bar.clone());
        bar.tick();
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar, shown }
    }

    pub(crate) fn set(&self, count: u64) {
        self.bar.set_position(count);
    }

    pub(crate) fn add(&self, count: u64) {
        self.bar.inc(count);
    }

    /// From the beginning, with something else.
    pub(crate) fn next(&self, what: &'static str) {
        self.bar.set_message(what);
        self.bar.set_position(0);
    }

    /// Prints results, which must not end up in the middle of a bar.
    pub(crate) fn beside<R>(
        &self,
        out: &mut Output,
        print: impl FnOnce(&mut Output) -> std::io::Result<R>,
    ) -> std::io::Result<R> {
        if !self.shown {
            return print(out);
        }
        suspend(&self.bar, || {
            let printed = print(out)?;
            out.flush()?;
            Ok(printed)
        })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// One that is drawn, and that others write past.
pub(crate) fn bar(length: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(length, narrow::target());
    beside::show(&bar);
    bar
}

/// Whether anybody is there who wants to see how far it is.
pub(crate) fn is_wanted(out: &Output) -> bool {
    !out.json && !out.quiet && std::io::stderr().is_terminal()
}

/// Ctrl-C ends the command as ever, but leaves a clean line. What these commands do
/// can be ended anywhere.
fn clear_when_interrupted(bar: ProgressBar) {
    // Where somebody listens already, the bar stays on its line.
    let _ = ctrlc::set_handler(move || {
        bar.finish_and_clear();
        std::process::exit(130);
    });
}
