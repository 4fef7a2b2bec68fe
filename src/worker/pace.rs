//! How far to claim ahead. Claiming a job at a time costs a transaction each;
//! claiming many at once shares it, but a job that was claimed must not lie
//! about while another worker is idle. So only short jobs are claimed ahead, no
//! more of them than the threads get through in a moment.

use std::time::Duration;

/// What was claimed and has not started after this long goes back.
pub(super) const STALE: Duration = Duration::from_millis(20);
/// Ahead per thread, however short the jobs are.
const MOST: f64 = 64.0;
/// How much work may lie ready: half of what would be given back.
const READY: Duration = Duration::from_millis(10);

/// A running mean of how long attempts take.
#[derive(Debug, Default)]
pub(super) struct Pace {
    mean: Option<f64>,
}

impl Pace {
    pub(super) fn took(&mut self, time: Duration) {
        let time = time.as_secs_f64();
        self.mean = Some(self.mean.map_or(time, |mean| mean + (time - mean) / 8.0));
    }

    /// How many jobs may lie claimed ahead of `threads` threads. None before it
    /// is known how long they take.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 64")]
    pub(super) fn ahead(&self, threads: usize) -> usize {
        let Some(mean) = self.mean else { return 0 };
        let each = (READY.as_secs_f64() / mean.max(1e-9)).min(MOST);
        if each < 1.0 { 0 } else { each as usize * threads }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_jobs_are_claimed_ahead() {
        let mut pace = Pace::default();
        assert_eq!(pace.ahead(4), 0, "nothing is known yet");
        pace.took(Duration::from_micros(1));
        assert_eq!(pace.ahead(4), 256);
        for _ in 0..20 {
            pace.took(Duration::from_millis(2));
        }
        assert_eq!(pace.ahead(4), 5 * 4);
        pace.took(Duration::from_secs(1));
        assert_eq!(pace.ahead(4), 0);
    }
}
