//! Killed at every call that changes a file.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::Lab;
use crate::aftermath::Case;
use crate::cases;
use crate::report::{Answer, Report, Trouble};
use crate::said::{Heard, Ran};
use crate::scenarios::{ALL, Scenario, WORKER};
use crate::strace::{self, At, Call};
use crate::threads::{self, THREADS};

/// How long a process may take that does a few milliseconds' work.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn run(lab: &Lab) -> Vec<Report> {
    let mut reports: Vec<Report> = ALL
        .iter()
        .filter(|scenario| scenario.name.contains(&lab.only))
        .map(|scenario| scenario_of(scenario, lab))
        .collect();
    let threads = THREADS.iter().filter(|_| WORKER.name.contains(&lab.only));
    reports.extend(threads.map(|thread| thread_of(thread, lab)));
    reports.push(Report::total("kill", lab.seed, &reports));
    reports
}

/// A real worker, killed when one of its threads is about to make a call.
fn thread_of(thread: &str, lab: &Lab) -> Report {
    let mut report = Report::new(format!("kill worker {thread}"), lab.seed);
    let sites = match threads::census(thread) {
        Ok((_, sites)) => sites,
        Err(why) => {
            report.trouble(Trouble::Wrong, why);
            return report.printed();
        }
    };
    let answers = cases::each(&sites, |site| {
        again_if_missed(|| {
            let mut case = Case::new(&WORKER);
            case.racy = true;
            let run = threads::Run::new(&mut case, thread, Some((site, At::Kill))).unwrap();
            let last = run.made.last().is_some_and(|last| (&last.name, last.nth) == (&site.name, site.nth));
            (last && strace::was_killed(run.ran.status), case.finish())
        })
    });
    report.take(sites.iter().map(|site| &site.line), answers);
    report.printed()
}

fn scenario_of(scenario: &Scenario, lab: &Lab) -> Report {
    let mut report = Report::new(format!("kill {}", scenario.name), lab.seed);
    let sites = match census(scenario) {
        Ok(sites) => sites,
        Err(why) => {
            report.trouble(Trouble::Wrong, why);
            return report.printed();
        }
    };
    let answers = cases::each(&sites, |site| {
        again_if_missed(|| {
            let mut case = Case::new(scenario);
            let fired = killed_at(&mut case, scenario.name, site);
            (fired, case.finish())
        })
    });
    report.take(sites.iter().map(|site| &site.line), answers);
    report.printed()
}

/// Names of owners are random, and with them the order in which their files are
/// looked at: now and then a call has another number. What was wrong is never
/// forgotten.
pub fn again_if_missed(mut attempt: impl FnMut() -> Answer) -> Answer {
    let (mut fired, mut troubles) = (false, Vec::new());
    for _ in 0..20 {
        let (this, found) = attempt();
        fired = this;
        troubles.extend(found);
        if fired || !troubles.is_empty() {
            break;
        }
    }
    (fired, troubles)
}

/// The calls of a scenario that change a file, when nothing goes wrong. All threads
/// are watched in one run, to see that a single one changes files.
pub fn census(scenario: &Scenario) -> Result<Vec<Call>, String> {
    steady(8, |number| {
        let mut case = Case::new(scenario);
        let sites = census_of(&mut case, scenario.name, if number == 0 { &["-f"] } else { &[] })?;
        // A fault that never comes must leave everything in order, too.
        match case.finish() {
            troubles if troubles.is_empty() => Ok(sites),
            troubles => Err(format!("without any fault: {troubles:?}")),
        }
    })
}

/// Of several runs, side by side as those with faults are, what is the same in all
/// of them: names of owners are random, and with them who is looked at first; and a
/// file that was written a moment ago is read once more.
pub fn steady(runs: usize, census: impl Fn(usize) -> Result<Vec<Call>, String> + Sync) -> Result<Vec<Call>, String> {
    let numbers: Vec<usize> = (0..runs).collect();
    let mut runs = cases::each(&numbers, |number| census(*number));
    let mut common = runs.pop().expect("at least one run")??;
    for run in runs {
        let run: HashSet<_> = run??.into_iter().map(|call| (call.nth, shape(&call.line))).collect();
        common.retain(|call| run.contains(&(call.nth, shape(&call.line))));
    }
    Ok(common)
}

pub fn census_of(case: &mut Case<'_>, deed: &str, threads: &[&str]) -> Result<Vec<Call>, String> {
    let (root, log) = (case.world.root(), case.world.outside("log"));
    let ran = heard(strace::traced(&command(deed, &root), &log, threads));
    if !ran.status.success() {
        return Err(format!("{deed} fails by itself: {} {:?} {}", ran.status, ran.said, ran.stderr));
    }
    case.ended(&ran);
    Ok(strace::sites(&root, &log))
}

/// The process that does something, killed when it is about to make this call.
pub fn killed_at(case: &mut Case<'_>, deed: &str, site: &Call) -> bool {
    let (root, log) = (case.world.root(), case.world.outside("log"));
    let ran = heard(strace::injected(&command(deed, &root), site, At::Kill, &log, &[]));
    case.ended(&ran);
    let (made, _) = strace::calls(&log);
    let here = |last: &Call| {
        last.nth == site.nth && last.line.contains(root.to_str().unwrap()) && shape(&last.line) == shape(&site.line)
    };
    strace::was_killed(ran.status) && made.last().is_some_and(here)
}

pub fn command(deed: &str, root: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child", deed]).arg(root);
    command
}

pub fn heard(command: Command) -> Ran {
    Heard::start(command).end(PATIENCE)
}

/// A call without what differs from run to run: numbers, random names, answers.
pub fn shape(line: &str) -> String {
    let asked = line.rsplit_once(" = ").map_or(line, |(asked, _)| asked);
    let words = asked.split_inclusive(|letter: char| !letter.is_alphanumeric());
    let is_random = |word: &str| {
        let letters = word.trim_end_matches(|letter: char| !letter.is_alphanumeric());
        // A name of ours in capital letters, or one for a temporary folder.
        let long = letters.len() >= 10 && letters.bytes().all(|letter| letter.is_ascii_uppercase());
        long || letters.len() == 6 || letters.contains(|letter: char| letter.is_ascii_digit())
    };
    words.map(|word| if is_random(word) { "#" } else { word }).collect()
}
