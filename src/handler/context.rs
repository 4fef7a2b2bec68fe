//! What a handler sees of its job while it runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{HandlerError, Run, Stop, Verdict};
use crate::effects::{FileError, Files, Sight, StageWriter, Staged};
use crate::job::Job;
use crate::programs::Link;
use crate::queue::Queue;
use crate::store::{Beat, Progress, Pulse, Store as _};

/// A job's surroundings while it runs.
///
/// ```
/// use jobq::{Context, HandlerError, Outcome};
/// /// Goes on where the last attempt ended, and stops when it should.
/// fn copy_all(ctx: &Context, pages: u32) -> Result<Outcome, HandlerError> {
///     let first: u32 = ctx.last_checkpoint()?.unwrap_or(0);
///     for page in first..pages {
///         ctx.check()?;
///         // … copy it …
///         ctx.checkpoint(&(page + 1))?;
///         ctx.progress(u8::try_from(page * 100 / pages).unwrap_or(100), format!("page {page}"));
///     }
///     let list = ctx.stage(format!("{pages} pages\n").as_bytes())?;
///     Ok(Outcome::done().put("copied.txt", list))
/// }
/// # let _ = copy_all;
/// ```
pub struct Context {
    pub(crate) run: Arc<Run>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) files: Arc<Files>,
    pub(crate) programs: Option<Arc<Link>>,
    pub(crate) shutting_down: Arc<AtomicBool>,
    pub(crate) attempt: u32,
    pub(crate) correlation_id: Option<String>,
    pub(crate) checkpoint: Option<String>,
    backoff: Duration,
}

impl Context {
    pub(crate) fn of(
        job: &Job,
        run: Arc<Run>,
        queue: Arc<Queue>,
        files: Arc<Files>,
        programs: Option<Arc<Link>>,
        shutting_down: Arc<AtomicBool>,
    ) -> Self {
        // Attempts that pause their type do not count; the token does.
        let claims = u32::try_from(run.lease.token).unwrap_or(u32::MAX);
        Self {
            run,
            queue,
            files,
            programs,
            shutting_down,
            attempt: job.attempts,
            correlation_id: job.correlation_id.clone(),
            checkpoint: job.checkpoint.as_ref().map(|text| text.as_str().to_owned()),
            backoff: job.backoff().delay(claims, fastrand::f64()),
        }
    }

    /// The job's name.
    #[must_use]
    pub fn job_id(&self) -> &str {
        &self.run.lease.id
    }

    /// Which attempt this is, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// A wait that fits how often the job has been tried: the job's backoff, doubled
    /// each time it was claimed and never more than its longest. For a pause of the
    /// type, say, by a service that does not tell how long it wants to be left alone.
    #[must_use]
    pub fn backoff(&self) -> Duration {
        self.backoff
    }

    /// The cause the job belongs to.
    #[must_use]
    pub fn correlation_id(&self) -> Option<&str> {
        self.correlation_id.as_deref()
    }

    /// The folder jobs may touch. To be read from; changes go into the outcome.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.files.root()
    }

    /// Whether and why to stop now.
    #[must_use]
    pub fn stop(&self) -> Option<Stop> {
        self.run.stop()
    }

    /// Whether someone cancelled the job.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.stop() == Some(Stop::Cancelled)
    }

    /// Whether the worker wants to end. A handler that goes on is waited for.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::Acquire)
    }

    /// A safe point: an error to return with if the handler should stop. When
    /// the worker shuts down the job goes back and the attempt does not count.
    pub fn check(&self) -> Result<(), HandlerError> {
        match self.stop() {
            Some(stop) => Err(stopped_by(stop)),
            None if self.is_shutting_down() => Err(HandlerError::released()),
            None => Ok(()),
        }
    }

    /// Tells people how far it is. Written at most once a second; the last one
    /// is never lost.
    pub fn progress(&self, percent: u8, message: impl Into<String>) {
        let message = Some(message.into()).filter(|text| !text.is_empty());
        let progress = Progress { percent: percent.min(100), message };
        self.run.report(progress);
        let Some(sending) = self.run.send_progress() else { return };
        match self.beat(sending.progress(), None) {
            Ok(()) => sending.written(),
            Err(error) => tracing::warn!(job_id = self.job_id(), %error, "progress could not be written"),
        }
    }

    /// Keeps a value for the next attempt, durable when this returns.
    pub fn checkpoint(&self, value: &impl Serialize) -> Result<(), HandlerError> {
        let text = serde_json::to_string(value)
            .map_err(|e| HandlerError::permanent(format_args!("the checkpoint is not JSON: {e}")))?;
        self.beat(None, Some(text))
    }

    /// What an earlier attempt has kept.
    pub fn last_checkpoint<T: DeserializeOwned>(&self) -> Result<Option<T>, HandlerError> {
        let parse = |text: &String| serde_json::from_str(text);
        self.checkpoint
            .as_ref()
            .map(parse)
            .transpose()
            .map_err(|e| HandlerError::permanent(format_args!("the checkpoint cannot be read: {e}")))
    }

    fn beat(&self, progress: Option<Progress>, checkpoint: Option<String>) -> Result<(), HandlerError> {
        let beat = Beat { lease: self.run.lease.clone(), progress, checkpoint };
        let pulse = self.queue.store().heartbeat(vec![beat])?.pop();
        match pulse {
            Some(Pulse::Lost) => {
                self.run.tell_to_stop(Stop::Lost);
                Err(lost())
            }
            Some(Pulse::CancelRequested) => {
                self.run.tell_to_stop(Stop::Cancelled);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Stages content for [`Outcome::put`](super::Outcome::put).
    pub fn stage(&self, content: &[u8]) -> Result<Staged, HandlerError> {
        use std::io::Write as _;
        let mut writer = self.stage_writer()?;
        writer.write_all(content)?;
        Ok(writer.finish()?)
    }

    /// Stages content that comes bit by bit.
    pub fn stage_writer(&self) -> Result<StageWriter<'_>, FileError> {
        self.files.stage(&self.run.lease, self.next_stage_number())
    }

    pub(crate) fn next_stage_number(&self) -> usize {
        self.run.staged.fetch_add(1, Ordering::Relaxed)
    }

    /// What is at a path below the root now.
    pub fn look(&self, path: &str) -> Result<Sight, FileError> {
        self.files.look(path)
    }
}

pub(super) fn stopped_by(stop: Stop) -> HandlerError {
    match stop {
        Stop::Cancelled => HandlerError::new(Verdict::Cancelled, "job_canceled", "the job was cancelled"),
        Stop::TimedOut => timed_out(),
        Stop::Lost => lost(),
        Stop::ShutDown => HandlerError::released(),
    }
}

pub(crate) fn timed_out() -> HandlerError {
    HandlerError::retry("the attempt took longer than the job's timeout").with_code("job_timeout")
}

fn lost() -> HandlerError {
    HandlerError::retry("the job is no longer this worker's").with_code("lease_lost")
}
