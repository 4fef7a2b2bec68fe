//! What a handler sees of its job while it runs, and how it is told to stop.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{HandlerError, Verdict};
use crate::effects::{FileError, Files, Sight, StageWriter, Staged};
use crate::job::Job;
use crate::queue::Queue;
use crate::store::{Beat, Lease, Progress, Pulse, Store as _};

/// Progress is written at most this often per job.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Why a handler should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stop {
    /// Someone cancelled the job.
    Cancelled = 1,
    /// The attempt has taken as long as it may.
    TimedOut,
    /// The job is no longer this worker's; nothing it does will count.
    Lost,
    /// The worker was told to stop and will not wait.
    ShutDown,
}

/// A claimed job in this process, shared by those who run it and those who
/// watch over it.
pub(crate) struct Run {
    pub(crate) lease: Lease,
    stop: AtomicU8,
    /// Its end has been told, by its thread or, if the worker has given it up,
    /// without it: what its handler still returns is dropped.
    pub(crate) abandoned: AtomicBool,
    pub(crate) staged: AtomicUsize,
    /// What its end keeps in memory until it is durable, in bytes.
    pub(crate) weight: AtomicUsize,
    progress: Mutex<Reported>,
    sent: Condvar,
}

#[derive(Default)]
struct Reported {
    unwritten: Option<Progress>,
    written_at: Option<Instant>,
    /// Someone is writing it; whether that works is not known yet.
    on_its_way: bool,
}

/// Progress on its way to the store. It goes back unless it is said to be
/// written, and whoever brings the job to its end waits for that.
pub(crate) struct Sending<'r> {
    run: &'r Run,
    progress: Option<Progress>,
}

impl Sending<'_> {
    pub(crate) fn progress(&self) -> Option<Progress> {
        self.progress.clone()
    }

    pub(crate) fn written(mut self) {
        self.progress = None;
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        let mut reported = self.run.reported();
        reported.on_its_way = false;
        if let Some(progress) = self.progress.take() {
            reported.unwritten.get_or_insert(progress);
        }
        self.run.sent.notify_all();
    }
}

impl Run {
    pub(crate) fn new(lease: Lease) -> Self {
        Self {
            lease,
            stop: AtomicU8::new(0),
            abandoned: AtomicBool::new(false),
            staged: AtomicUsize::new(0),
            weight: AtomicUsize::new(0),
            progress: Mutex::default(),
            sent: Condvar::new(),
        }
    }

    /// The first reason stays.
    pub(crate) fn tell_to_stop(&self, stop: Stop) {
        let _ = self.stop.compare_exchange(0, stop as u8, Ordering::AcqRel, Ordering::Acquire);
    }

    pub(crate) fn stop(&self) -> Option<Stop> {
        match self.stop.load(Ordering::Acquire) {
            1 => Some(Stop::Cancelled),
            2 => Some(Stop::TimedOut),
            3 => Some(Stop::Lost),
            4 => Some(Stop::ShutDown),
            _ => None,
        }
    }

    /// Progress that may be written now: the newest that was not.
    pub(crate) fn send_progress(&self) -> Option<Sending<'_>> {
        let progress = self.take_progress(false)?;
        Some(Sending { run: self, progress: Some(progress) })
    }

    /// `at_once`: also if the last one is recent, because it is the last chance.
    /// What is on its way then is waited for: it may come back, and it must not
    /// come after the job's end.
    pub(crate) fn take_progress(&self, at_once: bool) -> Option<Progress> {
        let mut reported = self.reported();
        if at_once {
            let sent = self.sent.wait_while(reported, |reported| reported.on_its_way);
            reported = sent.unwrap_or_else(PoisonError::into_inner);
        } else if reported.on_its_way || reported.written_at.is_some_and(|at| at.elapsed() < PROGRESS_EVERY) {
            return None;
        }
        let progress = reported.unwritten.take()?;
        reported.written_at = Some(Instant::now());
        reported.on_its_way = !at_once;
        Some(progress)
    }

    /// Progress that could not be written, unless there is newer by now.
    pub(crate) fn put_back_progress(&self, progress: Progress) {
        self.reported().unwritten.get_or_insert(progress);
    }

    fn reported(&self) -> MutexGuard<'_, Reported> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When progress that waits may be written.
    pub(crate) fn progress_due(&self) -> Option<Instant> {
        let reported = self.reported();
        reported.unwritten.as_ref()?;
        Some(reported.written_at.map_or_else(Instant::now, |at| at + PROGRESS_EVERY))
    }
}

/// A job's surroundings while it runs.
pub struct Context {
    pub(crate) run: Arc<Run>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) files: Arc<Files>,
    pub(crate) shutting_down: Arc<AtomicBool>,
    pub(crate) attempt: u32,
    pub(crate) correlation_id: Option<String>,
    pub(crate) checkpoint: Option<String>,
}

impl Context {
    pub(crate) fn of(
        job: &Job,
        run: Arc<Run>,
        queue: Arc<Queue>,
        files: Arc<Files>,
        shutting_down: Arc<AtomicBool>,
    ) -> Self {
        Self {
            run,
            queue,
            files,
            shutting_down,
            attempt: job.attempts,
            correlation_id: job.correlation_id.clone(),
            checkpoint: job.checkpoint.as_ref().map(|text| text.as_str().to_owned()),
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
            Some(Stop::Cancelled) => {
                Err(HandlerError::new(Verdict::Cancelled, "job_canceled", "the job was cancelled"))
            }
            Some(Stop::TimedOut) => Err(timed_out()),
            Some(Stop::Lost) => Err(lost()),
            Some(Stop::ShutDown) => Err(HandlerError::released()),
            None if self.is_shutting_down() => Err(HandlerError::released()),
            None => Ok(()),
        }
    }

    /// Tells people how far it is. Written at most once a second; the last one
    /// is never lost.
    pub fn progress(&self, percent: u8, message: impl Into<String>) {
        let message = Some(message.into()).filter(|text| !text.is_empty());
        let progress = Progress { percent: percent.min(100), message };
        self.run.reported().unwritten = Some(progress);
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
        self.files.stage(&self.run.lease, self.run.staged.fetch_add(1, Ordering::Relaxed))
    }

    /// What is at a path below the root now.
    pub fn look(&self, path: &str) -> Result<Sight, FileError> {
        self.files.look(path)
    }
}

pub(crate) fn timed_out() -> HandlerError {
    HandlerError::retry("the attempt took longer than the job's timeout").with_code("job_timeout")
}

fn lost() -> HandlerError {
    HandlerError::retry("the job is no longer this worker's").with_code("lease_lost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_progress_waits_for_what_is_on_its_way() {
        let run = Arc::new(Run::new(Lease { id: "j".into(), seq: 1, token: 1 }));
        let progress = |percent| Some(Progress { percent, message: None });
        for (percent, is_written) in [(1, false), (2, true)] {
            *run.reported() = Reported { unwritten: progress(percent), ..Reported::default() };
            let sending = run.send_progress().unwrap();
            assert!(run.send_progress().is_none(), "one at a time");
            let finisher = std::thread::spawn({
                let run = Arc::clone(&run);
                move || run.take_progress(true)
            });
            // That it does not end cannot be awaited; without the wait it ends long before this.
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(1));
                assert!(!finisher.is_finished(), "it has not waited");
            }
            if is_written {
                sending.written();
            } else {
                drop(sending);
            }
            assert_eq!(finisher.join().unwrap(), if is_written { None } else { progress(percent) });
        }
    }
}
