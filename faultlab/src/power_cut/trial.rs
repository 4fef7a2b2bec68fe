//! One filesystem and one program: recorded, cut many times, and checked.

use std::path::{Path, PathBuf};

use fastrand::Rng;

use super::cuts::{Aim, Cut, Film};
use super::disk::{self, Act, Image};
use super::filesystem::Kind;
use super::notes::Recorded;
use super::record::{Kept, Work};
use super::{Role, check, processes, record};
use crate::cases::each;
use crate::place;
use crate::report::{Report, Trouble};

/// Steps that each of the workload's clients takes.
const STEPS: usize = 40;

pub struct Trial {
    pub name: String,
    pub kind: Kind,
    /// Whose work is cut, and what it does without if it is an altered one.
    pub program: PathBuf,
    pub without: &'static str,
    /// How often the work is recorded, each time another one.
    pub recordings: usize,
    /// How many cuts, over all recordings.
    pub cuts: usize,
    /// Not the work is cut, but this many recoveries after cuts of each recording. Then it
    /// is these that do without something; those before them had all they need.
    pub recoveries: usize,
    /// With fewer cuts than this, less is proved than is claimed.
    pub least: u64,
}

impl Trial {
    pub fn run(&self, seed: u64) -> Report {
        let folder = place::new_folder();
        let report = Report::new(&self.name, seed);
        let mut run = Run { trial: self, report, random: Rng::with_seed(seed), seen: Seen::default() };
        for number in 0..self.recordings {
            let seed = seed.wrapping_add(number as u64);
            let place = folder.path().join(number.to_string());
            if let Err(why) = run.recording(&place, seed) {
                // What was planned has not happened.
                run.report.sites += self.cuts_each() as u64;
                run.report.trouble(Trouble::Wrong, format!("recording {seed}: {why}"));
            }
        }
        run.ended()
    }

    fn cuts_each(&self) -> usize {
        self.cuts.div_ceil(self.recordings)
    }

    fn is_control(&self) -> bool {
        !self.without.is_empty()
    }
}

/// What was seen, over all recordings.
#[derive(Default)]
struct Seen {
    writes: u64,
    flushes: u64,
    notes: u64,
    /// Cuts after which something was lost: a control is to show that, and no other trouble.
    lossy: u64,
}

struct Recording {
    name: String,
    place: PathBuf,
    film: Film,
    told: Recorded,
}

struct Run<'a> {
    trial: &'a Trial,
    report: Report,
    random: Rng,
    seen: Seen,
}

