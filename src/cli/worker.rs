//! `jobq worker`: runs jobs until it is told to stop, and reports what happens.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;

use jobq::store::Outstanding;
use jobq::{Error, ErrorKind, Gate, Queue, Shutdown, Supervisor, Worker, WorkerOptions};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::args::WorkerArgs;
use super::handlers;
use super::lifecycle::Lifecycle;
use super::locate::Place;
use super::output::{DIM, Output};
use super::progress;
use super::{Answer, Outcome};

pub(super) fn run(args: &WorkerArgs, place: &Place, supervisor: Supervisor, out: &mut Output, quiet: bool) -> Outcome {
    // Programs of jobs run as the same user. They must not read this process's environment and memory.
    if std::env::var_os("JOBQ_DUMPABLE").is_none_or(|value| value != "1") {
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
    let registry = place.registry()?;
    // The worker reclaims dead workers' jobs by itself. It records its root at the start, not with its first job.
    let queue = Arc::new(place.open_as_it_is()?);
    queue.store().record_root()?;
    out.warnings(&place.slips()?)?;
    out.warnings(&handlers::problems(place)?)?;
    let options = WorkerOptions { supervisor: Some(supervisor), ..place.config.worker_options(args) };
    let people = !out.json && std::io::stdout().is_terminal();
    let bar = if args.drain && people && progress::is_wanted(out) {
        total(&queue, options.types.as_ref().unwrap_or(&registry.names()))?
    } else {
        None
    };
    let lifecycle = Arc::new(Lifecycle::new(people, quiet, bar));
    let printer = Arc::clone(&lifecycle);
    let worker = Worker::new(queue, registry, options)?.observed_by(move |event| printer.print(event));
    let shutdown = Shutdown::new();
    let asked = shutdown.clone();
    ctrlc::set_handler(move || asked.request())
        .map_err(|e| Error::new(ErrorKind::Internal, format!("cannot listen for signals: {e}")))?;
    let summary = worker.run(&shutdown);
    lifecycle.finish();
    let summary = summary?;
    if people && !quiet {
        let cancelled = match lifecycle.cancelled() {
            0 => String::new(),
            jobs => format!(", {jobs} cancelled"),
        };
        let _ = writeln!(
            anstream::stderr(),
            "{DIM}{} completed, {} failed, {} to be repeated{cancelled}{DIM:#}",
            summary.completed,
            summary.failed,
            summary.rescheduled
        );
    }
    Ok(Answer::Yes)
}

/// The number of jobs that can run now, for the length of the progress bar; `None` if there are none.
fn total(queue: &Queue, types: &[String]) -> jobq::Result<Option<u64>> {
    let is_now = |group: &&Outstanding| {
        types.contains(&group.job_type) && !matches!(group.gate, Some(Gate::Delayed | Gate::Backoff))
    };
    let jobs =
        queue.stats()?.outstanding.iter().filter(is_now).map(|group| u64::try_from(group.jobs).unwrap_or(0)).sum();
    Ok((jobs > 0).then_some(jobs))
}
