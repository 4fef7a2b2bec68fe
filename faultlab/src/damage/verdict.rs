//! What has come of a damaged world, beside what was asked for.
//!
//! A wrong content, or anything under a name that nobody has asked for, is trouble
//! whatever else is said; and so is a completed job whose file is not there. What is
//! missing has to be told of: by a job that is there and not completed, or, where the
//! job itself cannot be found any more, by an error of whoever opened the queue or
//! worked on it, or at the least by the database's own check, which `jobq doctor` makes.
//!
//! What no program could notice, and is not counted:
//! - bits that nobody reads: free space, pages that are in no use, times and other
//!   notes for people;
//! - an altered priority, time, lane, key or number of attempts: the job is run once
//!   and right, at another time or in another order (a lane or a path that is altered
//!   no longer holds the others back, so these may run before it);
//! - an altered type that no worker knows: the job is pending, and seen there;
//! - the end of a damaged log: SQLite takes it for the place where a writer died,
//!   and what was committed behind it has never been. Files that were put in place
//!   meanwhile stay, and a job whose end is lost is run again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use rusqlite::Connection;

use super::hand::{IMPATIENT, RAN, SAID};
use super::hurt::{Harm, Part};
use super::truth::{self, Asked, What};
use crate::report::Trouble;
use crate::world::walk;

/// What a case came to.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is counted by itself")]
pub struct Verdict {
    pub troubles: Vec<(Trouble, String)>,
    /// All is as if nothing had been damaged.
    pub harmless: bool,
    /// Only the database's own check tells of it.
    pub doctor: bool,
    /// Whoever came upon it could not go on, and was told to stop.
    pub impatient: bool,
    /// Others than the victim have felt it, and were told.
    pub misled: bool,
}

/// A job as the database has it, as far as it can be read.
struct Kept {
    status: String,
    error: String,
    /// The job that it waits on.
    waiting_on: String,
    /// It waits for others on its path or lane.
    held: bool,
    /// Another row has the same id, so this may be either.
    doubled: bool,
}

impl Kept {
    fn is_completed(&self) -> bool {
        self.status == "completed"
    }
}

struct Case<'c> {
    part: Part,
    harm: &'c Harm,
    /// What whoever came upon it has said, if it was not nothing.
    said: String,
    kept: HashMap<String, Kept>,
    sound: bool,
    verdict: Verdict,
}

pub fn judge(folder: &Path, part: Part, harm: &Harm) -> Verdict {
    let said = std::fs::read_to_string(folder.join(SAID)).unwrap_or_else(|_| "nothing at all".to_owned());
    let database = folder.join("root/.jobq/jobq.db");
    let (kept, sound) = read(&database).unwrap_or_default();
    let mut case = Case { part, harm, said, kept, sound, verdict: Verdict::default() };
    let all = truth::all();
    let right = case.files(folder, &all) & case.runs(folder, &all);
    case.events(&database);
    case.verdict.impatient = folder.join(IMPATIENT).exists();
    case.neighbours(&all);
    case.verdict.harmless = right && all.iter().all(|asked| case.is_completed(asked));
    case.verdict
}

/// Its jobs, and whether SQLite finds it sound; nothing if it cannot be read.
fn read(database: &Path) -> rusqlite::Result<(HashMap<String, Kept>, bool)> {
    let sql = Connection::open(database)?;
    let said = sql.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    let select = "SELECT id, status, coalesce(last_error, ''), coalesce(waiting_on, ''), coalesce(gate, '')
                    FROM jobs NOT INDEXED";
    let mut jobs = sql.prepare(select)?;
    let mut rows = jobs.query([])?;
    let mut kept = HashMap::new();
    while let Ok(Some(row)) = rows.next() {
        let text = |index| row.get_ref(index).ok().and_then(|value| value.as_str().ok()).unwrap_or("?").to_owned();
        let doubled = kept.contains_key(&text(0));
        let (status, error, waiting_on, held) = (text(1), text(2), text(3), text(4) == "held");
        kept.insert(text(0), Kept { status, error, waiting_on, held, doubled });
    }
    Ok((kept, said.is_ok_and(|said| said == "ok")))
}

