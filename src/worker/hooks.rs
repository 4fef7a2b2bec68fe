//! `on_success` and `on_failure`: after the end is durable, on a thread of
//! their own, so that a slow one delays nobody. Best effort: their errors are
//! logged and change nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use crate::handler::{AnyHandler, Ended};
use crate::job::Job;
use crate::store::Failure;

/// A hook to be called.
pub(super) struct Call {
    pub(super) handler: Arc<dyn AnyHandler>,
    pub(super) job: Arc<Job>,
    pub(super) result: Option<String>,
    /// `None` when the job has completed.
    pub(super) failure: Option<Failure>,
}

/// Until there are no more; `called` counts those that have returned.
pub(super) fn run(calls: &Receiver<Call>, called: &AtomicU64) {
    for call in calls {
        let ended = Ended { job: &call.job, result: call.result.as_deref(), failure: call.failure.as_ref() };
        let returned = catch_unwind(AssertUnwindSafe(|| match ended.failure {
            None => call.handler.on_success(&ended),
            Some(_) => call.handler.on_failure(&ended),
        }));
        match returned {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(job_id = call.job.id, error = crate::printable(&error.to_string()), "a hook failed");
            }
            Err(panic) => {
                super::execute::forget(panic);
                tracing::warn!(job_id = call.job.id, "a hook panicked");
            }
        }
        called.fetch_add(1, Ordering::Release);
    }
}
