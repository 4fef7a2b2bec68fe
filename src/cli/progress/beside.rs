//! Lines of others on the terminal that has the bar: it makes room for them.

use std::cell::Cell;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, WeakProgressBar};

/// The one on the screen; a command has one at most.
static SHOWN: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

thread_local! {
    /// Whether this thread has taken the bar away already. To do so twice would wait for itself.
    static AWAY: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn show(bar: &ProgressBar) {
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.downgrade());
}

/// Takes this bar away while something is written.
pub(crate) fn suspend<R>(bar: &ProgressBar, write: impl FnOnce() -> R) -> R {
    if AWAY.replace(true) {
        return write();
    }
    let written = bar.suspend(write);
    AWAY.set(false);
    written
}

/// The same, by those who do not know whether there is one.
pub(crate) fn past_the_bar<R>(write: impl FnOnce() -> R) -> R {
    if AWAY.get() {
        return write();
    }
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(WeakProgressBar::upgrade);
    match shown {
        Some(bar) if !bar.is_finished() => suspend(&bar, write),
        _ => write(),
    }
}

/// Standard error for logs, which come from anywhere and as a whole line each.
pub(crate) struct Logs;

impl Write for Logs {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        past_the_bar(|| io::stderr().write(line))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
