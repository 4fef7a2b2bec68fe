//! Whether anybody drives the runtime of an async handler while a test waits for it.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use crate::handler::Runtime;

/// Longer than a busy machine keeps a task waiting, and shorter than a job may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A question put to a runtime at the beginning of an attempt; dropped at its end. Asked, and not guessed from where
/// the test waits or what kind of runtime it is: a handler may need nothing of it, and another thread may drive it.
pub(super) struct Probe(Sender<()>);

impl Probe {
    /// `stuck` is called if the runtime runs nothing for some seconds of the attempt.
    pub(super) fn of(runtime: &Runtime, stuck: impl FnOnce() + Send + 'static) -> Self {
        let (answer, answered) = mpsc::channel();
        let task = answer.clone();
        drop(runtime.handle().spawn(async move { task.send(()) }));
        let wait = move || {
            if answered.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                stuck();
            }
        };
        // Without a thread nothing is told before the job's timeout.
        drop(thread::Builder::new().name("jobq-probe".to_owned()).spawn(wait));
        Self(answer)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}
