//! One filesystem and one program: recorded, cut many times, and checked.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fastrand::Rng;

use super::cuts::{Aim, Cut, Film};
use super::disk::{self, Image};
use super::filesystem::{Kind, quietly};
use super::notes::Recorded;
use super::record::{Kept, Work};
use super::{HIDDEN, Role, check, leftovers, record};
use crate::cases::each;
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
    /// Not the work is cut, but this many recoveries after cuts of each recording.
    pub recoveries: usize,
}

/// What was seen, over all recordings.
#[derive(Default)]
struct Tally {
    writes: u64,
    flushes: u64,
    notes: u64,
    /// Cuts after which something was wrong.
    found: u64,
}

/// Why nothing of this can be done here, if so.
pub fn impossible() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("it takes root to mount".to_owned());
    }
    let fuse = std::fs::File::open("/dev/fuse").err().map(|e| format!("/dev/fuse: {e}"));
    let own_mounts = || quietly("unshare", &["-m", "true"]).err();
    let loops = || quietly("losetup", &["-f"]).err().map(|why| format!("there are no loop devices: {why}"));
    fuse.or_else(own_mounts).or_else(loops)
}

impl Trial {
    pub fn run(&self, seed: u64) -> Report {
        let mut report = Report::new(&self.name, seed);
        let folder = leftovers::new_folder();
        let mut tally = Tally::default();
        for number in 0..self.recordings {
            let seed = seed.wrapping_add(number as u64);
            let place = folder.path().join(number.to_string());
            std::fs::create_dir(&place).unwrap();
            if let Err(why) = self.cut_one(&place, seed, &mut report, &mut tally) {
                // What was planned has not happened.
                report.sites += self.cuts_each() as u64;
                report.trouble(Trouble::Wrong, format!("recording {seed}: {why}"));
            }
        }
        let Tally { writes, flushes, notes, found } = tally;
        report.told.extend([("writes", writes), ("flushes", flushes), ("notes", notes)]);
        if self.is_control() {
            report.told.push(("found", found));
            if found == 0 {
                report.trouble(Trouble::Wrong, "nothing is lost without it, so that nothing is lost proves nothing");
            }
        }
        report
    }

    fn cut_one(&self, place: &Path, seed: u64, report: &mut Report, tally: &mut Tally) -> Result<(), String> {
        let mut random = Rng::with_seed(seed);
        let (film, recorded) = self.record(place, Work::Anew { seed, steps: STEPS })?;
        let name = format!("recording {seed}");
        if self.recoveries == 0 {
            self.cut_film(&name, place, &film, &recorded, self.cuts_each(), &mut random, report, tally);
            return Ok(());
        }
        for cut in film.cuts(recorded.start, &recorded.notes, self.recoveries, Aim::Anywhere, &mut random) {
            let name = format!("{name}, recovery after {} of {}", cut.how, cut.position);
            let place = place.join(format!("{}-{}", cut.position, cut.how));
            std::fs::create_dir(&place).unwrap();
            film.image(&cut).write(&Kept(&place).base()).map_err(|e| format!("cannot make the image: {e}"))?;
            let work = Work::Recovery { before: recorded.until(cut.position) };
            let (film, recorded) = self.record(&place, work).map_err(|why| format!("{name}: {why}"))?;
            let count = self.cuts_each() / self.recoveries;
            self.cut_film(&name, &place, &film, &recorded, count, &mut random, report, tally);
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn cut_film(
        &self,
        name: &str,
        place: &Path,
        film: &Film,
        recorded: &Recorded,
        count: usize,
        random: &mut Rng,
        report: &mut Report,
        tally: &mut Tally,
    ) {
        let flushes = film.acts.iter().filter(|act| matches!(act, disk::Act::Flush)).count();
        tally.writes += (film.acts.len() - flushes) as u64;
        tally.flushes += flushes as u64;
        tally.notes += recorded.notes.len() as u64;
        let aim = if self.is_control() { Aim::AtPromises } else { Aim::Anywhere };
        let cuts = film.cuts(recorded.start, &recorded.notes, count, aim, random);
        report.sites += cuts.len() as u64;
        let answers = each(&cuts, |cut| self.check(cut, film, place));
        for (cut, answer) in cuts.iter().zip(answers) {
            let at = |what: &str| format!("{name}, {} of {}: {what}", cut.how, cut.position);
            match answer.and_then(|answer| answer) {
                Ok(found) => {
                    report.fired += 1;
                    tally.found += u64::from(!found.is_empty());
                    // What a control has lost is what it is for.
                    let real = found.iter().filter(|_| !self.is_control());
                    real.for_each(|(kind, what)| report.trouble(*kind, at(what)));
                }
                Err(why) => report.trouble(Trouble::Wrong, at(&why)),
            }
        }
    }

    fn cuts_each(&self) -> usize {
        self.cuts.div_ceil(self.recordings)
    }

    fn is_control(&self) -> bool {
        !self.without.is_empty()
    }

    fn record(&self, place: &Path, work: Work) -> Result<(Film, Recorded), String> {
        let order = record::Order {
            kind: self.kind,
            folder: place.to_owned(),
            program: self.program.clone(),
            without: self.without.to_owned(),
            work,
        };
        process(&Role::Record(order))?;
        let kept = Kept(place);
        let read = || {
            let recorded = serde_json::from_slice(&std::fs::read(kept.recorded())?)?;
            Ok::<_, std::io::Error>((Image::read(&kept.base())?, disk::load(&kept.acts())?, recorded))
        };
        let (base, acts, recorded) = read().map_err(|e| format!("what was recorded cannot be read: {e}"))?;
        Ok((Film::new(base, acts, self.kind.sector()), recorded))
    }

    fn check(&self, cut: &Cut, film: &Film, place: &Path) -> Result<Vec<(Trouble, String)>, String> {
        let folder = tempfile::tempdir_in(place).map_err(|e| e.to_string())?;
        let image = folder.path().join("image");
        film.image(cut).write(&image).map_err(|e| format!("cannot make the image: {e}"))?;
        let said = process(&Role::Check(check::Order {
            kind: self.kind,
            image,
            recorded: Kept(place).recorded(),
            position: cut.position,
            folder: folder.path().to_owned(),
        }))?;
        said.lines().map(trouble).collect()
    }
}

/// One line of a check.
fn trouble(line: &str) -> Result<(Trouble, String), String> {
    let (kind, at): (String, String) = serde_json::from_str(line).map_err(|e| format!("{line}: {e}"))?;
    let kinds = [Trouble::Lost, Trouble::Doubled, Trouble::Litter, Trouble::Wrong];
    let kind = kinds.into_iter().find(|known| format!("{known:?}") == kind);
    kind.map(|kind| (kind, at)).ok_or_else(|| line.to_owned())
}

/// A process of this part, with mounts of its own; what it has printed.
fn process(role: &Role) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "300", "unshare", "-m"]).arg(program).arg(HIDDEN);
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|e| format!("timeout: {e}"))?;
    let line = serde_json::to_string(role).expect("a role is plain data");
    // One who has not read it says why.
    let _ = writeln!(child.stdin.take().expect("it is piped"), "{line}");
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
