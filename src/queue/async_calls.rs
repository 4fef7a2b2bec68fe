//! The same verbs for async code: the call is made on a thread for blocking
//! work, so that the runtime goes on meanwhile.

use std::future::Future;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::Queue;
use crate::commit::{Accepted, Draft};
use crate::error::{Error, ErrorKind, Result};
use crate::new_job::NewJob;
use crate::store::Enqueued;

impl Queue {
    /// [`enqueue`](Queue::enqueue) that does not block the runtime: durable when the
    /// future is ready with `Ok`.
    ///
    /// Nothing happens before the future is first polled. If it is dropped after
    /// that, the call goes on without it, so the job may be accepted or not, once:
    /// whoever has to know asks again with the same id or key, as after
    /// [`OutcomeUnknown`](ErrorKind::OutcomeUnknown).
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
        Arc::clone(self).on_a_thread(move |queue| queue.enqueue(job))
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
        Arc::clone(self).on_a_thread(move |queue| queue.commit_draft(draft?))
    }

    /// Any other call that does not block the runtime.
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
        Arc::clone(self).on_a_thread(call)
    }

    async fn on_a_thread<T, F>(self: Arc<Self>, call: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Self) -> Result<T> + Send + 'static,
    {
        let runtime = Handle::try_current().map_err(|e| Error::invalid("runtime", e))?;
        let span = tracing::Span::current();
        let called = runtime.spawn_blocking(move || span.in_scope(|| call(&self))).await;
        called.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Error::new(ErrorKind::Internal, "the runtime is ending; nothing was asked of the queue")),
        })
    }
}
