//! `jobq worker`: runs jobs until told to stop, and says what happens.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;

use jobq::{Error, ErrorKind, Shutdown, Supervisor, Worker, WorkerOptions};

use super::args::WorkerArgs;
use super::lifecycle::Lifecycle;
use super::locate::Place;
use super::output::{DIM, Output};
use super::{Answer, Outcome};

pub(super) fn run(args: &WorkerArgs, place: &Place, supervisor: Supervisor, out: &Output, quiet: bool) -> Outcome {
    let registry = place.registry()?;
    let queue = Arc::new(place.open_as_it_is()?);
    let options = WorkerOptions { supervisor: Some(supervisor), ..place.config.worker_options(args) };
    let people = !out.json && std::io::stdout().is_terminal();
    let bar = (args.drain && people && !quiet && std::io::stderr().is_terminal()).then(|| total(&queue)).transpose()?;
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
        let _ = writeln!(
            anstream::stderr(),
            "{DIM}{} completed, {} failed, {} to be repeated{DIM:#}",
            summary.completed,
            summary.failed,
            summary.rescheduled
        );
    }
    Ok(Answer::Yes)
}

/// Unfinished jobs, for the length of the progress bar.
fn total(queue: &jobq::Queue) -> jobq::Result<u64> {
    Ok(queue.stats()?.outstanding.iter().map(|group| u64::try_from(group.jobs).unwrap_or(0)).sum())
}
