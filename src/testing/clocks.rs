//! Paused clocks of tokio, and the runs of one queue.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::runtime::Handle;

use super::at_work::AtWork;

/// Each run holds the clock of the runtime that it was asked for in, from beginning to end, its wait for its turn
/// included. While an async handler waits, every run lets go of the clock of that handler's runtime, whosesoever
/// handler it is: what it waits for may be that clock, and runs wait for each other.
#[derive(Default)]
pub(super) struct Clocks(Mutex<State>);

#[derive(Default)]
struct State {
    runs: Vec<Weak<AtWork>>,
    /// The runtimes that handlers wait for at present. A run that begins meanwhile must know.
    waited_for: Vec<Handle>,
}

impl Clocks {
    /// The one here, if there is one, for a run that begins.
    pub(super) fn hold(&self) -> Option<Arc<AtWork>> {
        let run = AtWork::here()?;
        let mut state = self.lock();
        if !state.waited_for.iter().any(|runtime| run.is_of(runtime)) {
            run.resume();
        }
        state.runs.retain(|run| run.strong_count() > 0);
        state.runs.push(Arc::downgrade(&run));
        Some(run)
    }

    /// A handler waits for this runtime.
    pub(super) fn waits(&self, runtime: &Handle) {
        let mut state = self.lock();
        state.waited_for.push(runtime.clone());
        state.tell(runtime, AtWork::pause);
    }

    /// The same does not any more.
    pub(super) fn goes_on(&self, runtime: &Handle) {
        let mut state = self.lock();
        let is_it = |other: &Handle| other.id() == runtime.id();
        if let Some(at) = state.waited_for.iter().position(is_it) {
            state.waited_for.swap_remove(at);
        }
        // One that was given up may wait beside the one of the next run.
        if !state.waited_for.iter().any(is_it) {
            state.tell(runtime, AtWork::resume);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tell(&self, runtime: &Handle, what: fn(&AtWork)) {
        self.runs.iter().filter_map(Weak::upgrade).filter(|run| run.is_of(runtime)).for_each(|run| what(&run));
    }
}
