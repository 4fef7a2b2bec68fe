//! What came of all of them, in one line.

use std::fmt;
use std::ops::AddAssign;

#[derive(Default)]
pub struct Tally {
    /// What was to be tried, and what was.
    pub sites: usize,
    pub fired: usize,
    /// Good jobs that did not complete, or did so twice.
    pub lost: usize,
    pub doubled: usize,
    /// Something was left inside, or changed outside.
    pub litter: usize,
    pub escapes: usize,
    pub panics: usize,
    /// All that was wrong, in words.
    pub wrong: Vec<String>,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.sites += other.sites;
        self.fired += other.fired;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.litter += other.litter;
        self.escapes += other.escapes;
        self.panics += other.panics;
        self.wrong.extend(other.wrong);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sites, fired, lost, doubled, litter, escapes, panics, .. } = self;
        write!(f, "hostile seed=0 sites={sites} fired={fired} lost={lost} doubled={doubled} litter={litter}")?;
        write!(f, " escapes={escapes} panics={panics}")
    }
}
