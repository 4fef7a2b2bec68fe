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

mod check;
mod cuts;
mod disk;
mod filesystem;
mod notes;
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
use crate::report::Report;
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
    Work { root: PathBuf, seed: u64, steps: usize },
    Check(check::Order),
}

pub fn run(lab: &Lab) -> Vec<Report> {
    if let Some(why) = trial::impossible() {
        skipped("power cuts", &why);
        return Vec::new();
    }
    let mut reports = Vec::new();
    for (kind, cuts) in [(Kind::Ext4, 1_000), (Kind::Xfs, 100), (Kind::Btrfs, 100)] {
        let name = format!("power-cut: {}", kind.name());
        if !name.contains(&lab.only) {
            continue;
        }
        if let Some(why) = kind.missing() {
            skipped(&format!("power cuts on {}", kind.name()), &why);
            continue;
        }
        let program = std::env::current_exe().expect("a program knows itself");
        let trial = Trial { name, kind, program, without: "", recordings: 2, cuts: if lab.short { 60 } else { cuts } };
        reports.push(trial.run(lab.seed).printed());
    }
    reports
}

/// Nobody shall take it for proved.
fn skipped(what: &str, why: &str) {
    eprintln!("!!! SKIPPED: {what} are NOT TESTED: {why} !!!");
}

/// Does what its input says, and ends.
pub fn process() -> ! {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).expect("a role is given");
    match serde_json::from_str(&line).expect("a role is given") {
        Role::Record(order) => {
            if let Err(why) = record::run(&order) {
                eprintln!("{why}");
                exit(1);
            }
        }
        Role::Work { root, seed, steps } => workload::run(&root, seed, steps),
        Role::Check(order) => {
            for (kind, at) in check::run(&order) {
                println!("{}", serde_json::json!([format!("{kind:?}"), at]));
            }
        }
    }
    exit(0);
}
