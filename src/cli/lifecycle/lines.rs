//! The thread that writes a worker's lines, and its bar. Nobody else touches the
//! terminal, so one that is stuck keeps no job waiting, and no line ends up in a bar.

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::ProgressBar;

/// Lines are written together when they come fast, and after this long at most.
const TOGETHER: Duration = Duration::from_millis(10);
/// How often a bar is drawn when nothing happens: the time goes on.
const TICK: Duration = Duration::from_millis(200);
/// Bytes that may wait for a slow reader; what comes then is counted and dropped.
const MOST_WAITING: usize = 4 << 20;
/// How long the last lines may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(super) struct Lines {
    state: Mutex<State>,
    changed: Condvar,
    left: Condvar,
}

#[derive(Default)]
struct State {
    text: Vec<u8>,
    /// Jobs that have ended, for the bar.
    ended: u64,
    /// Lines that found no room.
    dropped: u64,
    closed: bool,
    /// Nobody writes any more: the reader has gone.
    gone: bool,
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, line: &str) {
        let mut state = self.lock();
        if state.gone {
            return;
        }
        if state.text.len() > MOST_WAITING {
            state.dropped += 1;
            return;
        }
        let first = state.text.is_empty();
        state.text.extend_from_slice(line.as_bytes());
        state.text.push(b'\n');
        drop(state);
        if first {
            self.changed.notify_one();
        }
    }

    /// The bar shows it when it is drawn next.
    pub(super) fn count(&self, ended: u64) {
        self.lock().ended += ended;
    }

    /// There is no more to come: writes what is left.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.changed.notify_one();
        // A reader that has stopped reading does not keep the worker from ending.
        drop(self.left.wait_timeout_while(state, LAST_WORDS, |state| !state.gone));
    }

    /// A reader that has gone stops the lines, not the worker.
    pub(super) fn write(&self, bar: Option<&ProgressBar>) {
        // A handle of its own: one that is stuck must not keep the lock of the standard stream.
        let Ok(stdout) = io::stdout().as_fd().try_clone_to_owned() else { return };
        let mut stdout = std::fs::File::from(stdout);
        let mut told = false;
        loop {
            if let Some(bar) = bar {
                draw(bar, self.lock().ended);
            }
            let patience = if bar.is_some() { TICK } else { Duration::MAX };
            let idle = |state: &mut State| state.text.is_empty() && !state.closed;
            let waited = self.changed.wait_timeout_while(self.lock(), patience, idle);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
            let (mut text, closed) = (std::mem::take(&mut state.text), state.closed);
            let dropped = std::mem::take(&mut state.dropped);
            drop(state);
            if dropped > 0 {
                let _ = writeln!(text, "{{\"event\":\"lines_dropped\",\"lines\":{dropped}}}");
            }
            if closed && let Some(bar) = bar {
                bar.finish_and_clear();
            }
            let mut write = || stdout.write_all(&text).and_then(|()| stdout.flush());
            let written: io::Result<()> = match bar {
                Some(bar) if !closed && !text.is_empty() => crate::cli::progress::suspend(bar, write),
                _ => write(),
            };
            let reader_gone = match written {
                Ok(()) => false,
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => true,
                Err(error) => {
                    // A disk that is full may have room again. What was to be said is lost, and that is told once.
                    if !std::mem::replace(&mut told, true) {
                        crate::cli::print_warning(&format_args!(
                            "cannot write the worker's lines: {error}; it goes on"
                        ));
                    }
                    false
                }
            };
            if reader_gone || (closed && text.is_empty()) {
                self.lock().gone = true;
                self.left.notify_all();
                return;
            }
            if !closed {
                std::thread::sleep(TOGETHER);
            }
        }
    }
}

fn draw(bar: &ProgressBar, ended: u64) {
    if bar.is_finished() {
        return;
    }
    // Jobs may come while others are run.
    bar.set_length(bar.length().unwrap_or(0).max(ended));
    bar.set_position(ended);
    bar.tick();
}
