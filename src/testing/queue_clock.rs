//! The clock of a queue in a test. It stands still while the application's goes on: that is the system's.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::{Clock, Millis, SystemClock};

/// Moved by the test. Besides, it catches up with the system's clock where a job was asked for at a time of that, and
/// only so far: the job would else be due some milliseconds after the `advance` that is meant for it. Not with every
/// job, and not all the time, or whether a delay is over would depend on how long a test takes.
pub(super) struct QueueClock(Mutex<State>);

struct State {
    now: Millis,
    /// By the test.
    advanced: Millis,
    /// Times to come that jobs were asked for at, each with the system's time when that was.
    asked: Vec<(Millis, Millis)>,
    /// Times come from this clock, so there is nothing to catch up with.
    reckoned_by: bool,
}

impl State {
    fn advance(&mut self, by: Millis) {
        self.now = self.now.saturating_add(by);
        self.advanced = self.advanced.saturating_add(by);
        self.catch_up();
    }

    fn told_of(&mut self, time: Millis, system: Millis) {
        if time > self.now && !self.reckoned_by {
            self.asked.push((time, system));
            self.catch_up();
        }
    }

    fn catch_up(&mut self) {
        let advanced = self.advanced;
        // The system's clock would have come to it by then, had the test advanced that.
        let is_due = |&(time, system): &(Millis, Millis)| time.saturating_sub(advanced) <= system;
        let latest = self.asked.iter().filter(|asked| is_due(asked)).map(|(time, _)| *time).max();
        self.now = latest.map_or(self.now, |latest| latest.max(self.now));
        self.asked.retain(|(time, _)| *time > self.now);
    }
}

impl QueueClock {
    pub(super) fn at(now: Millis) -> Self {
        Self(Mutex::new(State { now, advanced: 0, asked: Vec::new(), reckoned_by: false }))
    }

    pub(super) fn advance(&self, by: Millis) {
        self.lock().advance(by);
    }

    /// For those who reckon by this clock, from now on.
    pub(super) fn to_reckon_by(&self) -> Millis {
        let mut state = self.lock();
        state.reckoned_by = true;
        state.now
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for QueueClock {
    fn now(&self) -> Millis {
        self.lock().now
    }

    fn told_of(&self, time: Millis) {
        self.lock().told_of(time, SystemClock.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Millis = 86_400_000;

    fn clock() -> State {
        State { now: 1_000, advanced: 0, asked: Vec::new(), reckoned_by: false }
    }

    #[test]
    fn it_catches_up_with_times_of_the_system_s_clock_and_no_farther() {
        let mut clock = clock();
        clock.told_of(1_007, 1_010);
        assert_eq!(clock.now, 1_007, "that has come");
        clock.told_of(1_020 + DAY, 1_025);
        clock.told_of(1_040 + DAY, 1_030);
        assert_eq!(clock.now, 1_007, "these have not");
        clock.advance(DAY - 30);
        assert_eq!(clock.now, 1_007 + DAY - 30);
        clock.advance(30);
        assert_eq!(clock.now, 1_020 + DAY, "a day after it was asked for; the other is later than that");
        clock.advance(100);
        assert_eq!((clock.now, clock.asked.len()), (1_120 + DAY, 0));
    }

    #[test]
    fn it_catches_up_with_nothing_that_is_reckoned_by_itself() {
        let clock = QueueClock::at(1_000);
        let time = clock.to_reckon_by() + 7;
        clock.told_of(time);
        assert_eq!(clock.now(), 1_000, "however long ago the system's clock was there");
    }

    #[test]
    fn it_never_goes_back_and_ends_where_time_ends() {
        let mut clock = clock();
        clock.told_of(5, 2_000);
        assert_eq!(clock.now, 1_000);
        clock.told_of(Millis::MAX, 2_000);
        clock.advance(Millis::MAX);
        assert_eq!((clock.now, clock.asked.len()), (Millis::MAX, 0));
    }
}
