//! Bits that flip, files that end too early, blocks that are zeroed or exchanged:
//! in the database, in its log, and in what is staged. After each, somebody opens
//! the queue and does all there is to do. What comes of it may be an error, but
//! never a wrong file, nor silence about one that is missing.
//!
//! The world has jobs in every stand of their life (`truth.rs`), left by processes
//! that died at the worst moments (`build.rs`). It is made once and copied for each
//! case. For damage to the database it is packed: everything is in one file, and
//! nothing stands there twice, so that a word that is hit is the one that counts.

mod build;
mod effect_row;
mod hand;
mod hurt;
mod truth;
mod verdict;

use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::Lab;
use crate::cases;
use crate::report::{Report, Trouble};
use crate::world::{World, walk};

use hurt::Part;
use verdict::Verdict;

/// Cases of each part: of all, and of those CI runs. Plans have found the most.
const PARTS: [(&str, Part, u64, u64); 5] = [
    ("damage database", Part::Database, 400, 80),
    ("damage log", Part::Log, 200, 40),
    ("damage stage", Part::Stage, 150, 30),
    ("damage payload", Part::Payload, 150, 30),
    ("damage plan", Part::Plan, 200, 200),
];

/// How often somebody aims who does not hit anything.
const MOST_AIMS: usize = 1_000;

/// Whoever takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn run(lab: &Lab) -> Vec<Report> {
    let left = World::empty();
    for step in 0..build::STEPS {
        let status = hand(&left.outside(""), &step.to_string());
        // All but the first die.
        assert!(status.is_some_and(|status| status.success() == (step == 0)), "step {step}: {status:?}");
    }
    let packed = World::empty();
    copy(&left.outside(""), &packed.outside(""));
    packed.sql().execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let parts = PARTS.iter().filter(|(name, ..)| name.contains(&lab.only));
    parts
        .map(|(name, part, all, in_ci)| {
            let world = if *part == Part::Log { &left } else { &packed };
            let cases: Vec<u64> = (0..if lab.short { *in_ci } else { *all }).collect();
            report(name, *part, &cases, world, lab.seed).printed()
        })
        .collect()
}

fn report(name: &str, part: Part, cases: &[u64], world: &World, seed: u64) -> Report {
    let mut report = Report::new(name, seed);
    let (mut harmless, mut doctor, mut impatient, mut misled) = (0, 0, 0, 0);
    let answers = cases::each(cases, |number| attempt(part, world, seed.wrapping_mul(1_000_003).wrapping_add(*number)));
    for (number, answer) in cases.iter().zip(answers) {
        report.sites += 1;
        let (real, verdict) = answer
            .unwrap_or_else(|panic| (true, Verdict { troubles: vec![(Trouble::Wrong, panic)], ..Verdict::default() }));
        report.fired += u64::from(real);
        harmless += u64::from(verdict.harmless);
        doctor += u64::from(verdict.doctor);
        impatient += u64::from(verdict.impatient);
        misled += u64::from(verdict.misled);
        for (kind, at) in verdict.troubles {
            report.trouble(kind, format!("case {number}: {at}"));
        }
    }
    report.at_most(most_misled(cases.len() as u64), misled, "others have felt it");
    report.told.extend([("harmless", harmless), ("only_doctor", doctor), ("impatient", impatient), ("misled", misled)]);
    report
}

/// Of so many cases, those after which others than the victim have felt it: that is rare, one in
/// forty by 170 runs of which none had more than nine of 200. Where it is not, somebody who could
/// have gone on does not. The bound is where chance does not get to.
fn most_misled(cases: u64) -> u64 {
    cases / 10
}

fn attempt(part: Part, world: &World, seed: u64) -> (bool, Verdict) {
    let place = World::empty();
    let folder = place.outside("");
    copy(&world.outside(""), &folder);
    let mut random = fastrand::Rng::with_seed(seed);
    // Zeroing what is zero, or exchanging a block with itself, is no damage. Where there is nothing
    // to aim at any more, none is ever done, and that is told by `fired`.
    let mut harm = part.harm(&place.root(), &mut random);
    for _ in 0..MOST_AIMS {
        if harm.real {
            break;
        }
        harm = part.harm(&place.root(), &mut random);
    }
    let status = hand(&folder, "find");
    let mut verdict = verdict::judge(&folder, part, &harm);
    let said = std::fs::read_to_string(folder.join("stderr")).unwrap_or_default();
    match status {
        None => verdict.troubles.push((Trouble::Wrong, format!("{}: does not end", harm.what))),
        Some(status) if !status.success() || said.contains("panicked") => {
            verdict.troubles.push((Trouble::Wrong, format!("{}: {status}, {said}", harm.what)));
        }
        Some(_) => {}
    }
    (harm.real, verdict)
}

/// Runs one of the processes; `None` if it does not end.
fn hand(folder: &Path, step: &str) -> Option<ExitStatus> {
    let errors = std::fs::File::create(folder.join("stderr")).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([hand::WORD, folder.to_str().unwrap(), step])
        .stdin(Stdio::null())
        .stderr(errors)
        .spawn()
        .unwrap();
    ended(&mut child)
}

fn ended(child: &mut Child) -> Option<ExitStatus> {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

/// A folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    for name in walk(from) {
        if name.ends_with('/') {
            std::fs::create_dir_all(to.join(name)).unwrap();
        } else {
            std::fs::create_dir_all(to.join(&name).parent().unwrap()).unwrap();
            std::fs::copy(from.join(&name), to.join(&name)).unwrap();
        }
    }
}

/// This process as one of those, if it was started as that.
pub fn as_hand() -> Option<ExitCode> {
    hand::of_these_arguments()
}
