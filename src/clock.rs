//! Time, as an argument: the store never asks the system by itself, so that
//! tests own every clock jump.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01 UTC.
pub type Millis = i64;

/// Where the wall-clock time comes from.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Millis;
}

/// The system's clock.
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
/// ```
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows this time.
    #[must_use]
    pub fn at(now: Millis) -> Self {
        Self(AtomicI64::new(now))
    }

    /// Moves the clock, backwards if negative.
    pub fn advance(&self, by: Millis) {
        self.0.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        self.0.load(Ordering::SeqCst)
    }
}

/// A point in time as the tables keep it.
#[must_use]
pub fn millis(time: SystemTime) -> Millis {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Millis::try_from(after.as_millis()).unwrap_or(Millis::MAX),
        Err(before) => Millis::try_from(before.duration().as_millis()).map_or(Millis::MIN, |ms| -ms),
    }
}

/// A time of the tables as RFC 3339 UTC with milliseconds.
#[must_use]
pub fn rfc3339(time: Millis) -> String {
    // humantime covers 1970 to 9999; a damaged value must not panic a listing.
    let clamped = u64::try_from(time).unwrap_or(0).min(253_402_300_799_999);
    humantime::format_rfc3339_millis(UNIX_EPOCH + std::time::Duration::from_millis(clamped)).to_string()
}
