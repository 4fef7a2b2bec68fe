//! Whether anybody drives the runtime of an async handler while a test waits for it.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Instant;

use super::patience::PATIENCE;
use crate::handler::Runtime;

/// A question put to a runtime when a handler first waits; dropped at the end of the attempt. Asked, and not guessed from
/// where the test waits or what kind of runtime it is: another thread may drive it.
pub(super) struct Probe(Sender<Heard>);

#[derive(PartialEq)]
enum Heard {
    /// The runtime has run a task.
    Answer,
    /// The attempt has ended.
    End,
}

/// What is wrong with a runtime, if a handler has waited for some seconds.
pub(super) enum Stuck {
    /// It runs nothing.
    Runtime,
    /// It does, but its clock is paused, and has not moved: nobody waits for it, or a blocking task keeps it from leaping.
    Clock,
}

impl Probe {
    /// `stuck` is called if it is.
    pub(super) fn of(runtime: &Runtime, stuck: impl FnOnce(Stuck) + Send + 'static) -> Self {
        let (tell, told) = mpsc::channel();
        let task = tell.clone();
        drop(runtime.handle().spawn(async move { task.send(Heard::Answer) }));
        let clock = {
            let runtime = runtime.clone();
            move || {
                let _within = runtime.handle().enter();
                tokio::time::Instant::now()
            }
        };
        let (begun, until) = (clock(), Instant::now() + PATIENCE);
        let wait = move || {
            let mut what = Stuck::Runtime;
            loop {
                match told.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(Heard::Answer) => what = Stuck::Clock,
                    Ok(Heard::End) | Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => break,
                }
            }
            if matches!(what, Stuck::Runtime) || clock() == begun {
                stuck(what);
            }
        };
        // Without a thread nothing is told before the job's timeout.
        drop(thread::Builder::new().name("jobq-probe".to_owned()).spawn(wait));
        Self(tell)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.0.send(Heard::End);
    }
}
