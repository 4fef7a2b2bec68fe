//! Monotonic time, as an argument.

use std::time::Instant;

use super::wake::Bell;

/// Where a worker's time comes from and how it passes.
pub trait Ticks: Send + Sync {
    /// The time now.
    fn now(&self) -> Instant;

    /// Waits until the bell rings or the time has come.
    fn wait(&self, bell: &Bell, until: Instant);
}

/// The system's monotonic clock.
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
