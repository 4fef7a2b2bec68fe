//! Monotonic time, as an argument.

use std::time::Instant;

use super::wake::Bell;

/// Where a worker's time comes from and how it passes.
///
/// ```
/// use std::time::{Duration, Instant};
/// use jobq::worker::{Bell, SystemTicks, Ticks};
/// /// Time that passes as it does, told of to somebody.
/// struct Logged;
/// impl Ticks for Logged {
///     fn now(&self) -> Instant {
///         SystemTicks.now()
///     }
///     fn wait(&self, bell: &Bell, until: Instant) {
///         println!("nothing to do for {:?}", until.saturating_duration_since(self.now()));
///         SystemTicks.wait(bell, until);
///     }
/// }
/// let bell = Bell::default();
/// bell.ring();
/// Logged.wait(&bell, Instant::now() + Duration::from_secs(3600)); // returns at once: it has rung
/// ```
pub trait Ticks: Send + Sync {
    /// The time now.
    fn now(&self) -> Instant;

    /// Waits until the bell rings or the time has come.
    fn wait(&self, bell: &Bell, until: Instant);
}

/// The system's monotonic clock.
///
/// ```
/// use jobq::worker::{SystemTicks, Ticks};
/// assert!(SystemTicks.now() <= std::time::Instant::now());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemTicks;

impl Ticks for SystemTicks {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wait(&self, bell: &Bell, until: Instant) {
        bell.wait(until);
    }
}
