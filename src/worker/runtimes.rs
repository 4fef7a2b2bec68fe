//! What a worker does when a runtime of its async handlers ends before it does.
//!
//! None of that type's jobs can be run any more. What ran goes back with its
//! attempt, and the worker stops as if it had been told to, with an error: one
//! that went on with its other types would leave this one to nobody, unseen.

use super::Shared;
use super::dispatch::Dispatcher;
use crate::error::{Error, ErrorKind};

impl Shared {
    /// For as long as what is returned lives, the dispatcher hears of it.
    #[cfg(feature = "tokio")]
    pub(super) fn watch_runtimes(self: &std::sync::Arc<Self>, types: &[String]) -> Vec<crate::handler::Watch> {
        let watch = |name: &String| {
            let (shared, of) = (std::sync::Arc::downgrade(self), name.clone());
            let tell = move || {
                if let Some(shared) = shared.upgrade() {
                    shared.runtime_ended(&of);
                }
            };
            Some(self.registry.runtime(name)?.watch(tell))
        };
        types.iter().filter_map(watch).collect()
    }

    /// Before a job of this type goes back: it would be claimed again at once.
    pub(super) fn runtime_ended(&self, job_type: &str) {
        self.ended_runtime.get_or_init(|| job_type.to_owned());
        self.bell.ring();
    }
}

impl Dispatcher {
    pub(super) fn see_to_runtimes(&mut self) {
        let Some(job_type) = self.shared.ended_runtime.get() else { return };
        // Futures that wait for something else have not noticed.
        for running in self.shared.pool.running() {
            running.run.nudge();
        }
        if self.broken.is_none() && self.stopping.is_none() {
            let why = format!(
                "the runtime of the handler of `{job_type}` has ended; its jobs have gone back, as if they had not been \
                 claimed. Keep the runtime until the worker has stopped, and start the worker again"
            );
            self.end_with(Error::new(ErrorKind::Internal, why));
        }
    }
}
