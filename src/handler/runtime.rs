//! The runtime of an async handler, which may end before the worker does.

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A runtime, and whether it is known to have ended.
#[derive(Clone)]
pub(crate) struct Runtime {
    handle: Handle,
    ended: Arc<AtomicBool>,
}

/// Whoever drops it is not told of the runtime's end any more.
pub(crate) struct Watch {
    _over: oneshot::Sender<()>,
}

/// A task that does nothing has it, and is dropped with its runtime.
struct End {
    ended: Arc<AtomicBool>,
    tell: Option<Box<dyn FnOnce() + Send>>,
}

impl End {
    /// Nobody wants to know any more.
    fn forget(mut self) {
        self.tell = None;
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Some(tell) = self.tell.take() {
            self.ended.store(true, Ordering::SeqCst);
            tell();
        }
    }
}

impl Runtime {
    pub(super) fn new(handle: &Handle) -> Self {
        Self { handle: handle.clone(), ended: Arc::default() }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Tells when the runtime ends, which may be at once.
    pub(crate) fn watch(&self, tell: impl FnOnce() + Send + 'static) -> Watch {
        let (watch, over) = oneshot::channel();
        let end = End { ended: Arc::clone(&self.ended), tell: Some(Box::new(tell)) };
        drop(self.handle.spawn(async move {
            let _ = over.await;
            end.forget();
        }));
        Watch { _over: watch }
    }

    /// Somebody who watches has been told.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Asks the runtime itself. It takes no more work before it lets go of what it
    /// has, so whatever went wrong because it ends, this is true by then.
    pub(super) fn is_ending(&self) -> bool {
        if self.has_ended() {
            return true;
        }
        let task = self.handle.spawn(pending::<()>());
        let is_refused = task.is_finished();
        task.abort();
        // Of several threads, the one that refuses tasks may come after the one that refuses blocking work.
        // Where no thread can be had it panics, which says nothing about the runtime.
        is_refused || catch_unwind(AssertUnwindSafe(|| is_over(self.handle.spawn_blocking(|| ())))).unwrap_or(false)
    }
}

/// It will not be run.
fn is_over(work: JoinHandle<()>) -> bool {
    matches!(pin!(work).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Err(_)))
}
