//! `on_success` and `on_failure`: after the end is durable, on a thread of
//! their own, so that a slow one delays nobody. Best effort: their errors are
//! logged and change nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use super::span;
use crate::handler::{AnyHandler, Ended};
use crate::job::Job;
use crate::store::Failure;

/// What may wait to be told, in bytes. A hook that hangs must not take the
/// worker's memory with it, and must not stop the worker either: what is beyond
/// this is not told.
const MOST_WAITING: usize = 64 << 20;

/// Where calls are put.
#[derive(Clone)]
pub(super) struct Hooks {
    calls: Sender<Call>,
    waiting: Arc<AtomicUsize>,
}

/// Where they are taken from.
pub(super) struct Calls {
    calls: Receiver<Call>,
    waiting: Arc<AtomicUsize>,
}

pub(super) fn line() -> (Hooks, Calls) {
    let (send, receive) = mpsc::channel();
    let waiting: Arc<AtomicUsize> = Arc::default();
    (Hooks { calls: send, waiting: Arc::clone(&waiting) }, Calls { calls: receive, waiting })
}

impl Hooks {
    pub(super) fn tell(&self, call: Call) {
        let weight = call.weight();
        if self.waiting.fetch_add(weight, Ordering::AcqRel) + weight > MOST_WAITING {
            self.waiting.fetch_sub(weight, Ordering::AcqRel);
            tracing::warn!(job_id = call.job.id, "hooks are too slow; the one of this job is not called");
            return;
        }
        // The other side goes last.
        let _ = self.calls.send(call);
    }
}

/// A hook to be called.
pub(super) struct Call {
    pub(super) handler: Arc<dyn AnyHandler>,
    pub(super) job: Arc<Job>,
    pub(super) result: Option<String>,
    /// `None` when the job has completed.
    pub(super) failure: Option<Failure>,
}

impl Call {
    /// What it keeps in memory, in bytes.
    fn weight(&self) -> usize {
        // A small one has its price, too.
        512 + self.job.payload.as_str().len() + self.result.as_ref().map_or(0, String::len)
    }
}

/// Until there are no more; `called` counts those that have returned.
pub(super) fn run(calls: &Calls, called: &AtomicU64) {
    for call in &calls.calls {
        calls.waiting.fetch_sub(call.weight(), Ordering::AcqRel);
        let ended = Ended { job: &call.job, result: call.result.as_deref(), failure: call.failure.as_ref() };
        let _within = span::hook(&call.job).entered();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::Registry;
    use crate::new_job::NewJob;
    use crate::queue::Queue;

    #[test]
    fn what_waits_for_a_hook_that_hangs_is_bounded_and_the_next_is_told_again() {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::init(folder.path()).unwrap();
        let id = queue.enqueue(NewJob::raw("t", "{}")).unwrap().id;
        let job = Arc::new(queue.get(&id).unwrap());
        let registry = Registry::builtin();
        let handler = registry.get("create_file").unwrap();
        let large = "x".repeat(20 << 20);
        let call = || {
            let (handler, job, result) = (Arc::clone(handler), Arc::clone(&job), Some(large.clone()));
            Call { handler, job, result, failure: None }
        };
        let (hooks, calls) = line();
        for _ in 0..10 {
            hooks.tell(call());
        }
        assert_eq!(calls.calls.try_iter().count(), 3, "as many as fit");
        calls.waiting.store(0, Ordering::Release);
        hooks.tell(call());
        drop(hooks);
        let called = AtomicU64::new(0);
        run(&calls, &called);
        assert_eq!((called.into_inner(), calls.waiting.load(Ordering::Acquire)), (1, 0));
    }
}
