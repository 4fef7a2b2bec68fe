//! What a worker's events are in words, and as JSON.

use jobq::clock::rfc3339;
use jobq::worker::{AttemptEnd, AttemptReport};
use jobq::{WorkerEvent, printable};
use serde::Serialize;
use serde_json::json;

use crate::cli::locate::now;
use crate::cli::output::{CYAN, DIM, GREEN, RED, YELLOW, below_each_other};
use crate::cli::text::{self, shorten};

/// With the time, in lines that fit a terminal of that width.
pub(super) fn for_people(event: &WorkerEvent, columns: Option<usize>) -> Option<String> {
    let time = &rfc3339(now())[11..19];
    let text = in_words(event)?;
    let text = columns.map_or(text.clone(), |columns| below_each_other(&text, time.len() + 1, columns));
    Some(format!("{DIM}{time}{DIM:#} {text}"))
}

fn in_words(event: &WorkerEvent) -> Option<String> {
    Some(match event {
        WorkerEvent::Started { worker, types, concurrency, programs } => {
            let programs = printable(&programs.to_string_lossy());
            let types = types.join(", ");
            format!("{DIM}worker {worker}, {concurrency} at a time: {types}; programs from {programs}{DIM:#}")
        }
        WorkerEvent::Attempt(attempt) => attempt_for_people(attempt),
        WorkerEvent::Reclaimed(done) => format!(
            "{YELLOW}reclaimed{YELLOW:#} from workers that are gone: {} to run again, {} to apply, {} failed",
            done.pending.len(),
            done.unowned.len(),
            done.failed.len()
        ),
        WorkerEvent::Reconciled(sums) if sums.findings > 0 => format!(
            "{YELLOW}drift{YELLOW:#} {} of {} paths are not as jobs left them; `jobq reconcile` lists them",
            sums.findings, sums.checked
        ),
        WorkerEvent::UnknownType { job_type, others } => {
            let others = if *others == 0 { String::new() } else { format!(" and of {others} more") };
            let job_type = printable(job_type);
            format!("{YELLOW}waiting{YELLOW:#} jobs of type {job_type}{others} have no handler here; they stay pending")
        }
        WorkerEvent::ThreadLost { job_id, job_type } => {
            let (job_type, job_id) = (printable(job_type), printable(job_id));
            format!("{RED}stuck{RED:#} {job_type} {job_id}: its handler did not stop; given up")
        }
        WorkerEvent::Trouble { error, retry_in } => format!(
            "{RED}trouble{RED:#} {}; trying again in {}",
            printable(error),
            humantime::format_duration(*retry_in)
        ),
        WorkerEvent::TroubleOver => format!("{GREEN}going on{GREEN:#}"),
        WorkerEvent::Stopping { waiting_for } => {
            format!("{YELLOW}stopping{YELLOW:#} after {}; once more to give it back instead", waiting_for.join(", "))
        }
        _ => return None,
    })
}

fn attempt_for_people(attempt: &AttemptReport) -> String {
    let (style, word) = match attempt.outcome {
        AttemptEnd::Completed => (GREEN, "completed"),
        AttemptEnd::Rescheduled => (YELLOW, "rescheduled"),
        AttemptEnd::Failed => (RED, "failed"),
        AttemptEnd::Released => (CYAN, "released"),
        AttemptEnd::Cancelled => (DIM, "cancelled"),
        AttemptEnd::Deferred => (YELLOW, "deferred"),
        AttemptEnd::LeaseLost => (RED, "lease lost"),
        AttemptEnd::Unrecorded => (RED, "unrecorded"),
    };
    let id = printable(&attempt.job_id);
    let error = attempt.error.as_ref().map(|e| at_a_glance(&e.text(), &id)).unwrap_or_default();
    format!(
        "{style}{word:<11}{style:#} {} {id}  {DIM}attempt {}, {:.1?}{DIM:#}{error}",
        printable(&attempt.job_type),
        attempt.attempt,
        attempt.duration
    )
}

/// An error may be all that a program has printed; a few lines of it tell which it is.
fn at_a_glance(error: &str, job_id: &str) -> String {
    let (whole, most) = (printable(error), 240);
    let short = shorten(&whole, most);
    if short == whole { format!(": {whole}") } else { format!(": {short} (`jobq show {job_id}` has all of it)") }
}

/// When, what, and what there is to say about it.
#[derive(Serialize)]
struct Line<T> {
    at: String,
    event: &'static str,
    #[serde(flatten)]
    data: T,
}

pub(super) fn for_programs(event: &WorkerEvent) -> Option<String> {
    match event {
        WorkerEvent::Started { worker, types, concurrency, programs } => {
            let programs = programs.to_string_lossy();
            let data = json!({ "worker": worker, "types": types, "concurrency": concurrency, "programs": programs });
            line("worker_started", data)
        }
        WorkerEvent::Attempt(attempt) => line("attempt", attempt),
        WorkerEvent::Reclaimed(done) => line("reclaimed", done),
        WorkerEvent::Reconciled(sums) => line("reconciled", sums),
        WorkerEvent::UnknownType { job_type, others } => {
            line("unknown_type", json!({ "type": job_type, "others": others }))
        }
        WorkerEvent::ThreadLost { job_id, job_type } => {
            line("thread_lost", json!({ "job_id": job_id, "type": job_type }))
        }
        WorkerEvent::Trouble { error, retry_in } => {
            line("trouble", json!({ "error": error, "retry_in_ms": retry_in.as_millis() }))
        }
        WorkerEvent::TroubleOver => line("trouble_over", json!({})),
        WorkerEvent::Stopping { waiting_for } => line("stopping", json!({ "waiting_for": waiting_for })),
        WorkerEvent::Stopped(summary) => line("worker_stopped", summary),
        _ => None,
    }
}

fn line(event: &'static str, data: impl Serialize) -> Option<String> {
    text::json(&Line { at: rfc3339(now()), event, data }).ok()
}
