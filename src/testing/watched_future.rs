//! The future of an async handler in a run, which hears when it waits.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Wake, Waker};

use super::clocks::Clocks;
use super::within;
use crate::handler::Runtime;

/// Such a future, as the clock of its runtime should see it.
struct Waiting {
    clocks: Arc<Clocks>,
    runtime: Runtime,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waits: bool,
    /// It will be polled, by a thread that needs a while to get there.
    woken: bool,
}

impl Waiting {
    /// It is polled, or will be.
    fn goes_on(&self, woken: bool) {
        let mut state = self.lock();
        state.woken = woken;
        if std::mem::take(&mut state.waits) {
            self.clocks.goes_on(self.runtime.handle());
        }
    }

    /// It was polled and is not ready.
    fn waits(&self) {
        let mut state = self.lock();
        if !state.woken {
            state.waits = true;
            self.clocks.waits(self.runtime.handle());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting {
    /// Whatever has become of it, the run goes on.
    fn drop(&mut self) {
        self.goes_on(false);
    }
}

/// Tells the clock before it wakes a handler.
struct Waking {
    // A waker may be kept after the future's end.
    waiting: Weak<Waiting>,
    waker: Waker,
}

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        if let Some(waiting) = self.waiting.upgrade() {
            waiting.goes_on(true);
        }
        self.waker.wake_by_ref();
    }
}

/// The same future, if it is in no run.
pub(crate) async fn watched<F: Future>(work: F, runtime: &Runtime) -> F::Output {
    let Some(here) = within::here() else { return work.await };
    let clocks = Arc::clone(&here.run.clocks);
    let waiting = Arc::new(Waiting { clocks, runtime: runtime.clone(), state: Mutex::default() });
    let mut work = pin!(work);
    let mut has_waited = false;
    poll_fn(|cx| {
        waiting.goes_on(false);
        let waker = Arc::new(Waking { waiting: Arc::downgrade(&waiting), waker: cx.waker().clone() }).into();
        let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
        if polled.is_pending() {
            if !std::mem::replace(&mut has_waited, true) {
                here.run.waits(&here.job, runtime);
            }
            waiting.waits();
        }
        polled
    })
    .await
}
