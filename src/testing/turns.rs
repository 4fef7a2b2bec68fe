//! One run of a queue at a time.

use std::convert::Infallible;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};

/// Runs that overlap, in the order in which they were asked for. Two at once would neither keep the
/// order of jobs nor tell whose job has queued what.
#[derive(Default)]
pub(super) struct Turns {
    last: Mutex<Option<Receiver<Infallible>>>,
}

/// Over when it is dropped.
pub(super) struct Turn {
    before: Option<Receiver<Infallible>>,
    _end: Sender<Infallible>,
}

impl Turns {
    pub(super) fn next(&self) -> Turn {
        let (end, ended) = mpsc::channel();
        let before = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(ended);
        Turn { before, _end: end }
    }
}

impl Turn {
    /// Waits until the run before has ended. One that was dropped half-way may still have its job.
    ///
    /// If a thread or task of that job has asked for this run and waits for it, neither goes on. Nobody can tell that
    /// from a job that takes long, so it is no error.
    pub(super) fn wait(&self) {
        if let Some(before) = &self.before {
            // Nothing is ever sent: it ends with whoever could.
            let _ = before.recv();
        }
    }
}
