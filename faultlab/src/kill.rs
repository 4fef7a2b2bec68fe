//! Killed at every call that changes a file.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::Lab;
use crate::aftermath::Case;
use crate::cases;
use crate::census::{Census, MOST_DROPPED, shape, steady};
use crate::report::{Answer, Report, Trouble};
use crate::said::{Heard, Ran};
use crate::scenarios::{ALL, Scenario, WORKER};
use crate::strace::{self, At, Call};
use crate::threads::{self, THREADS};

/// How long a process may take that does a few milliseconds' work.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Sites of all scenarios. With fewer, something is no longer looked at.
const LEAST: u64 = 600;

pub fn run(lab: &Lab) -> Vec<Report> {
    let mut reports: Vec<Report> = ALL
        .iter()
        .filter(|scenario| scenario.name.contains(&lab.only))
        .map(|scenario| scenario_of(scenario, lab))
        .collect();
    let threads = THREADS.iter().filter(|_| WORKER.name.contains(&lab.only));
    reports.extend(threads.map(|(thread, least)| thread_of(thread, *least, lab)));
    reports.push(Report::total("kill", lab, if lab.only.is_empty() { LEAST } else { 0 }, &reports));
    reports
}

/// A real worker, killed when one of its threads is about to make a call.
fn thread_of(thread: &str, least: u64, lab: &Lab) -> Report {
    let mut report = Report::new(format!("kill worker {thread}"), lab.seed);
    let Census { sites, dropped, .. } = match threads::census(thread) {
        Ok(census) => census,
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
            let is_here = run.made.last().is_some_and(|call| run.is_at(site, call));
            (is_here && strace::was_killed(run.ran.status), case.finish())
        })
    });
    report.told.push(("dropped", dropped));
    report.at_least(least, sites.len() as u64, "sites");
    report.take(sites.iter().map(|site| &site.line), answers);
    report.printed()
}

fn scenario_of(scenario: &Scenario, lab: &Lab) -> Report {
    let mut report = Report::new(format!("kill {}", scenario.name), lab.seed);
    let Census { sites, dropped, .. } = match census(scenario) {
        Ok(census) => census,
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
    report.told.push(("dropped", dropped));
    report.at_most(MOST_DROPPED, dropped, "calls have no site");
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
pub fn census(scenario: &Scenario) -> Result<Census, String> {
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

pub fn census_of(case: &mut Case<'_>, deed: &str, threads: &[&str]) -> Result<Vec<Call>, String> {
    let (root, log) = (case.world.root(), case.world.outside("log"));
    let ran = heard(strace::traced(&command(deed, &root), &log, threads));
    if !ran.status.success() {
        return Err(format!("{deed} fails by itself: {} {:?} {}", ran.status, ran.said, ran.stderr));
    }
    case.ended(&ran);
    Ok(strace::sites_and_locks(&root, &log))
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
