//! `jobq retry`: failed or cancelled jobs come back, one refusal not stopping
//! the others.

use jobq::{Filter, Job, Queue, Status, printable};
use serde_json::json;

use super::args::RetryArgs;
use super::locate::Place;
use super::output::{GREEN, Output};
use super::{Answer, Failure, Outcome, print_error};

pub(super) fn run(args: &RetryArgs, place: &Place, out: &mut Output) -> Outcome {
    let queue = place.open()?;
    let ids = if args.all_failed { all_failed(&queue)? } else { args.ids.clone() };
    if ids.is_empty() && !out.json {
        out.line("nothing has failed")?;
    }
    each(&ids, out, |id, out| {
        let job = retry(&queue, &queue.resolve(id)?, args.accept_disk)?;
        if out.json {
            out.json(&json!({ "id": job.id, "type": job.job_type, "status": job.status, "outcome": "retried" }))?;
        } else {
            out.line(format_args!("{GREEN}retried{GREEN:#}  {}  {}", printable(&job.id), job.status))?;
        }
        Ok(Answer::Yes)
    })
}

/// The job that came back, or why it did not.
pub(super) fn retry(queue: &Queue, id: &str, accept_disk: bool) -> jobq::Result<Job> {
    let job = if accept_disk { queue.retry_accepting_disk(id)? } else { queue.retry(id)? };
    if job.status == Status::Failed {
        // Decided, so it was applied at once, and that has failed again.
        let why = job.last_error.unwrap_or_default();
        return Err(jobq::Error::new(jobq::ErrorKind::Conflict, format!("job {id}: {why}")));
    }
    Ok(job)
}

/// Does something for each id; errors are printed as they come and the first
/// one decides the exit code.
pub(super) fn each(ids: &[String], out: &mut Output, mut act: impl FnMut(&str, &mut Output) -> Outcome) -> Outcome {
    let mut first = None;
    for id in ids {
        match act(id, out) {
            Err(Failure::Queue(error)) => {
                out.flush()?;
                print_error(&error);
                first.get_or_insert(error.kind());
            }
            other => {
                other?;
            }
        }
    }
    Ok(first.map_or(Answer::Yes, Answer::Failed))
}

/// Oldest first: a retried job keeps its place in order, so the earlier one
/// has to come back first.
fn all_failed(queue: &Queue) -> jobq::Result<Vec<String>> {
    let mut filter = Filter { status: Some(Status::Failed), limit: 1_000, ..Filter::default() };
    let mut ids = Vec::new();
    loop {
        let page = queue.list(&filter)?;
        let Some(last) = page.last() else { break };
        filter.before = Some(last.seq);
        ids.extend(page.into_iter().map(|job| job.id));
    }
    ids.reverse();
    Ok(ids)
}
