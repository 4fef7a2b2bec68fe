//! Handlers that are async: a future per attempt, on the thread of its job.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::Poll;

use tokio::runtime::Handle;

use super::context::stopped_by;
use super::error::Verdict;
use super::runtime::Runtime;
use super::{Context, Ended, Handler, HandlerError, Outcome, Registry};
use crate::payload::Payload;

/// What an attempt of a handler comes to.
type Attempt<P> = Result<Outcome<<P as Payload>::Output>, HandlerError>;

/// Runs jobs of one type, as [`Handler`] does, with a future.
///
/// The future is polled on the thread that the worker has for the job, with the
/// runtime that [`Registry::with_async`] was given for timers, sockets and
/// tasks. So it need not be `Send`, and what blocks in it
/// ([`Context::stage`], [`Context::checkpoint`]) holds up no other task; and as
/// many futures run at once as the worker has threads
/// ([`WorkerOptions::concurrency`](crate::WorkerOptions::concurrency)).
///
/// When the job is cancelled, has taken as long as it may, is no longer this
/// worker's, or the worker does not wait any more, the future is polled once
/// more and then dropped where it awaits: what it holds goes by its destructors.
/// What it returns in that last poll counts. When the worker is told to stop and
/// waits, the future goes on, unless it heeds [`Context::stopped`]. Tasks that
/// it has spawned are not the worker's: they are not ended with it. A panic is a
/// failed attempt.
///
/// ```
/// use std::time::Duration;
/// use jobq::{AsyncHandler, Context, HandlerError, Outcome, Payload, Registry};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Fetch { url: String }
///
/// impl Payload for Fetch {
///     const TYPE: &'static str = "fetch";
///     type Output = u64;
/// }
///
/// struct Fetcher;
///
/// impl AsyncHandler for Fetcher {
///     type Payload = Fetch;
///     async fn run(&self, ctx: &Context, fetch: Fetch) -> Result<Outcome<u64>, HandlerError> {
///         tokio::time::sleep(Duration::from_millis(1)).await; // … ask for it …
///         let page = ctx.stage(fetch.url.as_bytes())?;
///         Ok(Outcome::new(1).put("page.html", page))
///     }
/// }
///
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
/// let registry = Registry::builtin().with_async(Fetcher, runtime.handle());
/// assert!(registry.names().contains(&"fetch".to_owned()));
/// ```
pub trait AsyncHandler: Send + Sync + 'static {
    /// What the jobs of this type carry.
    type Payload: Payload;

    /// One attempt, as [`Handler::run`]; written as `async fn`.
    fn run(&self, ctx: &Context, payload: Self::Payload) -> impl Future<Output = Attempt<Self::Payload>>;

    /// As [`Handler::runs_programs`].
    fn runs_programs(&self) -> bool {
        false
    }

    /// As [`Handler::on_success`].
    fn on_success(&self, _ended: &Ended<'_>) -> Result<(), HandlerError> {
        Ok(())
    }

    /// As [`Handler::on_failure`].
    fn on_failure(&self, _ended: &Ended<'_>) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// An async handler as any other.
struct OnRuntime<H> {
    handler: H,
    runtime: Runtime,
}

impl<H: AsyncHandler> Handler for OnRuntime<H> {
    type Payload = H::Payload;

    fn run(&self, ctx: &Context, payload: H::Payload) -> Attempt<H::Payload> {
        let attempt = catch_unwind(AssertUnwindSafe(|| self.runtime.handle().block_on(self.until_told(ctx, payload))));
        match attempt {
            Ok(Ok(outcome)) => Ok(outcome),
            // A timer panics then, a task is cancelled, a socket fails: it is not the job's fault.
            failed if self.runtime.is_ending() => {
                // What a panic leaves may panic itself when it is dropped.
                std::mem::forget(failed);
                Err(runtime_ended())
            }
            Ok(Err(error)) => Err(error),
            Err(panic) => resume_unwind(panic),
        }
    }

    fn runs_programs(&self) -> bool {
        self.handler.runs_programs()
    }

    fn on_success(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
        self.handler.on_success(ended)
    }

    fn on_failure(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
        self.handler.on_failure(ended)
    }
}

impl<H: AsyncHandler> OnRuntime<H> {
    async fn until_told(&self, ctx: &Context, payload: H::Payload) -> Attempt<H::Payload> {
        let work = self.handler.run(ctx, payload);
        #[cfg(feature = "testing")]
        let work = crate::testing::watched(work, &self.runtime);
        let mut work = pin!(work);
        let is_over = || ctx.stop().is_some() || self.runtime.has_ended();
        let mut told = pin!(ctx.run.until_some(|| is_over().then_some(())));
        poll_fn(|cx| {
            // Not even once more: what it waits for would panic.
            if self.runtime.has_ended() {
                return Poll::Ready(Err(runtime_ended()));
            }
            // Asked first: a reason that comes while the work is polled must not take its last poll from it.
            let stop = ctx.stop();
            if let Poll::Ready(outcome) = work.as_mut().poll(cx) {
                return Poll::Ready(outcome);
            }
            if let Some(stop) = stop {
                return Poll::Ready(Err(stopped_by(stop)));
            }
            // Work that is always ready for more may leave nothing of the runtime's budget for the other.
            if is_over() || told.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await
    }
}

fn runtime_ended() -> HandlerError {
    HandlerError::new(Verdict::RuntimeEnded, "runtime_ended", "the runtime of its handler has ended")
}

impl Registry {
    /// These handlers and an async one, which runs with this runtime. Somebody
    /// else has to drive that: a runtime of several threads does so by itself, one
    /// of the current thread only while something blocks on it. So a worker must
    /// not run on that thread; `tokio::task::spawn_blocking` gives it one.
    ///
    /// Keep the runtime until the worker has stopped. If it ends before, what ran goes
    /// back and loses no attempt, and the worker stops with an error that says so: it
    /// finishes what else runs, and claims nothing more of any type.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use jobq::{AsyncHandler, Context, HandlerError, Outcome, QueueOptions, Shutdown, Worker, WorkerOptions};
    /// # use jobq::{Registry, handlers::{CreateFile, CreatedFile}};
    /// # struct Patient;
    /// impl AsyncHandler for Patient {
    /// #   type Payload = CreateFile;
    ///     // …
    ///     async fn run(&self, _: &Context, file: CreateFile) -> Result<Outcome<CreatedFile>, HandlerError> {
    ///         tokio::task::yield_now().await;
    ///         Err(HandlerError::permanent(file.path))
    ///     }
    /// }
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    /// let registry = Registry::builtin().with_async(Patient, runtime.handle());
    /// let queue = Arc::new(QueueOptions::in_folder(folder.path()).create(true).types(registry.types()).open()?);
    /// queue.enqueue(CreateFile::text("a.txt", "a"))?;
    /// let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
    /// let worker = Worker::new(queue, registry, options)?;
    /// assert_eq!(worker.run(&Shutdown::new())?.failed, 1, "the last handler of a type counts");
    /// # Ok::<(), jobq::Error>(())
    /// ```
    #[must_use]
    pub fn with_async<H: AsyncHandler>(self, handler: H, runtime: &Handle) -> Self {
        let runtime = Runtime::new(runtime);
        self.with(OnRuntime { handler, runtime: runtime.clone() }).on_runtime(H::Payload::TYPE, runtime)
    }
}

impl Context {
    /// Waits until [`check`](Context::check) would say that the handler should stop,
    /// and gives the error to return with. For async handlers that want to end
    /// early when the worker shuts down, or to clean up when they are to stop.
    ///
    /// ```
    /// # use std::{future::{Future, poll_fn}, pin::pin, task::Poll, time::Duration};
    /// # use jobq::{Context, HandlerError, Outcome};
    /// async fn wait_for_it(ctx: &Context) -> Result<Outcome, HandlerError> {
    ///     let mut work = pin!(tokio::time::sleep(Duration::from_secs(3600)));
    ///     let mut stop = pin!(ctx.stopped());
    ///     // `tokio::select!` says the same in fewer words.
    ///     poll_fn(|cx| match work.as_mut().poll(cx) {
    ///         Poll::Ready(()) => Poll::Ready(Ok(Outcome::done())),
    ///         Poll::Pending => stop.as_mut().poll(cx).map(Err),
    ///     })
    ///     .await
    /// }
    /// # let _ = wait_for_it;
    /// ```
    pub async fn stopped(&self) -> HandlerError {
        self.run.until_some(|| self.check().err()).await
    }
}
