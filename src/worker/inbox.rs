//! What the runners have finished, on its way to the finisher.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::execute::Finished;
use crate::error::Error;

/// Where ends wait for the finisher.
#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    ends: Vec<Finished>,
    closed: bool,
    /// Why nobody takes ends any more.
    gone: Option<Error>,
    /// Not to be tried again for ever: the worker is told to go at once.
    hurry: bool,
}

impl Inbox {
    pub(super) fn push(&self, finished: Finished) {
        let mut state = self.lock();
        state.ends.push(finished);
        if state.ends.len() == 1 {
            self.changed.notify_one();
        }
    }

    /// No more ends will come.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Nobody will settle what is still here.
    pub(super) fn leave(&self, error: Error) {
        self.lock().gone = Some(error);
    }

    /// Why nobody takes ends any more, if that is so. Told once.
    pub(super) fn gone(&self) -> Option<Error> {
        self.lock().gone.take()
    }

    pub(super) fn hurry(&self) {
        self.lock().hurry = true;
        self.changed.notify_one();
    }

    pub(super) fn is_hurried(&self) -> bool {
        self.lock().hurry
    }

    /// What has come, after waiting for it until then at most, or until there is no time to
    /// lose any more where there was; `None` when no more will come.
    pub(super) fn take(&self, until: Option<Instant>, hurried: bool) -> Option<Vec<Finished>> {
        let mut state = self.lock();
        while state.ends.is_empty() && !state.closed {
            let left = until.map_or(Duration::from_secs(3600), |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() || (state.hurry != hurried && until.is_some()) {
                return Some(Vec::new());
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.ends.is_empty() { None } else { Some(std::mem::take(&mut state.ends)) }
    }

    /// Waits; false if there is no time for it.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, time, |state| !state.hurry);
        !waited.unwrap_or_else(PoisonError::into_inner).0.hurry
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
