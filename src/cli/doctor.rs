//! `jobq doctor`: is this queue in order, and if not, what is to be done.

use jobq::doctor::{Check, Doctor, Verdict};
use serde_json::json;

use super::args::{DoctorArgs, Global};
use super::config::Config;
use super::locate::{self, Place};
use super::output::{DIM, GREEN, Output, RED, YELLOW};
use super::{Answer, Outcome};

/// As wide as the longest name of a check.
const NAME_WIDTH: usize = 15;
/// What stands before a message: the verdict and the name.
const BEFORE: usize = 4 + 2 + NAME_WIDTH + 2;

/// Settings that cannot be read are a finding here, and no reason to stop.
pub(super) fn run(args: &DoctorArgs, global: &Global, out: &mut Output) -> Outcome {
    let (db, how) = locate::database_and_how(global)?;
    let mut counts = [0_u32; 3];
    let mut tell = |check: Check| {
        counts[check.verdict as usize] += 1;
        // Said as it is found: a deep look takes its time. What `out` cannot write it keeps.
        let _ = print(&check, out).and_then(|()| out.flush());
    };
    let place = || Ok(Place::new(db.clone(), how, Config::beside(&db)?, global));
    tell(config(place()));
    tell(handlers(place()));
    let mut doctor = Doctor::at(&db).deep(args.deep);
    if let Some(root) = &global.root {
        doctor = doctor.root(root);
    }
    doctor.examine(&mut tell);
    let [ok, warn, bad] = counts;
    if out.json {
        out.json(&json!({ "checks": ok + warn + bad, "ok": ok, "warn": warn, "bad": bad }))?;
    } else {
        out.line(format_args!("{} checks: {ok} ok, {warn} warn, {bad} bad", ok + warn + bad))?;
    }
    Ok(if bad == 0 { Answer::Yes } else { Answer::No })
}

fn print(check: &Check, out: &mut Output) -> std::io::Result<()> {
    if out.json {
        return out.json(check);
    }
    let style = match check.verdict {
        Verdict::Ok => GREEN,
        Verdict::Warn => YELLOW,
        Verdict::Bad => RED,
    };
    let start = format!("{style}{:<4}{style:#}  {:<NAME_WIDTH$}  ", check.verdict, check.check);
    out.behind(start, BEFORE, &check.message)?;
    match &check.advice {
        Some(advice) => out.behind(format_args!("{:BEFORE$}{DIM}→{DIM:#} ", ""), BEFORE + 2, advice),
        None => Ok(()),
    }
}

/// Programs that were meant to run jobs and cannot.
fn handlers(place: jobq::Result<Place>) -> Check {
    const NAME: &str = "handlers";
    match place.and_then(|place| super::handlers::unusable(&place)) {
        Ok(problems) if problems.is_empty() => Check::ok(NAME, "all programs can be used"),
        Ok(problems) => {
            let (told, run): (Vec<String>, Vec<bool>) = problems.into_iter().unzip();
            let advice = match (run.contains(&true), run.contains(&false)) {
                (true, false) => "take it away, or give it the name of a type of its own; jobq runs those jobs itself",
                (true, true) => "until then jobs of a type that does not come with jobq wait",
                _ => "until then jobs of that type wait",
            };
            Check::warn(NAME, told.join("; "), advice)
        }
        Err(_) => Check::ok(NAME, "not looked at: the settings cannot be read"),
    }
}

fn config(place: jobq::Result<Place>) -> Check {
    const NAME: &str = "config";
    match place.and_then(|place| place.slips()) {
        Ok(slips) if slips.is_empty() => Check::ok(NAME, "the settings can be read"),
        Ok(slips) => {
            let told: Vec<String> = slips.iter().map(ToString::to_string).collect();
            let advice = "correct the name in config.toml, or leave it for the program that is to have this type";
            Check::warn(NAME, told.join("; "), advice)
        }
        Err(error) => Check::bad(NAME, error, "correct config.toml: no other command works with it as it is"),
    }
}
