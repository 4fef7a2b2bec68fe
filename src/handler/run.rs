//! A job that a worker has: why it should stop, and how far it is.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::EventfdFlags;

use crate::store::{Lease, Progress};

/// Progress is written at most this often per job.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Why a handler should stop.
///
/// ```
/// use jobq::{Context, HandlerError, Stop};
/// fn one_more_page(ctx: &Context) -> Result<bool, HandlerError> {
///     if ctx.stop() == Some(Stop::TimedOut) {
///         ctx.checkpoint(&"as far as it came")?;
///     }
///     ctx.check()?; // whatever the reason, it is the error to return with
///     Ok(true)
/// }
/// # let _ = one_more_page;
/// ```
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
    /// Readable once there is a reason to stop, for those who wait for that and for
    /// other things; made when it is first asked for.
    stop_event: OnceLock<OwnedFd>,
    /// Something that its handler has started lives. Such a job is not given up: what
    /// lives could still do its work while another attempt does the same.
    pub(crate) has_program: AtomicBool,
    /// Its end has been told, by its thread or, if the worker has given it up,
    /// without it: what its handler still returns is dropped.
    pub(crate) abandoned: AtomicBool,
    pub(crate) staged: AtomicUsize,
    /// What its end keeps in memory until it is durable, in bytes.
    pub(crate) weight: AtomicUsize,
    progress: Mutex<Reported>,
    sent: Condvar,
    /// Async code that waits for a reason to stop.
    #[cfg(feature = "tokio")]
    nudged: tokio::sync::Notify,
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
            stop_event: OnceLock::new(),
            has_program: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            staged: AtomicUsize::new(0),
            weight: AtomicUsize::new(0),
            progress: Mutex::default(),
            sent: Condvar::new(),
            #[cfg(feature = "tokio")]
            nudged: tokio::sync::Notify::new(),
        }
    }

    /// The first reason stays.
    pub(crate) fn tell_to_stop(&self, stop: Stop) {
        let _ = self.stop.compare_exchange(0, stop as u8, Ordering::SeqCst, Ordering::SeqCst);
        if let Some(event) = self.stop_event.get() {
            let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
        }
        self.nudge();
    }

    /// Async code that waits for a reason to stop looks again.
    #[cfg_attr(not(feature = "tokio"), expect(clippy::unused_self, reason = "without async code nobody waits so"))]
    pub(crate) fn nudge(&self) {
        #[cfg(feature = "tokio")]
        self.nudged.notify_waiters();
    }

    /// Waits until there is one.
    #[cfg(feature = "tokio")]
    pub(crate) async fn until_some<T>(&self, reason: impl Fn() -> Option<T>) -> T {
        loop {
            // Made before the look: it hears of every nudge since.
            let nudged = self.nudged.notified();
            if let Some(reason) = reason() {
                return reason;
            }
            nudged.await;
        }
    }

    /// Whoever has it must look at [`stop`](Run::stop) once more: a reason from before
    /// is not told by it.
    pub(crate) fn stop_event(&self) -> io::Result<&OwnedFd> {
        if let Some(event) = self.stop_event.get() {
            return Ok(event);
        }
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(self.stop_event.get_or_init(|| event))
    }

    pub(crate) fn stop(&self) -> Option<Stop> {
        match self.stop.load(Ordering::SeqCst) {
            1 => Some(Stop::Cancelled),
            2 => Some(Stop::TimedOut),
            3 => Some(Stop::Lost),
            4 => Some(Stop::ShutDown),
            _ => None,
        }
    }

    /// The newest progress takes the place of one that was not written.
    pub(crate) fn report(&self, progress: Progress) {
        self.reported().unwritten = Some(progress);
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
