//! Time, as an argument: the store never asks the system by itself, so that
//! tests own every clock jump.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01 UTC.
pub type Millis = i64;

/// Where the wall-clock time comes from.
///
/// ```
/// use jobq::clock::{Clock, Millis};
/// struct NewYear;
/// impl Clock for NewYear {
///     fn now(&self) -> Millis {
///         1_767_225_600_000
///     }
/// }
/// # let folder = tempfile::tempdir().unwrap();
/// let options = jobq::QueueOptions::in_folder(folder.path()).create(true).clock(std::sync::Arc::new(NewYear));
/// let queue = options.open().unwrap();
/// let id = queue.enqueue(jobq::NewJob::raw("send_mail", "{}")).unwrap().id;
/// assert_eq!(queue.get(&id).unwrap().created_at, NewYear.now());
/// ```
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Millis;

    /// A job is asked for at this time. For clocks of tests that stand still while the one
    /// that the time comes from goes on.
    #[doc(hidden)]
    fn told_of(&self, _time: Millis) {}
}

/// The system's clock.
///
/// ```
/// use jobq::clock::{Clock, SystemClock};
/// assert!(SystemClock.now() > 1_700_000_000_000);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        millis(SystemTime::now())
    }
}

/// A clock that moves only when told to.
///
/// ```
/// use jobq::clock::{Clock, ManualClock};
/// let clock = ManualClock::at(1_000);
/// clock.advance(500);
/// assert_eq!(clock.now(), 1_500);
/// clock.advance(i64::MAX);
/// assert_eq!(clock.now(), i64::MAX, "there is no time after that");
/// ```
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows this time.
    #[must_use]
    pub fn at(now: Millis) -> Self {
        Self(AtomicI64::new(now))
    }

    /// Moves the clock, backwards if negative, as far as there is time.
    pub fn advance(&self, by: Millis) {
        let moved = |now: Millis| Some(now.saturating_add(by));
        // It never refuses.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, moved);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        self.0.load(Ordering::SeqCst)
    }
}

/// A point in time as the tables keep it.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// assert_eq!(jobq::clock::millis(UNIX_EPOCH + Duration::from_secs(2)), 2_000);
/// ```
#[must_use]
pub fn millis(time: SystemTime) -> Millis {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Millis::try_from(after.as_millis()).unwrap_or(Millis::MAX),
        Err(before) => Millis::try_from(before.duration().as_millis()).map_or(Millis::MIN, |ms| -ms),
    }
}

/// A time of the tables as RFC 3339 UTC with milliseconds.
///
/// ```
/// assert_eq!(jobq::clock::rfc3339(1_767_225_600_000), "2026-01-01T00:00:00.000Z");
/// ```
#[must_use]
pub fn rfc3339(time: Millis) -> String {
    // humantime covers 1970 to 9999; a damaged value must not panic a listing.
    let clamped = u64::try_from(time).unwrap_or(0).min(253_402_300_799_999);
    humantime::format_rfc3339_millis(UNIX_EPOCH + std::time::Duration::from_millis(clamped)).to_string()
}
