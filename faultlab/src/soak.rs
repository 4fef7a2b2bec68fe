//! Eight processes and somebody who kills and stops them: enqueuers, committers
//! and workers on one queue, for as long as it takes, with a ledger outside the
//! database of what was asked for, what was acknowledged and what has run.
//!
//! ```text
//! 3 enqueuers   batches of jobs, one batch at a time; asked, then acknowledged
//! 2 committers  counters in JSON files, counted up by both, each with two jobs
//! 3 workers     two threads each; every handler notes that it has begun, and that
//!               of jobs without files (also those in lanes) that it has ended
//! torment       SIGKILL, or SIGSTOP and later SIGCONT, to whomever the seed says;
//!               who is killed starts again
//! verdict       when everybody has ended: the ledger beside the queue and the disk
//! ```
//!
//! A producer that was killed does not know what has become of its last request.
//! It submits that again, with the same ids or keys and the same content, and so
//! everything that was ever asked for is acknowledged in the end and must have had
//! exactly one effect. What a handler does outside of files may happen again, but
//! only if the attempt before was lost.
//!
//! All of it is in memory where there is such a filesystem: a killed process loses
//! nothing that it has written, on a disk or not. Stops are far shorter than a
//! lease, and than the wait for a database that is locked by whoever is stopped.

mod hands;
mod lanes;
mod ledger;
mod plan;
mod torment;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::Lab;
use crate::report::{Report, Trouble};
use crate::world::World;

use torment::{Pace, Torment};

/// What all processes of one soak know.
#[derive(Clone)]
struct Soak {
    /// The root is in it, and beside that the ledger.
    folder: PathBuf,
    seed: u64,
    /// Producers go on until they have asked for this much in all.
    jobs: u64,
}

/// Long enough for a disk that is busy with something else as well.
const SHORT: Pace = Pace { interval: 50..500, victims: 1, kills: 0, patience: Duration::from_secs(240) };

/// Several at a time, and more often: 5,000 kills in a quarter of an hour. However many
/// jobs there are to be, producers go on until there were as many kills.
const FULL: Pace = Pace { interval: 50..200, victims: 3, kills: 5_000, patience: Duration::from_secs(900) };

/// What the full form is to have of them, however it is paced.
const LEAST_KILLS: u64 = 5_000;

pub fn run(lab: &Lab, jobs: Option<u64>, kills: Option<u64>) -> Vec<Report> {
    if !"soak".contains(&lab.only) {
        return Vec::new();
    }
    let world = World::new();
    let (jobs, pace) = match (lab.short, jobs) {
        (true, jobs) => (jobs.unwrap_or(50_000), SHORT),
        (false, None) => (50_000, FULL),
        // As many as are wanted take as long as they take.
        (false, Some(jobs)) => (jobs, Pace { patience: Duration::from_secs(900 + jobs / 50), ..FULL }),
    };
    let pace = Pace { kills: kills.unwrap_or(pace.kills), ..pace };
    let soak = Soak { folder: world.outside(""), seed: lab.seed, jobs };
    let mut report = Report::new("soak", lab.seed);
    let mut torment = Torment::new(&soak, pace);
    let tormented = torment.run(&mut report);
    if !lab.short && kills.is_none() {
        report.at_least(LEAST_KILLS, torment.kills(), "kills");
    }
    // Whoever has not ended leaves work undone, which says nothing.
    if tormented && torment::drained(&soak, &mut report) {
        verdict::judge(&soak, &world, &mut report);
    }
    for trouble in ledger::read(&soak, ledger::TROUBLES) {
        report.trouble(Trouble::Wrong, trouble);
    }
    vec![report.printed()]
}

/// This process as one of the eight, if it was started as that.
pub fn hand() -> Option<ExitCode> {
    hands::of_these_arguments()
}
