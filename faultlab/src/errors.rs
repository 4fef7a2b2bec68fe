//! Calls that fail: once, or from then on.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::Lab;
use crate::aftermath::Case;
use crate::cases;
use crate::census::{Census, MOST_DROPPED, shape, steady};
use crate::kill::{again_if_missed, command, heard};
use crate::report::{Answer, Report, Trouble};
use crate::said::{Ran, Said};
use crate::scenarios::{ALL, Scenario, WORKER};
use crate::strace::{self, At, Call};
use crate::threads::{self, Run, THREADS};
use crate::unsynced;

/// Cases of a scenario at most, chosen by the seed.
const SHORT: usize = 45;
const FULL: usize = 250;
/// Cases of all scenarios in the full form. With fewer, something is no longer looked at.
const LEAST: u64 = 1_500;

/// Processor time that is far more than any of this takes, in milliseconds: who
/// needs as much tries again without waiting.
const MOST_TIME: u64 = 2_000;
/// Calls, for the same reason: so many times those of a run without faults.
const MOST_CALLS: usize = 5;

/// What a worker may do that is in trouble, a second: it waits, longer each time, and its
/// jobs are tried again after a while.
const CALLS_A_SECOND: f64 = 500.0;
const TROUBLES_A_SECOND: f64 = 3.0;
const ATTEMPTS_A_SECOND: f64 = 60.0;

const ERRORS: [&str; 3] = ["EIO", "ENOSPC", "EDQUOT"];

/// What an error of the disk may be called. Anything else would be a wrong word
/// for it, or a mistake of ours. A worker tells of attempts and of trouble.
const KINDS: [&str; 6] = ["Io", "DiskFull", "OutcomeUnknown", "ReadOnly", "Attempt", "Trouble"];

/// A worker in trouble waits, so many of them can.
const WAITING_AT_ONCE: usize = 12;

pub fn run(lab: &Lab) -> Vec<Report> {
    let wanted = ALL.iter().filter(|scenario| scenario.name.contains(&lab.only));
    let mut reports: Vec<Report> = wanted.map(|scenario| scenario_of(scenario, lab)).collect();
    let threads = THREADS.iter().filter(|_| WORKER.name.contains(&lab.only));
    reports.extend(threads.map(|(thread, least)| thread_of(thread, *least, lab)));
    let least = if lab.short || !lab.only.is_empty() { 0 } else { LEAST };
    reports.push(Report::total("errors", lab, least, &reports));
    reports
}

/// Calls that fail in one thread of a real worker, which waits and tries again.
fn thread_of(thread: &str, least: u64, lab: &Lab) -> Report {
    let mut report = Report::new(format!("errors worker {thread}"), lab.seed);
    let census = threads::census(thread);
    report.at_least(least, census.as_ref().map_or(0, |census| census.sites.len() as u64), "sites");
    several(report, lab, WAITING_AT_ONCE, census, |site, at, calls, ends| {
        let mut case = Case::new(&WORKER);
        (case.with_errors, case.racy) = (true, true);
        let run = Run::new(&mut case, thread, Some((site, at))).unwrap();
        let seconds = run.ran.took.as_secs_f64();
        let mut bad = misbehaviour(&run.ran, at, run.made.len(), MOST_CALLS * calls + times(seconds, CALLS_A_SECOND));
        bad.extend(spin(&run.ran, seconds));
        ends.count(&run.ran);
        case.troubles.extend(bad.into_iter().map(|words| (Trouble::Wrong, words)));
        let unsure = unsynced::never_told(&case.world.outside("log"), &run.ran.said);
        case.troubles.extend(unsure.map(|words| (Trouble::Lost, words)));
        let fired = run.made.iter().any(|call| run.is_at(site, call) && is_injected(call));
        (fired, case.finish())
    })
}

fn scenario_of(scenario: &Scenario, lab: &Lab) -> Report {
    let mut report = Report::new(format!("errors {}", scenario.name), lab.seed);
    let census = census(scenario);
    report.at_most(MOST_DROPPED, census.as_ref().map_or(0, |census| census.dropped), "calls have no site");
    several(report, lab, cases::AT_ONCE, census, |site, at, calls, ends| failing(scenario, (site, at), calls, ends))
}

/// Tries faults at these sites, as many as there is time for.
fn several(
    mut report: Report,
    lab: &Lab,
    at_once: usize,
    census: Result<Census, String>,
    attempt: impl Fn(&Call, At, usize, &Ends) -> Answer + Sync,
) -> Report {
    let Census { sites, dropped, calls } = match census {
        Ok(census) => census,
        Err(why) => {
            report.trouble(Trouble::Wrong, why);
            return report.printed();
        }
    };
    let mut faults: Vec<(Call, At)> = sites.into_iter().flat_map(faults).collect();
    let (all, ends) = (faults.len() as u64, Ends::default());
    let mut random = fastrand::Rng::with_seed(lab.seed);
    random.shuffle(&mut faults);
    // A sync that fails has to be told of, and each is another place to forget it: none is left out.
    faults.sort_by_key(|(site, at)| !(site.name.contains("sync") && *at == At::Fail(ERRORS[0])));
    faults.truncate(if lab.short { SHORT } else { FULL });
    let answers = cases::several(at_once, &faults, |(site, at)| again_if_missed(|| attempt(site, *at, calls, &ends)));
    let count = |ends: &AtomicU64| ends.load(Ordering::Relaxed);
    report.told =
        vec![("of", all), ("dropped", dropped), ("refused", count(&ends.refused)), ("gave_up", count(&ends.gave_up))];
    let names: Vec<String> = faults.iter().map(|(site, at)| format!("{at:?} {}", site.line)).collect();
    report.take(&names, answers);
    report.printed()
}

