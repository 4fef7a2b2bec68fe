//! Killed, and then the one who comes after it is killed as well: at every call
//! that changes a file, in each state that a first death can leave behind.

use std::collections::BTreeMap;

use crate::Lab;
use crate::aftermath::Case;
use crate::cases;
use crate::census::{Census, MOST_DROPPED, shape, steady};
use crate::kill::{again_if_missed, census, census_of, killed_at};
use crate::report::{Report, Trouble};
use crate::scenarios::{ALL, Scenario};
use crate::strace::Call;
use crate::world::walk;

/// First deaths of a scenario in the short form, by the seed; the full form has
/// one for each state that they can leave.
const SHORT_FIRSTS: usize = 4;
/// Cases of a scenario at most, chosen by the seed.
const SHORT: usize = 50;
const FULL: usize = 250;

pub fn run(lab: &Lab) -> Vec<Report> {
    let wanted = ALL.iter().filter(|scenario| scenario.name.contains(&lab.only));
    let mut reports: Vec<Report> = wanted.map(|scenario| scenario_of(scenario, lab)).collect();
    reports.push(Report::total("kill-twice", lab, 0, &reports));
    reports
}

fn scenario_of(scenario: &Scenario, lab: &Lab) -> Report {
    let mut report = Report::new(format!("kill-twice {}", scenario.name), lab.seed);
    let mut random = fastrand::Rng::with_seed(lab.seed);
    let Planned { states, mut pairs, dropped } = match planned(scenario, lab, &mut random) {
        Ok(planned) => planned,
        Err(why) => {
            report.trouble(Trouble::Wrong, why);
            return report.printed();
        }
    };
    report.told = vec![("states", states), ("of", pairs.len() as u64), ("dropped", dropped)];
    // Each state has a recovery of its own, and the dead are looked at in the order of their names, which are random.
    report.at_most(MOST_DROPPED + pairs.len() as u64 / 20, dropped, "calls have no site");
    random.shuffle(&mut pairs);
    pairs.truncate(if lab.short { SHORT } else { FULL });
    let answers = cases::each(&pairs, |(first, second)| {
        again_if_missed(|| {
            let mut case = Case::new(scenario);
            let fired = killed_at(&mut case, scenario.name, first) && killed_at(&mut case, "recover", second);
            (fired, case.finish())
        })
    });
    let names: Vec<String> =
        pairs.iter().map(|(first, second)| format!("{} THEN {}", first.line, second.line)).collect();
    report.take(&names, answers);
    report.printed()
}

struct Planned {
    /// How many first deaths there are.
    states: u64,
    /// All pairs of a first and a second.
    pairs: Vec<(Call, Call)>,
    dropped: u64,
}

fn planned(scenario: &Scenario, lab: &Lab, random: &mut fastrand::Rng) -> Result<Planned, String> {
    let Census { mut sites, mut dropped, .. } = census(scenario)?;
    random.shuffle(&mut sites);
    if lab.short {
        sites.truncate(SHORT_FIRSTS);
    }
    let states = cases::each(&sites, |first| {
        let mut case = Case::new(scenario);
        killed_at(&mut case, scenario.name, first).then(|| state(&case))
    });
    let mut firsts: BTreeMap<String, Call> = BTreeMap::new();
    for (site, state) in sites.into_iter().zip(states) {
        match state? {
            Some(state) => drop(firsts.entry(state).or_insert(site)),
            None => dropped += 1,
        }
    }
    let firsts: Vec<Call> = firsts.into_values().collect();
    let mut pairs = Vec::new();
    for first in &firsts {
        let recovery = steady(4, |_| {
            let mut case = Case::new(scenario);
            killed_at(&mut case, scenario.name, first);
            census_of(&mut case, "recover", &[])
        })?;
        dropped += recovery.dropped;
        pairs.extend(recovery.sites.into_iter().map(|second| (first.clone(), second)));
    }
    Ok(Planned { states: firsts.len() as u64, pairs, dropped })
}

/// What a first death has left, without what differs from run to run.
fn state(case: &Case<'_>) -> String {
    let own = case.world.root().join(".jobq");
    let names: Vec<String> =
        if own.exists() { walk(&own).iter().map(|name| shape(name)).collect() } else { Vec::new() };
    let size = |name: &str| std::fs::metadata(own.join(name)).map_or(0, |meta| meta.len()).min(1);
    let last = case.last();
    format!("{:?} {:?} {names:?} {} {}", last.rows, last.tree, size("jobq.db"), size("jobq.db-wal"))
}