impl Run<'_> {
    fn recording(&mut self, place: &Path, seed: u64) -> Result<(), String> {
        std::fs::create_dir(place).map_err(|e| e.to_string())?;
        let name = format!("recording {seed}");
        let first = self.record(name, place.to_owned(), Work::Anew { seed, steps: STEPS })?;
        let recoveries = self.trial.recoveries;
        if recoveries == 0 {
            self.cut(&first, self.trial.cuts_each());
            return Ok(());
        }
        // Where there is something to bring to its end, and wherever else.
        let anywhere = if self.trial.is_control() { 0 } else { recoveries / 2 };
        let mut cuts = first.film.cuts(&first.told, anywhere, Aim::Anywhere, &mut self.random);
        cuts.extend(first.film.cuts(&first.told, recoveries - anywhere, Aim::AtDecisions, &mut self.random));
        for (number, cut) in cuts.iter().enumerate() {
            let place = place.join(format!("recovery-{number}"));
            std::fs::create_dir(&place).map_err(|e| e.to_string())?;
            first.film.image(cut).write(&Kept(&place).base()).map_err(|e| format!("cannot make the image: {e}"))?;
            let name = format!("{}, recovery after {} of {}", first.name, cut.how, cut.position);
            let before = first.told.until(cut.position);
            let recovery = self.record(name, place, Work::Recovery { before })?;
            self.cut(&recovery, self.trial.cuts_each() / recoveries);
        }
        Ok(())
    }

    fn record(&mut self, name: String, place: PathBuf, work: Work) -> Result<Recording, String> {
        let Trial { kind, program, without, recoveries, .. } = self.trial;
        let is_first = matches!(work, Work::Anew { .. });
        let without = if is_first && *recoveries > 0 { "" } else { without };
        let (folder, program, without) = (place.clone(), program.clone(), without.to_owned());
        let order = record::Order { kind: *kind, folder, program, without, work };
        processes::run(&Role::Record(order)).map_err(|why| format!("{name}: {why}"))?;
        let kept = Kept(&place);
        let read = || {
            let told: Recorded = serde_json::from_slice(&std::fs::read(kept.recorded())?)?;
            Ok::<_, std::io::Error>((Image::read(&kept.base())?, disk::load(&kept.acts())?, told))
        };
        let (base, acts, told) = read().map_err(|e| format!("{name}: what was recorded cannot be read: {e}"))?;
        let flushes = acts.iter().filter(|act| matches!(act, Act::Flush)).count();
        self.seen.writes += (acts.len() - flushes) as u64;
        self.seen.flushes += flushes as u64;
        self.seen.notes += told.notes.len() as u64;
        Ok(Recording { name, film: Film::new(base, acts, *kind), place, told })
    }

    fn cut(&mut self, recording: &Recording, count: usize) {
        let Recording { name, film, told, .. } = recording;
        let is_control = self.trial.is_control();
        let aim = if is_control { Aim::AtPromises } else { Aim::Anywhere };
        let cuts = film.cuts(told, count, aim, &mut self.random);
        self.report.sites += cuts.len() as u64;
        let answers = each(&cuts, |cut| checked(self.trial.kind, cut, recording));
        for (cut, answer) in cuts.iter().zip(answers) {
            let at = |what: &str| format!("{name}, {} of {}: {what}", cut.how, cut.position);
            match answer.and_then(|answer| answer) {
                Ok(found) => {
                    self.report.fired += 1;
                    self.seen.lossy += u64::from(found.iter().any(|(kind, _)| *kind == Trouble::Lost));
                    // What a control has lost is what it is for.
                    let real = found.iter().filter(|_| !is_control);
                    real.for_each(|(kind, what)| self.report.trouble(*kind, at(what)));
                }
                Err(why) => self.report.trouble(Trouble::Wrong, at(&why)),
            }
        }
    }

    fn ended(self) -> Report {
        let Self { trial, mut report, seen: Seen { writes, flushes, notes, lossy }, .. } = self;
        report.told.extend([("writes", writes), ("flushes", flushes), ("notes", notes)]);
        report.at_least(trial.least, report.fired, "cuts");
        if trial.is_control() {
            report.told.push(("found", lossy));
            if lossy == 0 {
                report.trouble(Trouble::Wrong, "nothing is lost without it, so that nothing is lost proves nothing");
            }
        }
        report
    }
}

/// What is wrong after a cut.
fn checked(kind: Kind, cut: &Cut, recording: &Recording) -> Result<Vec<(Trouble, String)>, String> {
    let folder = tempfile::tempdir_in(&recording.place).map_err(|e| e.to_string())?;
    let image = folder.path().join("image");
    recording.film.image(cut).write(&image).map_err(|e| format!("cannot make the image: {e}"))?;
    let recorded = Kept(&recording.place).recorded();
    let order = check::Order { kind, image, recorded, position: cut.position, folder: folder.path().to_owned() };
    processes::run(&Role::Check(order))?.lines().map(trouble).collect()
}

/// One line of a check.
fn trouble(line: &str) -> Result<(Trouble, String), String> {
    let (kind, at): (String, String) = serde_json::from_str(line).map_err(|e| format!("{line}: {e}"))?;
    let kinds = [Trouble::Lost, Trouble::Doubled, Trouble::Litter, Trouble::Wrong];
    let kind = kinds.into_iter().find(|known| format!("{known:?}") == kind);
    kind.map(|kind| (kind, at)).ok_or_else(|| line.to_owned())
}
