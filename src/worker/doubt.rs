//! How much is run while it is not certain that what comes of it can be recorded.
//! In a damaged database each outcome may be lost, and what was paid for it.

use std::time::Instant;

use super::trouble::Trouble;

#[derive(Debug, Default)]
pub(super) struct Doubt {
    /// Something that was run has been taken by the store, so what is claimed ahead is hardly run in vain.
    begun: bool,
    /// Outcomes that are kept because the database is damaged where they belong.
    kept: usize,
    /// What came of a job is lost: the wait until another is run to see whether that goes on.
    lost: Trouble,
}

impl Doubt {
    /// So many are kept now. True if there may be something to claim again.
    pub(super) fn kept(&mut self, kept: usize) -> bool {
        std::mem::replace(&mut self.kept, kept) > kept
    }

    /// Of those that are lost together, one counts.
    pub(super) fn lost(&mut self, now: Instant) {
        if self.lost.until(now).is_none() {
            self.lost.failed(now);
        }
    }

    /// The store has taken what was run; as an outcome, or as having come to nothing, which shows less.
    pub(super) fn taken(&mut self, as_an_outcome: bool) {
        self.begun = true;
        if as_an_outcome {
            self.lost.over();
        }
    }

    /// What is claimed now is to show whether anything can be recorded.
    pub(super) fn probes(&self) -> bool {
        self.lost.is_on()
    }

    /// When the next may be run to see.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        self.lost.until(now)
    }

    /// How many may be claimed, and none of them ahead; `None` if there is no reason to hold back. `free`: as many as
    /// are not at work here of those that may be. `probed`: the last that was run to see is at work.
    pub(super) fn place(&self, now: Instant, free: usize, probed: bool) -> Option<usize> {
        if self.lost.is_on() {
            let may_see = !probed && self.kept == 0 && self.lost.until(now).is_none();
            return Some(usize::from(may_see));
        }
        (self.kept > 0 || !self.begun).then_some(free)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn until_something_is_taken_no_more_is_claimed_than_is_run_at_once() {
        let (mut doubt, now) = (Doubt::default(), Instant::now());
        assert_eq!(doubt.place(now, 2, false), Some(2), "nothing is known yet");
        doubt.taken(false);
        assert_eq!(doubt.place(now, 2, false), None);
        assert!(!doubt.kept(1));
        assert_eq!(doubt.place(now, 1, false), Some(1));
        doubt.taken(true);
        assert_eq!(doubt.place(now, 1, false), Some(1), "one is still kept");
        assert!(doubt.kept(0));
        assert_eq!(doubt.place(now, 2, false), None);
    }

    #[test]
    fn after_a_loss_one_is_run_to_see_and_ever_more_rarely() {
        let (mut doubt, mut now) = (Doubt::default(), Instant::now());
        for wait in [1, 2, 4, 8, 16, 30, 30] {
            doubt.lost(now);
            doubt.lost(now);
            assert_eq!(doubt.place(now, 4, false), Some(0));
            assert_eq!(doubt.until(now), Some(now + Duration::from_secs(wait)));
            now += Duration::from_secs(wait);
            assert_eq!((doubt.place(now, 4, false), doubt.place(now, 4, true)), (Some(1), Some(0)));
            doubt.kept(1);
            assert_eq!(doubt.place(now, 4, false), Some(0), "what is kept may still show it");
            doubt.kept(0);
        }
        doubt.taken(false);
        assert!(doubt.probes());
        doubt.taken(true);
        assert_eq!((doubt.place(now, 4, false), doubt.probes()), (None, false));
    }
}
