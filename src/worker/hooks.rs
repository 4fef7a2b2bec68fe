//! `on_success` and `on_failure`: after the end is durable, on a thread of
//! their own, so that a slow one delays nobody. Best effort: their errors are
//! logged and change nothing.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::shutdown::Shutdown;
use super::span;
use crate::handler::{AnyHandler, Ended};
use crate::job::Job;
use crate::store::Failure;

/// What may wait to be told, in bytes. A hook that hangs must not take the
/// worker's memory with it, and must not stop the worker either: what is beyond
/// this is not told.
const MOST_WAITING: usize = 64 << 20;
/// How often whoever waits for the end of a hook looks whether it still should.
const LOOK: Duration = Duration::from_millis(10);

/// Where calls are put.
#[derive(Clone)]
pub(super) struct Hooks {
    calls: Sender<Told>,
    waiting: Arc<AtomicUsize>,
    waits: Option<Shutdown>,
}

/// A call, and somebody who notices when it is dropped: then it was made.
type Told = (Call, Option<Sender<Infallible>>);

/// Where they are taken from.
pub(super) struct Calls {
    calls: Receiver<Told>,
    waiting: Arc<AtomicUsize>,
}

/// `waits`: nobody is to get ahead of a hook, so whoever tells waits for its end, unless the worker is told to go at once.
pub(super) fn line(waits: Option<Shutdown>) -> (Hooks, Calls) {
    let (send, receive) = mpsc::channel();
    let waiting: Arc<AtomicUsize> = Arc::default();
    let hooks = Hooks { calls: send, waiting: Arc::clone(&waiting), waits };
    (hooks, Calls { calls: receive, waiting })
}

impl Hooks {
    pub(super) fn tell(&self, call: Call) {
        let weight = call.weight();
        if self.waiting.fetch_add(weight, Ordering::AcqRel) + weight > MOST_WAITING {
            self.waiting.fetch_sub(weight, Ordering::AcqRel);
            tracing::warn!(job_id = call.job.id, "hooks are too slow; the one of this job is not called");
            return;
        }
        let Some(shutdown) = &self.waits else {
            // The other side goes last.
            let _ = self.calls.send((call, None));
            return;
        };
        let (end, ended) = mpsc::channel();
        let _ = self.calls.send((call, Some(end)));
        while shutdown.requests() < 2 && ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {}
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

    fn make(&self) {
        let ended = Ended { job: &self.job, result: self.result.as_deref(), failure: self.failure.as_ref() };
        let _within = span::hook(&self.job).entered();
        let returned = catch_unwind(AssertUnwindSafe(|| match ended.failure {
            None => self.handler.on_success(&ended),
            Some(_) => self.handler.on_failure(&ended),
        }));
        match returned {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(job_id = self.job.id, error = crate::printable(&error.to_string()), "a hook failed");
            }
            Err(panic) => {
                super::execute::forget(panic);
                tracing::warn!(job_id = self.job.id, "a hook panicked");
            }
        }
    }
}

/// Until there are no more; `called` counts those that have returned.
pub(super) fn run(calls: &Calls, called: &AtomicU64) {
    for (call, _end) in &calls.calls {
        calls.waiting.fetch_sub(call.weight(), Ordering::AcqRel);
        call.make();
        called.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::Registry;
    use crate::new_job::NewJob;
    use crate::queue::Queue;

    fn ended() -> (Arc<dyn AnyHandler>, Arc<Job>) {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::init(folder.path()).unwrap();
        let id = queue.enqueue(NewJob::raw("t", "{}")).unwrap().id;
        (Arc::clone(Registry::builtin().get("create_file").unwrap()), Arc::new(queue.get(&id).unwrap()))
    }

    /// Nobody takes the calls here, as if the first of them hung.
    #[test]
    fn a_hook_that_hangs_is_not_waited_for_by_a_worker_that_is_told_to_go_at_once() {
        let (handler, job) = ended();
        let call = || Call { handler: Arc::clone(&handler), job: Arc::clone(&job), result: None, failure: None };
        let shutdown = Shutdown::new();
        let (hooks, calls) = line(Some(shutdown.clone()));
        let first = call();
        let telling = std::thread::spawn(move || {
            hooks.tell(first);
            hooks
        });
        let (_, end) = calls.calls.recv().unwrap();
        shutdown.request();
        assert!(!telling.is_finished(), "it is waited for");
        shutdown.request();
        telling.join().unwrap().tell(call());
        assert_eq!(calls.calls.try_iter().count(), 1, "it is called when its turn comes");
        drop(end);
    }

    #[test]
    fn what_waits_for_a_hook_that_hangs_is_bounded_and_the_next_is_told_again() {
        let (handler, job) = ended();
        let large = "x".repeat(20 << 20);
        let call = || {
            let (handler, job, result) = (Arc::clone(&handler), Arc::clone(&job), Some(large.clone()));
            Call { handler, job, result, failure: None }
        };
        let (hooks, calls) = line(None);
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
