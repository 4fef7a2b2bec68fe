//! How long to wait after a failed attempt.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Exponential backoff: `base × 2ⁿ`, never more than `max`, with jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// The wait after the first failure, in milliseconds.
    pub base_ms: u64,
    /// The longest wait, in milliseconds.
    pub max_ms: u64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base_ms: 1_000, max_ms: 30_000 }
    }
}

impl Backoff {
    /// The wait after `attempt` failed attempts (1 for the first). `jitter` in
    /// `0.0..1.0` takes up to half of it away, so that jobs that failed
    /// together do not come back together.
    ///
    /// ```
    /// use jobq::Backoff;
    /// use std::time::Duration;
    /// let backoff = Backoff::default();
    /// assert_eq!(backoff.delay(1, 0.0), Duration::from_secs(1));
    /// assert_eq!(backoff.delay(4, 0.0), Duration::from_secs(8));
    /// assert_eq!(backoff.delay(60, 0.0), Duration::from_secs(30));
    /// ```
    #[must_use]
    pub fn delay(&self, attempt: u32, jitter: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(63);
        let full = self.base_ms.saturating_mul(1_u64 << doublings).min(self.max_ms);
        Duration::from_millis(full).mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0)
    }
}
