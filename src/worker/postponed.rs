//! Ends that the store does not take now, and when they are tried again.

use std::time::{Duration, Instant};

use super::execute::Finished;
use super::trouble::Trouble;

/// How long a decision waits for a path that another job is at work on.
const BUSY_PATH: Duration = Duration::from_millis(50);

/// How often an outcome is tried to be recorded where the database is damaged, and the longest wait between: some 15
/// seconds. What was misread may be read well then. What is broken on the disk is not mended while a worker has it open,
/// and others wait for the slot and for the sign of life that goes with it.
const MOST_TRIES: u32 = 6;
const LONGEST: Duration = Duration::from_secs(4);

/// Of those that are due; no more, so that all of them fit into a round.
const AT_ONCE: usize = 64;

#[derive(Default)]
pub(super) struct Postponed {
    /// In the next round: what they wait for passes.
    soon: Vec<Finished>,
    /// The database is damaged where they are to be recorded: nothing that the jobs could be blamed for.
    damaged: Vec<Finished>,
    trouble: Trouble,
}

impl Postponed {
    pub(super) fn soon(&mut self, end: Finished) {
        self.soon.push(end);
    }

    /// Returns it if it was tried often enough.
    pub(super) fn damaged(&mut self, mut end: Finished) -> Option<Finished> {
        end.tries += 1;
        if end.tries >= MOST_TRIES {
            return Some(end);
        }
        self.damaged.push(end);
        None
    }

    /// How long these wait, if that is to be told: of those that wait together it is told once.
    pub(super) fn begin_to_wait(&mut self, now: Instant) -> Option<Duration> {
        self.trouble.until(now).is_none().then(|| self.trouble.failed_for(now, LONGEST))
    }

    /// When there is something to do again; `None` if nothing waits.
    pub(super) fn until(&self, now: Instant, hurried: bool) -> Option<Instant> {
        let next = now + BUSY_PATH;
        let damaged = if hurried { next } else { self.trouble.until(now).unwrap_or(now) };
        let waits = [(&self.soon, next), (&self.damaged, damaged)];
        waits.into_iter().filter(|(ends, _)| !ends.is_empty()).map(|(_, until)| until).min()
    }

    pub(super) fn take_soon(&mut self) -> Vec<Finished> {
        std::mem::take(&mut self.soon)
    }

    /// Those whose wait is over, or for which there is no more time.
    pub(super) fn take_damaged(&mut self, now: Instant, hurried: bool) -> Vec<Finished> {
        let due = hurried || self.trouble.until(now).is_none();
        let count = if due { self.damaged.len().min(AT_ONCE) } else { 0 };
        self.damaged.drain(..count).collect()
    }

    /// How many wait until the database is well.
    pub(super) fn unrecorded(&self) -> usize {
        self.damaged.len()
    }

    /// True if what was damaged is not any more, and that is news.
    pub(super) fn is_over(&mut self) -> bool {
        self.damaged.is_empty() && self.trouble.over()
    }
}
