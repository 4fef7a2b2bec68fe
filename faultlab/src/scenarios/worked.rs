//! A real worker with all its threads, and jobs that come when it is there.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use jobq::worker::AttemptEnd;
use jobq::{Filter, Queue, Shutdown, Worker, WorkerEvent, WorkerOptions};
use rustix::process::{PTracer, set_ptracer};

use super::{NOTHING, Scenario};
use crate::child::{Child, Deed, GaveUp};
use crate::jobs::{self, Found, file, note_with_next};
use crate::said::{Said, Speaker};
use crate::world::World;

/// The jobs are queued by another process when the worker waits for some: whatever
/// becomes of the worker, they have been accepted and nobody asks for them again.
pub const WORKER: Scenario = Scenario {
    name: "worker",
    prepare: |world| drop(jobs::options(&world.root()).create(true).open().unwrap()),
    deed,
    notes: &["note-1", "next-note-1"],
    files: &["file-1", "file-2"],
    ..NOTHING
};

/// Jobs there are in the end.
const JOBS: usize = 4;
/// For how many seconds a worker may be in trouble before it is asked to end, and not gently.
/// One whose trouble is over goes on long before; one whose trouble stays must not make use of
/// the time (see `errors.rs`).
pub const IN_TROUBLE: &str = "FAULTLAB_IN_TROUBLE";
/// One that takes longer is asked to end, too; it must do so by itself, however bad things are.
const LONGEST: Duration = Duration::from_secs(30);

/// Queues them, and returns their ids.
pub fn enqueued(world: &World) -> Vec<String> {
    let queue = jobs::options(&world.root()).recover(false).open().unwrap();
    let jobs = queue.enqueue_many([note_with_next("note-1"), file("file-1"), file("file-2")]).unwrap();
    jobs.into_iter().map(|job| job.id).collect()
}

fn deed(child: &Child) -> Deed {
    // Whoever watches comes later. Where nobody minds, there is nothing to allow.
    let _ = set_ptracer(PTracer::Any);
    let queue = Arc::new(child.open()?);
    let since: Arc<OnceLock<Instant>> = Arc::default();
    let (speaker, told) = (Speaker::again(), Arc::clone(&since));
    let poll_interval = Duration::from_millis(200);
    let options = WorkerOptions { concurrency: 1, poll_interval, ..WorkerOptions::default() };
    let worker = Worker::new(Arc::clone(&queue), jobs::registry(&Found::default()), options);
    let worker = worker.map_err(|_| GaveUp)?.observed_by(move |event| {
        if let Some(said) = said(event) {
            if matches!(said, Said::Failed(..)) {
                told.get_or_init(Instant::now);
            }
            speaker.tell(&said);
        }
    });
    let shutdown = Shutdown::new();
    let asked = shutdown.clone();
    let seen = Arc::clone(&queue);
    let watcher = std::thread::spawn(move || watch(&seen, &since, &asked));
    let ended = worker.run(&shutdown);
    if let Err(error) = &ended {
        child.failed(error.kind(), &error.to_string());
    }
    let done = watcher.join().unwrap_or(false);
    if ended.is_ok() && done { Ok(()) } else { Err(GaveUp) }
}

/// Ends the worker when all is done, or when it has been in trouble for a while.
fn watch(queue: &Queue, since: &OnceLock<Instant>, shutdown: &Shutdown) -> bool {
    let started = Instant::now();
    let patience = std::env::var(IN_TROUBLE).ok().and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    let patience = patience.unwrap_or(LONGEST);
    loop {
        let jobs = queue.list(&Filter::default()).unwrap_or_default();
        if jobs.len() == JOBS && jobs.iter().all(|job| job.status.is_finished()) {
            shutdown.request();
            return true;
        }
        if since.get().is_some_and(|since| since.elapsed() > patience) || started.elapsed() > LONGEST {
            shutdown.request();
            shutdown.request();
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn said(event: &WorkerEvent) -> Option<Said> {
    match event {
        WorkerEvent::AttemptStarted { job_id, .. } => Some(Said::Run(job_id.clone())),
        WorkerEvent::Decided { job_id } => Some(Said::Decided(job_id.clone())),
        WorkerEvent::Attempt(report) => match (report.outcome, &report.error) {
            (AttemptEnd::Completed, _) => Some(Said::Completed(report.job_id.clone())),
            (_, Some(failure)) => Some(Said::Failed("Attempt".to_owned(), failure.text())),
            _ => None,
        },
        WorkerEvent::Trouble { error, .. } => Some(Said::Failed("Trouble".to_owned(), error.clone())),
        _ => None,
    }
}
