//! What came of a scenario, in one line.

use std::fmt::{self, Write as _};
use std::time::Instant;

use crate::Lab;

/// What may be wrong after a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Acknowledged, and not there or not done.
    Lost,
    /// Two applied file effects of one job, or a handler that ran after its job
    /// was decided.
    Doubled,
    /// Something of a dead process that nobody cleans up.
    Litter,
    /// Anything else: a panic, an error that is none, a file outside the root.
    Wrong,
}

/// What came of one case: whether its fault happened, and what was wrong after it.
pub type Answer = (bool, Vec<(Trouble, String)>);

/// Counts and troubles of one scenario.
pub struct Report {
    name: String,
    seed: u64,
    started: Instant,
    /// Faults that were planned, and those that happened.
    pub sites: u64,
    pub fired: u64,
    /// How many have been added up here.
    scenarios: u64,
    /// Nothing was done that could have happened or not: what was looked at is told otherwise.
    pub only_looks: bool,
    /// Other counts worth telling.
    pub told: Vec<(&'static str, u64)>,
    troubles: Vec<(Trouble, String)>,
    /// Faults that did not happen.
    missed: Vec<String>,
    /// Troubles that other reports tell of.
    counted: Vec<Trouble>,
}

/// Faults of a scenario that may not have happened, as calls may be dropped: their number was that of most runs of
/// the census, and of none with a fault in it. Each is tried twenty times, and named.
const MOST_MISSED: u64 = 2;

impl Report {
    fn enough_happened(&self) -> bool {
        self.fired > 0 && self.fired + MOST_MISSED * self.scenarios >= self.sites
    }

    pub fn new(name: impl Into<String>, seed: u64) -> Self {
        let name = name.into();
        Self {
            name,
            seed,
            started: Instant::now(),
            sites: 0,
            fired: 0,
            scenarios: 1,
            only_looks: false,
            told: Vec::new(),
            troubles: Vec::new(),
            missed: Vec::new(),
            counted: Vec::new(),
        }
    }

    /// Takes note of something that must not be; `at` says where to look.
    pub fn trouble(&mut self, kind: Trouble, at: impl Into<String>) {
        self.troubles.push((kind, at.into()));
    }

    /// Counts what came of cases: whether the fault happened, and what was wrong
    /// after it.
    pub fn take<'n>(&mut self, names: impl IntoIterator<Item = &'n String>, answers: Vec<Result<Answer, String>>) {
        for (name, answer) in names.into_iter().zip(answers) {
            self.sites += 1;
            match answer {
                Ok((fired, troubles)) => {
                    self.fired += u64::from(fired);
                    if !fired {
                        self.missed.push(name.clone());
                    }
                    self.troubles.extend(troubles.into_iter().map(|(kind, words)| (kind, format!("{name}: {words}"))));
                }
                Err(panic) => self.troubles.push((Trouble::Wrong, format!("{name}: {panic}"))),
            }
        }
    }

    /// Less than this proves less than is claimed.
    pub fn at_least(&mut self, least: u64, count: u64, what: &str) {
        if count < least {
            self.trouble(Trouble::Wrong, format!("only {count} {what}, and there are to be {least} at least"));
        }
    }

    /// More than this, and what is dropped may be what counts.
    pub fn at_most(&mut self, most: u64, count: u64, what: &str) {
        if count > most {
            self.trouble(Trouble::Wrong, format!("{count} {what}, and there are to be {most} at most"));
        }
    }

    /// The sum of others, in a line of its own; `least` faults are to have happened.
    pub fn total(name: &str, lab: &Lab, least: u64, reports: &[Self]) -> Self {
        let mut total = Self::new(format!("{name} TOTAL"), lab.seed);
        for report in reports {
            total.started = total.started.min(report.started);
            total.sites += report.sites;
            total.fired += report.fired;
            total.scenarios += report.scenarios;
            for (what, count) in &report.told {
                match total.told.iter_mut().find(|(known, _)| known == what) {
                    Some((_, sum)) => *sum += count,
                    None => total.told.push((what, *count)),
                }
            }
            total.counted.extend(report.troubles.iter().map(|(kind, _)| *kind));
            total.counted.extend(&report.counted);
        }
        total.at_least(least, total.fired, "faults");
        total.printed()
    }

    /// Everything planned has happened, and nothing was wrong after it.
    pub fn is_good(&self) -> bool {
        let happened = self.only_looks || self.enough_happened();
        happened && self.troubles.is_empty() && self.counted.is_empty()
    }

    /// Prints its line and hands it on.
    pub fn printed(self) -> Self {
        println!("{self}");
        self
    }

    /// All that was wrong, for those who have to find out why.
    pub fn troubles(&self) -> String {
        let mut text = format!("{}:", self.name);
        if !self.only_looks && !self.enough_happened() {
            let _ = write!(text, "\n  {} of {} faults happened", self.fired, self.sites);
        }
        for site in self.missed.iter().take(50) {
            let _ = write!(text, "\n  did not happen: {site}");
        }
        for (kind, at) in self.troubles.iter().take(50) {
            let _ = write!(text, "\n  {kind:?}: {at}");
        }
        if self.troubles.len() > 50 {
            let _ = write!(text, "\n  and {} more", self.troubles.len() - 50);
        }
        text
    }

    fn count(&self, kind: Trouble) -> usize {
        let all = self.troubles.iter().map(|(found, _)| found).chain(&self.counted);
        all.filter(|found| **found == kind).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, seed, sites, fired, .. } = self;
        write!(f, "{name:<28} seed={seed}")?;
        if !self.only_looks {
            write!(f, " sites={sites} fired={fired}")?;
        }
        let [lost, doubled, litter, wrong] =
            [Trouble::Lost, Trouble::Doubled, Trouble::Litter, Trouble::Wrong].map(|kind| self.count(kind));
        write!(f, " lost={lost} doubled={doubled} litter={litter} wrong={wrong}")?;
        for (what, count) in &self.told {
            write!(f, " {what}={count}")?;
        }
        write!(f, " ({:.1} s)", self.started.elapsed().as_secs_f64())
    }
}
