//! Ends that the store does not take now, and when they are tried again.

use std::time::{Duration, Instant};

use super::execute::Finished;
use super::trouble::Trouble;

/// How long a decision waits for a path that another job is at work on.
const BUSY_PATH: Duration = Duration::from_millis(50);

/// The longest wait between two tries of what is kept for some seconds.
const LONGEST: Duration = Duration::from_secs(4);

/// Of those that are due; no more, so that all of them fit into a round.
const AT_ONCE: usize = 64;

#[derive(Default)]
pub(super) struct Postponed {
    /// In the next round: what they wait for passes.
    soon: Vec<Finished>,
    /// The database is damaged where they are to be recorded: nothing that the jobs could be blamed for.
    kept: Damaged,
    /// The same for too long: tried more and more rarely, and nothing waits for them.
    aside: Damaged,
    /// One of those was taken after all.
    healed: bool,
}

/// Those that wait together.
#[derive(Default)]
struct Damaged {
    ends: Vec<Finished>,
    trouble: Trouble,
}

impl Postponed {
    pub(super) fn soon(&mut self, end: Finished) {
        self.soon.push(end);
    }

    /// How long it waits, if that is to be told: of those that wait together it is told once.
    pub(super) fn keep(&mut self, end: Finished, now: Instant) -> Option<Duration> {
        self.kept.add(end, now, LONGEST)
    }

    /// The same.
    pub(super) fn set_aside(&mut self, end: Finished, now: Instant) -> Option<Duration> {
        self.aside.add(end, now, Duration::MAX)
    }

    /// When there is something to do again; `None` if nothing waits.
    pub(super) fn until(&self, now: Instant, hurried: bool) -> Option<Instant> {
        let next = now + BUSY_PATH;
        let damaged = [&self.kept, &self.aside].into_iter().filter(|waiting| !waiting.ends.is_empty());
        let damaged = damaged.map(|waiting| if hurried { next } else { waiting.trouble.until(now).unwrap_or(now) });
        damaged.chain((!self.soon.is_empty()).then_some(next)).min()
    }

    pub(super) fn take_soon(&mut self) -> Vec<Finished> {
        std::mem::take(&mut self.soon)
    }

    /// Those whose wait is over, or for which there is no more time.
    pub(super) fn take_damaged(&mut self, now: Instant, hurried: bool) -> Vec<Finished> {
        let mut due = self.kept.take(now, hurried, AT_ONCE);
        due.append(&mut self.aside.take(now, hurried, AT_ONCE - due.len()));
        due
    }

    /// All that were never taken.
    pub(super) fn give_up(&mut self) -> Vec<Finished> {
        let mut ends = std::mem::take(&mut self.kept.ends);
        ends.append(&mut self.aside.ends);
        ends
    }

    /// How many others are not run for, only to share their fate.
    pub(super) fn unrecorded(&self) -> usize {
        self.kept.ends.len()
    }

    /// One that was refused for damage is recorded.
    pub(super) fn healed(&mut self) {
        self.healed = true;
    }

    /// True if what was damaged is not any more, and that is news. That nothing is kept any more says nothing of it.
    pub(super) fn is_over(&mut self) -> bool {
        let over = self.healed && self.kept.ends.is_empty() && self.aside.ends.is_empty();
        if over {
            self.healed = false;
            self.kept.trouble.over();
            self.aside.trouble.over();
        }
        over
    }
}

impl Damaged {
    fn add(&mut self, end: Finished, now: Instant, longest: Duration) -> Option<Duration> {
        self.ends.push(end);
        self.trouble.until(now).is_none().then(|| self.trouble.failed_for(now, longest))
    }

    fn take(&mut self, now: Instant, hurried: bool, most: usize) -> Vec<Finished> {
        let due = hurried || self.trouble.until(now).is_none();
        let count = if due { self.ends.len().min(most) } else { 0 };
        self.ends.drain(..count).collect()
    }
}