impl Case<'_> {
    fn is_completed(&self, asked: &Asked) -> bool {
        self.kept.get(&asked.id).is_some_and(Kept::is_completed)
    }

    /// Whether something tells that this was not done. A job that is called completed
    /// is not excused by anything.
    fn is_told(&mut self, asked: &Asked) -> bool {
        if let Some(kept) = self.kept.get(&asked.id) {
            // Nor is one that waits for what is done: nobody would ever look at it.
            let waits = kept.status == "pending" && truth::commit_of(asked).is_some_and(|on| on == kept.waiting_on);
            let forgotten = waits && self.kept.get(&kept.waiting_on).is_some_and(Kept::is_completed);
            let silent = self.sound && self.said.is_empty();
            let told = !(kept.is_completed() || (forgotten && silent));
            self.verdict.doctor |= forgotten && !self.sound && self.said.is_empty();
            return told;
        }
        // It was never committed, as far as the log goes; or who was to queue it was not done, or tells why it is not there.
        let is_silent = |leader: &Kept| leader.is_completed() && !leader.error.contains(&asked.id);
        let leader_is_silent = || self.kept.get(&truth::leader()).is_some_and(is_silent);
        if self.part == Part::Log || !self.said.is_empty() || (asked.is_follow_up() && !leader_is_silent()) {
            return true;
        }
        self.verdict.doctor |= !self.sound;
        !self.sound
    }

    fn trouble(&mut self, kind: Trouble, what: impl std::fmt::Display) {
        let Self { part, harm, said, .. } = self;
        let at = format!("{part:?}, {}: {what} (said: {said:?})", harm.what);
        self.verdict.troubles.push((kind, at));
    }

    /// Every file has a content that was asked for, and the last one unless
    /// something tells why not. True if all of them have the last one.
    fn files(&mut self, folder: &Path, all: &[Asked]) -> bool {
        let root = folder.join("root");
        let mut found: BTreeMap<String, Vec<u8>> = walk(&root)
            .into_iter()
            .filter(|path| !path.ends_with('/') && !path.starts_with(".jobq/"))
            .map(|path| (path.clone(), std::fs::read(root.join(path)).unwrap()))
            .collect();
        let mut histories: BTreeMap<&str, Vec<(&Asked, Option<&str>)>> = BTreeMap::new();
        for asked in all {
            for (path, content) in asked.changes() {
                histories.entry(path).or_default().push((asked, content));
            }
        }
        let mut right = true;
        for (path, history) in histories {
            let there = found.remove(path);
            let is = |content: Option<&str>| content.map(str::as_bytes) == there.as_deref();
            let last = history.last().expect("somebody has asked").1;
            if is(last) {
                continue;
            }
            right = false;
            if there.is_some() && !history.iter().any(|(_, content)| is(*content)) {
                self.trouble(Trouble::Wrong, format!("{path} has a content that nobody has asked for"));
            } else if !history.iter().any(|(asked, _)| self.is_told(asked)) {
                self.trouble(Trouble::Lost, format!("{path} is not what it should be, and nobody says so"));
            }
        }
        for path in found.into_keys() {
            self.trouble(Trouble::Wrong, format!("{path:?}: nobody has asked for it"));
        }
        right
    }

    /// What notes have run, as often as they should. True if that is once each.
    fn runs(&mut self, folder: &Path, all: &[Asked]) -> bool {
        let ran = std::fs::read_to_string(folder.join(RAN)).unwrap_or_default();
        let mut right = true;
        for asked in all.iter().filter(|asked| matches!(asked.what, What::Note)) {
            let times = ran.lines().filter(|line| *line == asked.id).count();
            right &= times == 1;
            if times > 1 {
                self.trouble(Trouble::Doubled, format!("{} ran {times} times", asked.id));
            } else if times == 0 && !self.is_told(asked) {
                self.trouble(Trouble::Lost, format!("{} never ran, and nobody says so", asked.id));
            }
        }
        let known: BTreeSet<&str> = all.iter().map(|asked| asked.id.as_str()).collect();
        for line in ran.lines().filter(|line| !known.contains(line)) {
            self.trouble(Trouble::Wrong, format!("{line:?} ran, and nobody has asked for it"));
        }
        right
    }

    /// No job decides or completes twice, as far as the database can be read.
    fn events(&mut self, database: &Path) {
        let twice = "SELECT job_id, type FROM job_events NOT INDEXED WHERE type IN ('decided', 'completed')
                      GROUP BY job_id, type HAVING count(*) > 1";
        let Ok(sql) = Connection::open(database) else { return };
        let Ok(mut events) = sql.prepare(twice) else { return };
        let Ok(mut rows) = events.query([]) else { return };
        while let Ok(Some(row)) = rows.next() {
            let (id, what) = (row.get::<_, String>(0), row.get::<_, String>(1));
            if self.sound {
                self.trouble(Trouble::Doubled, format!("{id:?} has {what:?} twice"));
            }
        }
        // A part of a log is a database as it once was.
        if self.part == Part::Log && !self.sound && self.said.is_empty() {
            self.trouble(Trouble::Wrong, "the database is not sound");
        }
    }

    /// Where it is certain whom the damage is done to, he is the only one who
    /// feels it, and it is said. (What is said of a plan, or that it is carried out
    /// all the same, is seen by its files.)
    fn neighbours(&mut self, all: &[Asked]) {
        let victims = self.harm.victims.clone();
        if victims.is_empty() || !self.harm.real {
            return;
        }
        let mut wrong = Vec::new();
        for asked in all {
            let (status, error) =
                self.kept.get(&asked.id).map_or(("not there", ""), |kept| (&kept.status, &kept.error));
            // What waits on a commit that was not applied waits on (that one is judged by itself); what a job was to queue is not queued.
            let is_open = |commit: &String| !self.kept.get(commit).is_some_and(Kept::is_completed);
            let waits = status == "pending" && truth::commit_of(asked).as_ref().is_some_and(is_open);
            let waits = waits || (asked.is_follow_up() && victims.contains(&truth::leader()) && status == "not there");
            let good = match self.part {
                _ if !victims.contains(&asked.id) => status == "completed" || waits,
                // Not every bit of a plan counts, and a file that is not as planned has a word of its own.
                Part::Plan => true,
                Part::Payload => status == "failed" && error.contains("payload_damaged"),
                _ => status == "failed" && error.contains("damaged"),
            };
            // A name is also what SQLite finds rows by. Where one is looked for and not found,
            // all that can be said is that the database is damaged, at the least by its own check.
            // One whose row can be read is done, whatever is said, unless it is said of this one, or
            // nothing could be done at all: a page that SQLite refuses to write to is everybody's.
            let unfound = status == "not there" || error.contains("plan_damaged");
            let unfound = unfound || (status == "pending" && truth::commit_of(asked).is_some());
            let unfound = unfound || self.kept.get(&asked.id).is_some_and(|kept| kept.held || kept.doubled);
            let stopped = self.verdict.impatient && !self.said.is_empty();
            let told = unfound && (!self.said.is_empty() || !self.sound);
            let misled = self.part == Part::Plan && (told || stopped || self.said.contains(&asked.id));
            self.verdict.misled |= !good && misled;
            if !good && !misled {
                wrong.push(format!("{} is {status}: {error:?}", asked.id));
            }
        }
        if !wrong.is_empty() {
            self.trouble(
                Trouble::Wrong,
                format!("{} jobs feel it, and not {victims:?} alone: {}", wrong.len(), wrong[0]),
            );
        }
    }
}
