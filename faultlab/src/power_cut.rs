//! Power cuts. A filesystem on a disk that notes every write and every flush; a
//! workload on it that notes what it was told; then, for many moments, the disk as
//! it may be after a cut: what was flushed, and any of the rest.
//!
//! ```text
//! record    served (FUSE) ◄─ loop device ◄─ ext4 ◄─ workload ─► notes
//! cuts      a moment, and which of the writes that nobody had flushed were kept
//! check     mount, look, open the queue, finish the work: is all of it there?
//! ```
//!
//! Recording and checking are done by processes with mounts of their own, which
//! are gone with them, whatever ends them.

mod altered;
mod check;
mod cuts;
mod disk;
mod filesystem;
mod notes;
mod processes;
mod record;
mod recovered;
mod served;
mod trial;
mod workload;

use std::io::BufRead as _;
use std::path::PathBuf;
use std::process::exit;

use serde::{Deserialize, Serialize};

use crate::Lab;
use crate::report::{Report, Trouble};
use filesystem::Kind;
use trial::Trial;

/// The command that takes a [`Role`] from its input.
const HIDDEN: &str = "power-cut-process";
/// Tells an altered program what it is to do without.
const WITHOUT: &str = "FAULTLAB_WITHOUT";

/// What a process of this part does.
#[derive(Serialize, Deserialize)]
enum Role {
    Record(record::Order),
    Work {
        root: PathBuf,
        seed: u64,
        steps: usize,
    },
    /// Opens the queue, and does what there is to do if it is to work as well.
    Recover {
        root: PathBuf,
        works: bool,
    },
    Check(check::Order),
}

pub fn run(lab: &Lab) -> Vec<Report> {
    if let Some(why) = processes::impossible() {
        crate::skipped::skipped("power cuts", &why);
        return Vec::new();
    }
    let here: Vec<Kind> = [Kind::Ext4, Kind::Xfs, Kind::Btrfs].into_iter().filter(|kind| is_here(*kind)).collect();
    let mut reports = proofs(lab, &here);
    reports.extend(controls(lab, &here));
    reports
}

/// The program as it is: nothing may be lost.
fn proofs(lab: &Lab, here: &[Kind]) -> Vec<Report> {
    let program = std::env::current_exe().expect("a program knows itself");
    let mut trials = Vec::new();
    for kind in here {
        let (recordings, cuts, least) = match (kind, lab.short) {
            (Kind::Ext4, false) => (6, 1_080, 1_000),
            (_, false) => (2, 120, 0),
            (Kind::Ext4, true) => (2, 120, 0),
            (_, true) => (1, 10, 0),
        };
        let name = format!("power-cut: {}", kind.name());
        let program = program.clone();
        trials.push(Trial { name, kind: *kind, program, without: "", recordings, cuts, recoveries: 0, least });
    }
    // On btrfs a folder that was not synced shows, as the controls do.
    for kind in [Kind::Ext4, Kind::Btrfs].into_iter().filter(|kind| here.contains(kind)) {
        let name = format!("power-cut: {}, recovery", kind.name());
        let (cuts, recoveries) = if lab.short { (20, 4) } else { (200, 20) };
        let program = program.clone();
        trials.push(Trial { name, kind, program, without: "", recordings: 1, cuts, recoveries, least: 0 });
    }
    tried(lab, trials)
}

/// Programs without something that is needed: losses must be found.
fn controls(lab: &Lab, here: &[Kind]) -> Vec<Report> {
    let mut wanted = vec![(altered::LOG_SYNC, Kind::Ext4, 20, 0), (altered::STAGE_SYNC, Kind::Ext4, 20, 0)];
    // On ext4 and xfs a sync of the database takes the new names of other files with it, nearly always.
    wanted.push((altered::FOLDER_SYNC, Kind::Btrfs, 40, 0));
    wanted.push((altered::FOLDER_SYNC, Kind::Btrfs, 24, 8));
    if !here.contains(&Kind::Btrfs) {
        crate::skipped::skipped(
            "power cuts without the folder fsync, which must lose something,",
            "only btrfs shows it",
        );
    }
    if !lab.short {
        wanted.extend([(altered::LOG_SYNC, Kind::Xfs, 20, 0), (altered::LOG_SYNC, Kind::Btrfs, 20, 0)]);
        wanted.extend([(altered::STAGE_SYNC, Kind::Xfs, 20, 0), (altered::STAGE_SYNC, Kind::Btrfs, 20, 0)]);
    }
    wanted.retain(|(without, kind, _, recoveries)| {
        here.contains(kind) && control(without, *kind, *recoveries).contains(&lab.only)
    });
    if wanted.is_empty() {
        return Vec::new();
    }
    let program = match altered::build() {
        Ok(program) => program,
        Err(why) => {
            let mut report = Report::new("control", lab.seed);
            report.trouble(Trouble::Wrong, format!("the altered program cannot be built: {why}"));
            return vec![report.printed()];
        }
    };
    let trials = wanted.into_iter().map(|(without, kind, cuts, recoveries)| {
        let name = control(without, kind, recoveries);
        Trial { name, kind, program: program.clone(), without, recordings: 1, cuts, recoveries, least: 0 }
    });
    tried(lab, trials)
}

fn control(without: &str, kind: Kind, recoveries: usize) -> String {
    let what = if recoveries > 0 { ", roll-forward" } else { "" };
    format!("control: no {without}, {}{what}", kind.name())
}

fn tried(lab: &Lab, trials: impl IntoIterator<Item = Trial>) -> Vec<Report> {
    let asked_for = trials.into_iter().filter(|trial| trial.name.contains(&lab.only));
    asked_for.map(|trial| trial.run(lab.seed).printed()).collect()
}

fn is_here(kind: Kind) -> bool {
    let missing = kind.missing();
    if let Some(why) = &missing {
        crate::skipped::skipped(&format!("power cuts on {}", kind.name()), why);
    }
    missing.is_none()
}

/// Does what its input says, and ends.
pub fn process() -> ! {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).expect("a role is given");
    match serde_json::from_str(&line).expect("a role is given") {
        Role::Record(order) => {
            record::run(&order).unwrap_or_else(|why| fail(&why));
        }
        Role::Work { root, seed, steps } => workload::run(&root, seed, steps),
        Role::Recover { root, works } => workload::recover(&root, works),
        Role::Check(order) => {
            let found = check::run(&order).unwrap_or_else(|why| fail(&why));
            for (kind, at) in found {
                println!("{}", serde_json::json!([format!("{kind:?}"), at]));
            }
        }
    }
    exit(0);
}

fn fail(why: &str) -> ! {
    eprintln!("{why}");
    exit(1);
}
