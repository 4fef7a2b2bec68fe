//! Takes away, one at a time, what a promise rests on, and shows that a test notices.
//!
//! Each is a small change of the text, made in a copy of the sources with a target
//! folder of its own. It must fit exactly one place and compile, and the test that is
//! named for it, green before, must turn red. A sync of a file or folder anywhere in
//! `src` without such a change is a failure, too, so that a new one gets its test.

mod bench;
mod syncs;
mod table;

use std::collections::BTreeSet;

use self::bench::{Bench, Caught};
use self::table::{MUTANTS, Mutant, Test};
use crate::Lab;
use crate::report::{Report, Trouble};

pub fn run(lab: &Lab) -> Vec<Report> {
    let mut report = Report::new("mutants", 0);
    let bench = Bench::set_up();
    for problem in syncs::without_mutant(&bench) {
        report.trouble(Trouble::Wrong, problem);
    }
    // All of them must fit, also those that are not tried now: the sources move on.
    let mut fitting = 0;
    for mutant in MUTANTS {
        match bench.fits(mutant) {
            Ok(()) => fitting += 1,
            Err(problem) => report.trouble(Trouble::Wrong, problem),
        }
    }
    report.told.push(("fitted", fitting));
    if lab.short {
        // To build and try one takes as long as all that CI does elsewhere in a minute: none is tried.
        report.at_least(MUTANTS.len() as u64, fitting, "fit");
        report.only_looks = true;
        return vec![report.printed()];
    }
    let chosen: Vec<&Mutant> = MUTANTS.iter().filter(|mutant| mutant.name.contains(&lab.only)).collect();
    report.sites = chosen.len() as u64;
    let (mut survived, mut hanging) = (0, 0);
    let tests: BTreeSet<Test> = chosen.iter().map(|mutant| mutant.test).collect();
    for test in tests {
        // A test that is red anyway notices nothing.
        let green = match bench.is_green(test) {
            Ok(took) => took,
            Err(problem) => {
                report.trouble(Trouble::Wrong, format!("{test} is red before anything is changed: {problem}"));
                continue;
            }
        };
        for mutant in chosen.iter().filter(|mutant| mutant.test == test) {
            match bench.caught(mutant, green) {
                Ok(Caught::Red) => println!("mutant {}: caught by {test}", mutant.name),
                Ok(Caught::Hanging) => {
                    hanging += 1;
                    println!("mutant {}: caught by hanging, by {test}", mutant.name);
                }
                Ok(Caught::Survived) => {
                    survived += 1;
                    println!("mutant {}: SURVIVED {test}", mutant.name);
                    report.trouble(Trouble::Wrong, format!("{} survived {test}", mutant.name));
                }
                Err(problem) => {
                    report.trouble(Trouble::Wrong, format!("{}: {problem}", mutant.name));
                    continue;
                }
            }
            report.fired += 1;
        }
    }
    report.told.extend([("survived", survived), ("hanging", hanging)]);
    vec![report.printed()]
}
