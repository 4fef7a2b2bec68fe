//! Signals that end, stop and continue, and Ctrl-Z, as a shell's other programs have it. The terminal is in raw mode, so
//! the key is only a key, and what the kernel would do is done here.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use rustix::process::{Signal, kill_current_process_group};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTOU};
use signal_hook::iterator::Signals;

use super::model::Happened;
use super::terminal;

/// The first signal to end is an event like any other. One that is not heard (a terminal
/// that takes nothing blocks who writes to it) ends the process, and so does a second.
/// Where the terminal is somebody else's, each does: who waits for it in the background
/// is stopped again before it hears of anything but in the signal's handler.
pub(super) fn hear(tell: SyncSender<Happened>, given_back: &Arc<AtomicBool>) -> io::Result<()> {
    const TO_END: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
    for signal in TO_END {
        signal_hook::flag::register_conditional_shutdown(signal, 0, Arc::clone(given_back))?;
    }
    let mut signals = Signals::new(TO_END.into_iter().chain([SIGTSTP, SIGCONT]))?;
    std::thread::spawn(move || {
        let mut told = false;
        for signal in signals.forever() {
            if signal == SIGTSTP {
                // Behind a terminal that takes nothing there is nobody to stop for.
                let _ = by_others().then(|| tell.try_send(Happened::ToldToStop));
            } else if signal == SIGCONT {
                let _ = tell.try_send(Happened::Continued);
            } else if std::mem::replace(&mut told, true) || tell.try_send(Happened::ToldToQuit).is_err() {
                terminal::restore();
                std::process::exit(0);
            }
        }
    });
    Ok(())
}

/// Who is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    /// This process: that is who the signal was for.
    Us,
    /// All who run in the foreground together, as the key does it elsewhere: the shell waits for the script that has
    /// started us, say.
    Foreground,
}

/// The signal to all reaches us, too.
static OURS: AtomicBool = AtomicBool::new(false);

/// Whether a signal that was heard is not the one that [`stop`] has sent.
fn by_others() -> bool {
    !OURS.swap(false, Ordering::SeqCst)
}

/// Returns when this process is continued. The terminal has to be given back before: as soon as the others have stopped, the
/// shell writes to it.
pub(super) fn stop(whom: Whom) -> io::Result<()> {
    if whom == Whom::Foreground {
        OURS.store(true, Ordering::SeqCst);
        kill_current_process_group(Signal::TSTP)?;
    }
    // Not SIGSTOP: where no shell waits that could continue us (`ssh -t host jobq top`, a window of its own), that would be
    // for ever. The kernel lets nobody there be stopped by this one, which we do not listen for.
    signal_hook::low_level::raise(SIGTTOU)
}
