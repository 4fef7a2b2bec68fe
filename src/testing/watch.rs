//! What a test hears of a run, and the way to end it before its time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

#[cfg(feature = "tokio")]
use tokio::runtime::Handle;

#[cfg(feature = "tokio")]
use super::clocks::Clocks;
use super::lookout::{AtIt, Overdue, Part};
use super::patience::say;
#[cfg(feature = "tokio")]
use super::probe::{Probe, Stuck};
use super::turns::Current;
#[cfg(feature = "tokio")]
use crate::handler::Runtime;
use crate::queue::Queue;
use crate::worker::{AttemptReport, Shutdown, WorkerEvent};

/// In one run. More are most likely a loop: jobs that queue each other, or one that is always due again.
const MOST_ATTEMPTS: usize = 10_000;

/// What was heard while it ran.
struct Heard {
    attempts: Vec<AttemptReport>,
    at_it: AtIt,
    #[cfg(feature = "tokio")]
    probe: Option<Probe>,
    /// Why it was stopped.
    hopeless: Option<String>,
}

impl Heard {
    /// Something may have to be told, or it makes no sense to go on.
    fn hear(&mut self, event: &WorkerEvent) -> Option<Overdue> {
        match event {
            WorkerEvent::Attempt(report) => {
                #[cfg(feature = "tokio")]
                drop(self.probe.take());
                self.attempts.push(report.clone());
                (self.attempts.len() > MOST_ATTEMPTS).then(|| {
                    let last = format!("`{}` {}", report.job_type, report.job_id);
                    Overdue::GiveUp(format!(
                        "a run stops after {MOST_ATTEMPTS} attempts; the last job was {last}: see what queues it, or makes it \
                         due again at once"
                    ))
                })
            }
            WorkerEvent::Trouble { error, .. } => self.at_it.trouble(error, Instant::now()),
            WorkerEvent::TroubleOver => {
                self.at_it.trouble_is_over();
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
    pub(super) current: Current,
    #[cfg(feature = "tokio")]
    pub(super) clocks: Arc<Clocks>,
    /// The runtime that the test waits within, on one of its threads.
    #[cfg(feature = "tokio")]
    blocked: Option<Handle>,
}

impl Watch {
    pub(super) fn of(queue: Arc<Queue>, shutdown: Shutdown, current: Current) -> Self {
        let heard = Heard {
            attempts: Vec::new(),
            at_it: AtIt::default(),
            #[cfg(feature = "tokio")]
            probe: None,
            hopeless: None,
        };
        Self {
            queue,
            shutdown,
            heard: Arc::new(Mutex::new(heard)),
            current,
            #[cfg(feature = "tokio")]
            clocks: Arc::default(),
            #[cfg(feature = "tokio")]
            blocked: None,
        }
    }

    #[cfg(feature = "tokio")]
    pub(super) fn with_clocks(self, clocks: Arc<Clocks>, blocked: Option<Handle>) -> Self {
        Self { clocks, blocked, ..self }
    }

    pub(super) fn is_of(&self, queue: &Arc<Queue>) -> bool {
        Arc::ptr_eq(&self.queue, queue)
    }

    pub(super) fn hear(&self, event: &WorkerEvent) {
        let found = self.heard().hear(event);
        self.act_on(found);
    }

    pub(super) fn begins(&self, job: &Arc<String>, part: Part) {
        self.heard().at_it.begins(job, part, Instant::now());
    }

    pub(super) fn ends(&self, job: &Arc<String>) {
        self.heard().at_it.ends(job);
    }

    pub(super) fn look(&self, now: Instant, clock_stands: bool) {
        let found = self.heard().at_it.look(now, clock_stands);
        self.act_on(found);
    }

    fn act_on(&self, found: Option<Overdue>) {
        match found {
            Some(Overdue::Say(what)) => say(&what),
            Some(Overdue::GiveUp(why)) => self.give_up(why),
            None => {}
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
        let is_blocked = self.blocked.as_ref().is_some_and(|blocked| blocked.id() == runtime.handle().id());
        let stuck = move |what: Stuck| match what {
            Stuck::Runtime => watch.give_up(format!(
                "{job} waits for its runtime, which runs nothing; if its only thread waits in `run_all`, use \
                 `run_all_async`, or a runtime of several threads"
            )),
            Stuck::Clock if is_blocked => say(&format!(
                "{job} waits, and the paused clock of its runtime stands still, as it does while `run_all` is in \
                 `spawn_blocking`; if it waits for that clock, neither goes on: use `run_all_async`"
            )),
            // Nothing may be waiting for it.
            Stuck::Clock => {}
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
