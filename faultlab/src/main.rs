//! Faults on purpose: kills at every system call, errors, power cuts, a soak,
//! damage. Each part prints one line per scenario and fails if anything that was
//! acknowledged is lost, done twice, or left lying about.
//!
//! ```text
//! cargo run -p faultlab -- all            everything (docs/guarantees.md has its output)
//! cargo run -p faultlab -- all --short    what CI runs
//! cargo run -p faultlab -- kill --only commit --seed 7
//! ```

mod aftermath;
mod by_hand;
mod cases;
mod census;
mod child;
mod damage;
mod errors;
mod jobs;
mod kill;
mod kill_twice;
mod mutants;
mod place;
mod power_cut;
mod report;
mod said;
mod scenarios;
#[path = "../../tests/support/skipped.rs"]
mod skipped;
mod snapshot;
mod soak;
mod starts;
#[path = "../../tests/support/strace.rs"]
mod strace;
mod threads;
mod unsynced;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use report::Report;

#[derive(Parser)]
#[command(about = "Kills, breaks and starves jobq, and counts what is lost")]
struct Arguments {
    #[command(subcommand)]
    part: Part,
    #[command(flatten)]
    lab: Lab,
}

/// How a part is run.
#[derive(clap::Args, Clone)]
pub struct Lab {
    /// What randomness starts from; the line of a failure names it
    #[arg(long, global = true, default_value_t = fastrand::u64(..1_000_000))]
    pub seed: u64,
    /// The part that CI runs
    #[arg(long, global = true)]
    pub short: bool,
    /// Only scenarios whose name contains this
    #[arg(long, global = true, default_value = "")]
    pub only: String,
}

#[derive(Subcommand, Clone, PartialEq)]
enum Part {
    /// All of them, one after the other
    All,
    /// Kill at every system call that changes a file, in nine scenarios
    Kill,
    /// Kill what comes after a kill, at every call of it
    KillTwice,
    /// Let calls fail, once and from then on
    Errors,
    /// Cuts the power of a disk, again and again
    PowerCut,
    /// Eight processes on one queue, killed and stopped at random
    Soak {
        /// How many jobs there are to be at least
        #[arg(long)]
        jobs: Option<u64>,
        /// How many are to be killed at least
        #[arg(long)]
        kills: Option<u64>,
    },
    /// Flipped bits, lost ends and exchanged blocks of all that jobq keeps
    Damage,
    /// Takes away what promises rest on, one thing at a time: a test must notice
    Mutants,
    /// The process to which faults happen
    #[command(hide = true)]
    Child { deed: String, root: PathBuf },
    /// A process of `power-cut`
    #[command(hide = true)]
    PowerCutProcess,
}

const PARTS: &[Part] = &[
    Part::Kill,
    Part::KillTwice,
    Part::Errors,
    Part::PowerCut,
    Part::Soak { jobs: None, kills: None },
    Part::Damage,
    Part::Mutants,
];

fn main() -> ExitCode {
    if let Some(code) = soak::hand().or_else(damage::as_hand) {
        return code;
    }
    let Arguments { part, lab } = Arguments::parse();
    match &part {
        Part::Child { deed, root } => return child::run(deed, root),
        Part::PowerCutProcess => power_cut::process(),
        _ => {}
    }
    place::sweep();
    let parts = if part == Part::All { PARTS } else { &[part] };
    let reports: Vec<Report> = parts.iter().flat_map(|part| part.run(&lab)).collect();
    for report in reports.iter().filter(|report| !report.is_good()) {
        eprintln!("{}", report.troubles());
    }
    if !reports.is_empty() && reports.iter().all(Report::is_good) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Part {
    /// Each report has been printed when this returns.
    fn run(&self, lab: &Lab) -> Vec<Report> {
        match self {
            Part::Kill => with_strace("kill", lab, kill::run),
            Part::KillTwice => with_strace("kill-twice", lab, kill_twice::run),
            Part::Errors => with_strace("errors", lab, errors::run),
            Part::PowerCut => power_cut::run(lab),
            Part::Soak { jobs, kills } => soak::run(lab, *jobs, *kills),
            Part::Damage => damage::run(lab),
            Part::Mutants => mutants::run(lab),
            Part::All | Part::Child { .. } | Part::PowerCutProcess => unreachable!("they are no parts"),
        }
    }
}

/// A part that cannot be run is never left out without a word.
fn with_strace(part: &str, lab: &Lab, run: impl Fn(&Lab) -> Vec<Report>) -> Vec<Report> {
    if strace::is_installed() {
        return run(lab);
    }
    let mut report = Report::new(part, lab.seed);
    let words = "!!! strace is not installed: NOTHING IS PROVED (as root: apt-get install strace) !!!";
    report.trouble(report::Trouble::Wrong, words);
    vec![report.printed()]
}
