//! What a test hears of a run, and the way to end it before its time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[cfg(feature = "tokio")]
use super::clocks::Clocks;
#[cfg(feature = "tokio")]
use super::probe::Probe;
#[cfg(feature = "tokio")]
use crate::handler::Runtime;
use crate::queue::Queue;
use crate::worker::{AttemptReport, Shutdown, WorkerEvent};

/// Longer than a busy machine keeps a task waiting, and shorter than a job may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// In one run. More are most likely a loop: jobs that queue each other, or one that is always due again.
const MOST_ATTEMPTS: usize = 10_000;

/// What was heard while it ran.
struct Heard {
    attempts: Vec<AttemptReport>,
    /// Since when the queue cannot be used.
    trouble: Option<Instant>,
    #[cfg(feature = "tokio")]
    probe: Option<Probe>,
    /// Why it was stopped.
    hopeless: Option<String>,
}

impl Heard {
    /// Returns why it makes no sense to go on, if it does not.
    fn hear(&mut self, event: &WorkerEvent, now: Instant) -> Option<String> {
        match event {
            WorkerEvent::Attempt(report) => {
                #[cfg(feature = "tokio")]
                drop(self.probe.take());
                self.attempts.push(report.clone());
                (self.attempts.len() > MOST_ATTEMPTS).then(|| {
                    let last = format!("`{}` {}", report.job_type, report.job_id);
                    format!(
                        "a run stops after {MOST_ATTEMPTS} attempts; the last job was {last}: see what queues it, or makes it \
                         due again at once"
                    )
                })
            }
            // Comes again with each try that fails.
            WorkerEvent::Trouble { error, .. } => {
                let since = *self.trouble.get_or_insert(now);
                (now.saturating_duration_since(since) >= PATIENCE).then(|| {
                    format!(
                        "a test needs a queue that can be used, and for {} seconds this one could not: {error}; is a \
                         transaction of the test open? Jobs cannot be run before it has ended",
                        PATIENCE.as_secs()
                    )
                })
            }
            WorkerEvent::TroubleOver => {
                self.trouble = None;
                None
            }
            _ => None,
        }
    }
}

/// One run.
#[derive(Clone)]
pub(super) struct Watch {
    queue: Arc<Queue>,
    shutdown: Shutdown,
    heard: Arc<Mutex<Heard>>,
    #[cfg(feature = "tokio")]
    pub(super) clocks: Arc<Clocks>,
}

impl Watch {
    pub(super) fn of(queue: Arc<Queue>, shutdown: Shutdown) -> Self {
        let heard = Heard {
            attempts: Vec::new(),
            trouble: None,
            #[cfg(feature = "tokio")]
            probe: None,
            hopeless: None,
        };
        Self {
            queue,
            shutdown,
            heard: Arc::new(Mutex::new(heard)),
            #[cfg(feature = "tokio")]
            clocks: Arc::default(),
        }
    }

    #[cfg(feature = "tokio")]
    pub(super) fn with_clocks(self, clocks: Arc<Clocks>) -> Self {
        Self { clocks, ..self }
    }

    pub(super) fn is_of(&self, queue: &Arc<Queue>) -> bool {
        Arc::ptr_eq(&self.queue, queue)
    }

    pub(super) fn hear(&self, event: &WorkerEvent) {
        let hopeless = self.heard().hear(event, Instant::now());
        if let Some(why) = hopeless {
            self.give_up(why);
        }
    }

    pub(super) fn give_up(&self, why: String) {
        self.heard().hopeless.get_or_insert(why);
        // Told twice, it does not wait for what runs.
        self.shutdown.request();
        self.shutdown.request();
    }

    /// The handler of this job waits for the first time. Not asked before: one that only computes needs no runtime.
    #[cfg(feature = "tokio")]
    pub(super) fn waits(&self, job: &str, runtime: &Runtime) {
        let (watch, job) = (self.clone(), job.to_owned());
        let stuck = move || {
            watch.give_up(format!(
                "{job} waits for its runtime, which runs nothing; if its only thread waits in `run_all`, use \
                 `run_all_async`, or a runtime of several threads"
            ));
        };
        self.heard().probe = Some(Probe::of(runtime, stuck));
    }

    /// Everything that was tried, or why it was stopped.
    pub(super) fn outcome(&self) -> Result<Vec<AttemptReport>, String> {
        let mut heard = self.heard();
        let attempts = std::mem::take(&mut heard.attempts);
        heard.hopeless.take().map_or(Ok(attempts), Err)
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_gives_up_on_a_queue_that_fails_for_ten_seconds_without_a_success() {
        let (shutdown, begun) = (Shutdown::new(), Instant::now());
        let folder = tempfile::tempdir().unwrap();
        let watch = Watch::of(Arc::new(Queue::init(folder.path()).unwrap()), shutdown);
        let trouble = WorkerEvent::Trouble { error: "locked".to_owned(), retry_in: Duration::from_secs(1) };
        let hear = |event: &WorkerEvent, now| watch.heard().hear(event, now);
        assert_eq!(hear(&trouble, begun), None);
        assert_eq!(hear(&WorkerEvent::TroubleOver, begun), None);
        assert_eq!(hear(&trouble, begun + PATIENCE), None, "it worked meanwhile");
        assert!(hear(&trouble, begun + PATIENCE * 2).is_some_and(|why| why.contains("locked")));
    }
}
