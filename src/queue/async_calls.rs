//! The same verbs for async code: the call is made on a thread of the queue's
//! own, so that the runtime goes on meanwhile.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::Queue;
use super::threads::Threads;
use crate::commit::{Accepted, Draft};
use crate::error::{Error, ErrorKind, Result};
use crate::new_job::NewJob;
use crate::store::Enqueued;

/// Calls that take as long as a COMMIT. Those that wait for it together share one,
/// so with fewer threads there would be more of them; with more it gets no faster.
const MOST_WRITES: usize = 64;
/// Calls that may take any time, as one that waits for a job.
const MOST_OTHERS: usize = 512;

/// Who makes the calls of async code. What queues does not stand behind what may
/// wait for just that.
pub(super) struct Callers {
    writes: Threads,
    others: Threads,
}

impl Default for Callers {
    fn default() -> Self {
        Self { writes: Threads::at_most(MOST_WRITES), others: Threads::at_most(MOST_OTHERS) }
    }
}

/// What a call may have to wait for.
#[derive(Clone, Copy)]
enum Kind {
    /// The disk.
    Write,
    /// Anything.
    Other,
}

impl Callers {
    fn of(&self, kind: Kind) -> &Threads {
        match kind {
            Kind::Write => &self.writes,
            Kind::Other => &self.others,
        }
    }
}

impl Queue {
    /// [`enqueue`](Queue::enqueue) that does not block the runtime: durable when the
    /// future is ready with `Ok`.
    ///
    /// The call is made on a thread of the queue's own, whatever the application does
    /// with those of its runtime. There are a few of them, started as needed; calls
    /// at the same time share a sync, as those of threads do. Any executor will do.
    ///
    /// Nothing happens before the future is first polled. If it is dropped after
    /// that, the call goes on without it, so the job may be accepted or not, once:
    /// whoever has to know asks again with the same id or key, as after
    /// [`OutcomeUnknown`](ErrorKind::OutcomeUnknown).
    ///
    /// With cargo feature `testing`, a paused clock of tokio stands still until the call
    /// has ended, so that no timeout around it elapses at once. So it is with all calls here.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// use std::sync::Arc;
    /// use jobq::{NewJob, Queue};
    /// let queue = Arc::new(Queue::init(folder.path())?);
    /// # runtime.block_on(async {
    /// let job = queue.enqueue_async(NewJob::raw("send_mail", r#"{"to":"ada@example.org"}"#)).await?;
    /// assert_eq!(job.status, jobq::Status::Pending);
    /// # Ok::<(), jobq::Error>(())
    /// # })?;
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn enqueue_async<J: Into<NewJob>>(
        self: &Arc<Self>,
        job: J,
    ) -> impl Future<Output = Result<Enqueued>> + Send + use<J> {
        let job = job.into();
        Arc::clone(self).by(Kind::Write, move |queue| queue.enqueue(job))
    }

    /// [`commit`](Queue::commit) that does not block the runtime. The closure is
    /// called at once, by the caller, so it may borrow; what it asks for happens when
    /// the future is polled. Dropped after that, it is as with
    /// [`enqueue_async`](Queue::enqueue_async): the commit is accepted or not, as a
    /// whole and once, and submitting it again with the same id tells which.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// # let queue = std::sync::Arc::new(jobq::Queue::init(folder.path())?);
    /// # runtime.block_on(async {
    /// let model = serde_json::json!({ "title": "Invoices are numbered" });
    /// let commit = queue.commit_async(|tx| tx.write_json("data/req-1.json", &model)).await?;
    /// assert!(commit.applied);
    /// # Ok::<(), jobq::Error>(())
    /// # })?;
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn commit_async<F: FnOnce(&mut Draft) -> Result<()>>(
        self: &Arc<Self>,
        fill: F,
    ) -> impl Future<Output = Result<Accepted>> + Send + use<F> {
        let draft = Draft::filled_by(fill);
        Arc::clone(self).by(Kind::Write, move |queue| queue.commit_draft(draft?))
    }

    /// Any other call that does not block the runtime. It may take long, as
    /// [`wait`](Queue::wait) does: it keeps a thread for that time, of which there are
    /// 512 for such calls, and holds up neither `enqueue_async` nor `commit_async`. It
    /// may hold up another such call: where hundreds wait for jobs, a handler of those
    /// jobs should not depend on one. In tests, a paused clock of tokio may leap while
    /// the call is in [`wait`](Queue::wait), because the job may wait for that.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// # let queue = std::sync::Arc::new(jobq::Queue::init(folder.path())?);
    /// # runtime.block_on(async {
    /// let failed = jobq::Filter { status: Some(jobq::Status::Failed), ..jobq::Filter::default() };
    /// let failed = queue.call_async(move |queue| queue.list(&failed)).await?;
    /// assert!(failed.is_empty());
    /// # Ok::<(), jobq::Error>(())
    /// # })?;
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn call_async<T, F>(self: &Arc<Self>, call: F) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&Self) -> Result<T> + Send + 'static,
    {
        Arc::clone(self).by(Kind::Other, call)
    }

    async fn by<T, F>(self: Arc<Self>, kind: Kind, call: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Self) -> Result<T> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let (span, queue) = (tracing::Span::current(), Arc::clone(&self));
        let call = move || {
            // Behind a database that stands still, calls of callers who have given up would pile up.
            if answer.is_closed() {
                return;
            }
            let called = catch_unwind(AssertUnwindSafe(|| span.in_scope(|| call(&queue))));
            // First: whoever has the answer may want to be the last who has the queue.
            drop((span, queue));
            // Nobody may want it any more.
            let _ = answer.send(called);
        };
        // Until the call has ended or nobody waits for it. Only for tests: it costs a thread of the runtime.
        #[cfg(feature = "testing")]
        let (call, _at_work) = crate::testing::at_work(call);
        self.callers.of(kind).call(Box::new(call)).map_err(|error| {
            let why = format!("cannot start a thread, so nothing was asked of the queue: {error}");
            Error::new(ErrorKind::Io, why)
        })?;
        drop(self);
        match answered.await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => Err(Error::new(ErrorKind::Internal, "a call was dropped; whether it was made is not known")),
        }
    }
}
