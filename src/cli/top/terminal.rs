//! The terminal is taken over and given back: at the end, after an error, and
//! before a panic is reported.

#[cfg(test)]
mod tests;

use std::io::{self, BufWriter, Stdout, stdout};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::{Frame, Terminal};
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};
use signal_hook::consts::SIGTTOU;

/// There is one terminal, and a panic can come from any thread.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, ours until this is dropped.
pub(super) struct Screen {
    // Buffered, so that a change goes in one piece: over a slow line nothing flickers.
    // Never dropped: it would show the cursor by itself, and where the terminal is gone
    // tell that to stderr, which is gone, too, and panic.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>,
    /// None while the process is stopped.
    taken: Option<Taken>,
    given_back: Arc<AtomicBool>,
}

impl Screen {
    /// Whoever is in the background is stopped here until it is in the foreground, and can be ended. `given_back` is true for as long as
    /// the terminal is somebody else's and comes to be ours: a process that ends then has nothing to put right.
    pub(super) fn enter(given_back: Arc<AtomicBool>) -> io::Result<Self> {
        let taken = Taken::take()?;
        given_back.store(false, Ordering::SeqCst);
        let terminal = Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(1 << 16, stdout())))?;
        Ok(Self { terminal: ManuallyDrop::new(terminal), taken: Some(taken), given_back })
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
        // Not `clear`: it asks the terminal where the cursor is, and the answer is for who reads the keys.
        let area = self.terminal.size()?.into();
        self.terminal.resize(area)
    }

    /// The terminal is given back meanwhile.
    pub(super) fn meanwhile(&mut self, stopped: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.taken = None;
        self.given_back.store(true, Ordering::SeqCst);
        stopped()?;
        self.taken = Some(Taken::take()?);
        self.given_back.store(false, Ordering::SeqCst);
        self.forget()
    }

    /// This process was continued. If that is not after [`meanwhile`](Self::meanwhile), it was stopped without hearing of
    /// it, and a shell has written on the screen, and most of them change the modes.
    pub(super) fn continued(&mut self) -> io::Result<()> {
        if is_raw() { self.forget() } else { self.meanwhile(|| Ok(())) }
    }
}

/// Whether the terminal is that of others now. One that nobody can have is not.
pub(super) fn is_in_background() -> bool {
    tcgetpgrp(stdout()).is_ok_and(|foreground| foreground != getpgrp())
}

/// The kernel stops whoever sets the modes in the background, and once more as soon as it is continued: a thread that
/// has a signal to end then may not come to the signal's handler. So we stop by ourselves, and not at once.
fn wait_for_the_foreground() -> io::Result<()> {
    const A_MOMENT: Duration = Duration::from_millis(200);
    // Not for ever: where no shell waits nobody is stopped, and to set the modes is an error there.
    for _ in 0..10 {
        if is_in_background() {
            std::thread::sleep(A_MOMENT);
        }
        if !is_in_background() {
            break;
        }
        signal_hook::low_level::raise(SIGTTOU)?;
    }
    Ok(())
}

fn is_raw() -> bool {
    tcgetattr(stdout()).is_ok_and(|modes| !modes.local_modes.contains(LocalModes::ISIG))
}

struct Taken;

impl Taken {
    fn take() -> io::Result<Self> {
        restore_before_panics_are_told();
        wait_for_the_foreground()?;
        // It is never enabled twice, even if a shell has changed the modes meanwhile.
        disable_raw_mode()?;
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
        // In the background the modes are those of the shell already, and whoever sets them is stopped.
        if !is_in_background() {
            let _ = disable_raw_mode();
        }
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