/// What may happen to a call. One that only looks needs no room.
fn faults(call: Call) -> impl Iterator<Item = (Call, At)> {
    let errors = if call.changes() { &ERRORS[..] } else { &ERRORS[..1] };
    errors.iter().flat_map(|error| [At::Fail(error), At::FailOn(error)]).map(move |at| (call.clone(), at))
}

/// How many calls there are in all, and those below the root: what changes
/// something, and what opens a file.
fn census(scenario: &Scenario) -> Result<Census, String> {
    let most = AtomicUsize::new(0);
    let there = steady(4, |_| {
        let mut case = Case::new(scenario);
        let (root, log) = (case.world.root(), case.world.outside("log"));
        let ran = heard(strace::traced(&command(scenario.name, &root), &log, &[]));
        case.ended(&ran);
        if !ran.status.success() {
            return Err(format!("it fails by itself: {} {:?} {}", ran.status, ran.said, ran.stderr));
        }
        let (main, _) = strace::calls(&log);
        most.fetch_max(main.len(), Ordering::Relaxed);
        match case.finish() {
            troubles if troubles.is_empty() => {
                let here = |call: &Call| call.line.contains(root.to_str().unwrap()) && call.name != "fcntl";
                Ok(main.into_iter().filter(here).collect())
            }
            troubles => Err(format!("without any fault: {troubles:?}")),
        }
    })?;
    Ok(Census { calls: most.into_inner(), ..there })
}

fn failing(scenario: &Scenario, (site, at): (&Call, At), calls: usize, ends: &Ends) -> Answer {
    let mut case = Case::new(scenario);
    case.with_errors = true;
    let (root, log) = (case.world.root(), case.world.outside("log"));
    let ran = heard(strace::injected(&command(scenario.name, &root), site, at, &log, &[]));
    case.ended(&ran);
    ends.count(&ran);
    let (made, _) = strace::calls(&log);
    let fired = made.iter().any(|call| {
        (&call.name, call.nth) == (&site.name, site.nth) && is_injected(call) && shape(&call.line) == shape(&site.line)
    });
    let bad = misbehaviour(&ran, at, made.len(), MOST_CALLS * calls);
    case.troubles.extend(bad.into_iter().map(|words| (Trouble::Wrong, words)));
    case.troubles.extend(unsynced::ignored(&log, &ran.said).map(|words| (Trouble::Lost, words)));
    (fired, case.finish())
}

/// What errors led to. The others had no need to tell of them.
#[derive(Default)]
struct Ends {
    /// Somebody was answered with an error.
    refused: AtomicU64,
    /// And could not go on.
    gave_up: AtomicU64,
}

impl Ends {
    fn count(&self, ran: &Ran) {
        let refused = ran.said.iter().any(|said| matches!(said, Said::Failed(..)));
        self.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
        self.gave_up.fetch_add(u64::from(ran.status.code() == Some(3)), Ordering::Relaxed);
    }
}

fn is_injected(call: &Call) -> bool {
    call.line.contains("(INJECTED)")
}

/// As many of them as there may be in that time.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
fn times(seconds: f64, a_second: f64) -> usize {
    (seconds * a_second).ceil() as usize
}

/// A worker that tells of trouble again and again, without waiting.
fn spin(ran: &Ran, seconds: f64) -> Option<String> {
    let count =
        |wanted: &str| ran.said.iter().filter(|said| matches!(said, Said::Failed(kind, _) if kind == wanted)).count();
    let (troubles, attempts) = (count("Trouble"), count("Attempt"));
    let spins = troubles > 4 + times(seconds, TROUBLES_A_SECOND) || attempts > 4 + times(seconds, ATTEMPTS_A_SECOND);
    spins.then(|| {
        format!("in {seconds:.1} s it tells of trouble {troubles} times, and of failed attempts {attempts} times")
    })
}

/// What the process should not have done.
fn misbehaviour(ran: &Ran, at: At, made: usize, most: usize) -> Vec<String> {
    let mut bad = Vec::new();
    if ran.overdue {
        bad.push("it hangs".to_owned());
    }
    let gave_up = match (ran.status.code(), ran.said.last()) {
        (Some(0), Some(Said::Done(time))) => (false, *time),
        (Some(3), Some(Said::GaveUp(time))) => (true, *time),
        (_, last) => {
            bad.push(format!("it ends by {}: {last:?} {}", ran.status, ran.stderr));
            (false, 0)
        }
    };
    if gave_up.1 > MOST_TIME {
        bad.push(format!("{} ms of processor time", gave_up.1));
    }
    if made > most {
        bad.push(format!("{made} calls, and there are to be {most} at most"));
    }
    if gave_up.0 && matches!(at, At::Fail(_)) {
        bad.push(format!("it could not go on when the fault was over: {:?}", ran.said));
    }
    for said in &ran.said {
        if let Said::Failed(kind, words) = said
            && (!KINDS.contains(&kind.as_str()) || words.len() < 10)
        {
            bad.push(format!("{kind}: {words}"));
        }
    }
    bad
}
