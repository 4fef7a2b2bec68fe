//! One run of a queue at a time.

use std::convert::Infallible;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::patience::{PATIENCE, say};

/// Runs that overlap, in the order in which they were asked for. Two at once would neither keep the
/// order of jobs nor tell whose job has queued what.
#[derive(Default)]
pub(super) struct Turns {
    last: Mutex<Option<Receiver<Infallible>>>,
    current: Current,
}

/// Over when it is dropped.
pub(super) struct Turn {
    before: Option<Receiver<Infallible>>,
    pub(super) current: Current,
    _end: Sender<Infallible>,
}

/// The type and id of the job whose handler or hook is at work, in whichever run. It is theirs, and goes with them.
#[derive(Clone, Default)]
pub(super) struct Current(Arc<Mutex<Weak<String>>>);

impl Current {
    pub(super) fn set(&self, job: &Arc<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(job);
    }

    fn get(&self) -> Weak<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Turns {
    pub(super) fn next(&self) -> Turn {
        let (end, ended) = mpsc::channel();
        let before = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(ended);
        Turn { before, current: self.current.clone(), _end: end }
    }
}

impl Turn {
    /// Until the run before has ended. One that was dropped half-way may still have its job.
    ///
    /// Its job may be waiting for this very run, which a thread or task of the job has asked for. Nobody can tell that
    /// from a job that takes long, so it is no error. It is said, once for each job.
    pub(super) fn wait(&self, is_wanted: impl Fn() -> bool) {
        let Some(before) = &self.before else { return };
        let (mut seen, mut is_said) = (self.current.get(), false);
        // Nothing is ever sent: it ends with whoever could.
        while before.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let now = self.current.get();
            if !now.ptr_eq(&seen) {
                (seen, is_said) = (now, false);
            } else if let Some(job) = now.upgrade().filter(|_| !is_said && is_wanted()) {
                is_said = true;
                say(&format!(
                    "{job} has been at work for {} seconds while another run of its queue waits for its turn; if that was \
                     asked for by a thread or task of its handler or hook, which waits for it, neither goes on: queue jobs \
                     instead, the run before comes to them",
                    PATIENCE.as_secs()
                ));
            }
        }
    }
}
