//! Whether anybody drives the runtime of an async handler while a test waits for it.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;

use super::watch::PATIENCE;
use crate::handler::Runtime;

/// A question put to a runtime when a handler first waits; dropped at the end of the attempt. Asked, and not guessed from
/// where the test waits or what kind of runtime it is: another thread may drive it.
pub(super) struct Probe(Sender<()>);

impl Probe {
    /// Calls `stuck` if the runtime runs nothing for ten seconds.
    pub(super) fn of(runtime: &Runtime, stuck: impl FnOnce() + Send + 'static) -> Self {
        let (tell, told) = mpsc::channel();
        let task = tell.clone();
        drop(runtime.handle().spawn(async move { task.send(()) }));
        let wait = move || {
            if told.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                stuck();
            }
        };
        // Without a thread the job's timeout ends the wait.
        drop(thread::Builder::new().name("jobq-probe".to_owned()).spawn(wait));
        Self(tell)
    }
}

impl Drop for Probe {
    /// The attempt has ended.
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}
