//! How long to leave the database alone after it failed.

use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// Waits of 1 s, doubling up to 30 s; back to the start after one success.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    wait: Option<Duration>,
    until: Option<Instant>,
}

impl Trouble {
    /// It failed; returns how long to wait.
    pub(super) fn failed(&mut self, now: Instant) -> Duration {
        self.failed_for(now, LONGEST)
    }

    /// The same, with a bound: who holds leases has to give signs of life.
    pub(super) fn failed_for(&mut self, now: Instant, at_most: Duration) -> Duration {
        let wait = self.wait.map_or(FIRST, |last| last * 2).min(LONGEST).min(at_most);
        self.wait = Some(wait);
        self.until = Some(now + wait);
        wait
    }

    /// It worked. True if that is news.
    pub(super) fn over(&mut self) -> bool {
        self.until = None;
        self.wait.take().is_some()
    }

    /// It failed the last time.
    pub(super) fn is_on(&self) -> bool {
        self.wait.is_some()
    }

    /// When to try again, if that is not now.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_to_half_a_minute_and_starts_over_after_a_success() {
        let (mut trouble, now) = (Trouble::default(), Instant::now());
        let waits: Vec<u64> = (0..7).map(|_| trouble.failed(now).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(trouble.until(now), Some(now + LONGEST));
        assert!(trouble.over() && !trouble.over());
        assert_eq!((trouble.until(now), trouble.failed(now)), (None, FIRST));
        let short = Duration::from_millis(200);
        assert_eq!(trouble.failed_for(now, short), short);
    }
}
