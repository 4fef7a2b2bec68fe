//! The terminal is taken over and given back: at the end, after an error, and
//! before a panic is reported.

#[cfg(test)]
mod tests;

use std::io::{self, BufWriter, Stdout, stdout};
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::{Frame, Terminal};

/// There is one terminal, and a panic can come from any thread.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, ours until this is dropped.
pub(super) struct Screen {
    // Buffered, so that a change goes in one piece: over a slow line nothing flickers.
    // Never dropped: it would show the cursor by itself, and where the terminal is gone
    // tell that to stderr, which is gone, too, and panic.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>,
    _taken: Taken,
}

impl Screen {
    pub(super) fn enter() -> io::Result<Self> {
        let taken = Taken::take()?;
        let terminal = Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(1 << 16, stdout())))?;
        Ok(Self { terminal: ManuallyDrop::new(terminal), _taken: taken })
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        // Another thread has panicked, and its last words are on the terminal.
        if !TAKEN.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.terminal.draw(draw).map(|_| ())
    }

    /// Forgets what is on the screen: the next drawing is of everything.
    pub(super) fn forget(&mut self) -> io::Result<()> {
        self.terminal.clear()
    }
}

struct Taken;

impl Taken {
    fn take() -> io::Result<Self> {
        restore_before_panics_are_told();
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        // From here on there is something to be given back.
        let taken = Self;
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back, once. That it cannot be done changes nothing: then it
/// is gone.
pub(super) fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

fn restore_before_panics_are_told() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            tell(panic);
        }));
    });
}
