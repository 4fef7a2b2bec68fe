//! The process that a test starts, stops and kills: this test program again,
//! with one thing to do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jobq::worker::AttemptReport;
use jobq::{QueueOptions, Registry, Shutdown, Worker, WorkerEvent, WorkerOptions};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};

use super::act::Actor;

pub const SETUP: &str = "JOBQ_WORKER_TEST_SETUP";
/// The name of [`the_worker_that_a_test_starts`].
pub const NAME: &str = "worker::child::the_worker_that_a_test_starts";
/// Begins what the child says, among the lines of the test harness.
pub const MARK: &str = "W:";

/// How a child works.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setup {
    pub root: PathBuf,
    pub log: PathBuf,
    pub name: String,
    pub concurrency: usize,
    pub types: Option<Vec<String>>,
    pub drain: bool,
    pub poll_ms: u64,
    pub lease_ms: u64,
    pub grace_ms: Option<u64>,
    /// How long it waits for the write lock.
    pub busy_ms: u64,
    /// Ends itself, without a word, between decide and apply.
    pub dies_when_decided: bool,
    /// Fails file jobs at random, beginning with this seed.
    pub faults: Option<u64>,
    /// How many jobs of a type may run at once.
    pub limits: BTreeMap<String, u32>,
}

impl Setup {
    pub fn options(&self) -> WorkerOptions {
        WorkerOptions {
            concurrency: self.concurrency,
            types: self.types.clone(),
            drain: self.drain,
            poll_interval: Duration::from_millis(self.poll_ms),
            lease: Duration::from_millis(self.lease_ms),
            grace: self.grace_ms.map(Duration::from_millis),
            reconcile: false,
            limits: self.limits.clone(),
            ..WorkerOptions::default()
        }
    }

    pub fn registry(&self) -> Registry {
        let registry = Registry::builtin().with(Actor { worker: self.name.clone(), log: self.log.clone() });
        match self.faults {
            Some(seed) => super::faulty::registry(registry, seed),
            None => registry,
        }
    }
}

/// Not a test by itself. Without the variable it has nothing to do.
#[test]
fn the_worker_that_a_test_starts() {
    let Ok(setup) = std::env::var(SETUP) else { return };
    let setup: Setup = serde_json::from_str(&setup).unwrap();
    let registry = setup.registry();
    let queue =
        QueueOptions::in_folder(&setup.root).types(registry.types()).busy_timeout(Duration::from_millis(setup.busy_ms));
    // As `jobq worker` opens it: what the dead have decided is the worker's to tell of.
    let queue = queue.recover(false);
    let queue = queue.open().unwrap();
    let shutdown = Shutdown::new();
    let asked = shutdown.clone();
    ctrlc::set_handler(move || asked.request()).unwrap();
    let dies = setup.dies_when_decided;
    let worker = Worker::new(Arc::new(queue), registry, setup.options()).unwrap().observed_by(move |event| {
        if dies && matches!(event, WorkerEvent::Decided { .. }) {
            let _ = kill_process(getpid(), Signal::KILL);
        }
        if let Some(words) = words(event) {
            // The harness may have begun a line of its own.
            println!("\n{MARK}{words}");
        }
    });
    match worker.run(&shutdown) {
        Ok(_) => std::process::exit(0),
        Err(error) => {
            println!("\n{MARK}error {error}");
            std::process::exit(3);
        }
    }
}

/// An event as the parent reads it: a word, then what it is about.
pub fn words(event: &WorkerEvent) -> Option<String> {
    Some(match event {
        WorkerEvent::Started { worker, .. } => format!("started {worker}"),
        WorkerEvent::AttemptStarted { job_id, attempt, .. } => format!("running {job_id} {attempt}"),
        WorkerEvent::Decided { job_id } => format!("decided {job_id}"),
        WorkerEvent::Attempt(AttemptReport { job_id, attempt, outcome, error, .. }) => {
            let code = error.as_ref().map_or("-", |failure| failure.code.as_str());
            let outcome = serde_json::to_value(outcome).unwrap();
            format!("{} {job_id} {attempt} {code}", outcome.as_str().unwrap())
        }
        WorkerEvent::Reclaimed(done) => format!(
            "reclaimed {} {} {} {}",
            done.pending.len(),
            done.failed.len(),
            done.cancelled.len(),
            done.unowned.len()
        ),
        WorkerEvent::UnknownType { job_type, others } => format!("unknown_type {job_type} {others}"),
        WorkerEvent::ThreadLost { job_id, .. } => format!("thread_lost {job_id}"),
        WorkerEvent::Trouble { error, retry_in } => format!("trouble {} {error}", retry_in.as_millis()),
        WorkerEvent::TroubleOver => "trouble_over".to_owned(),
        WorkerEvent::Stopping { waiting_for } => format!("stopping {}", waiting_for.join(" ")),
        WorkerEvent::Stopped(_) => "stopped".to_owned(),
        _ => return None,
    })
}
