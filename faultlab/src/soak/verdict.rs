//! The ledger beside the queue and the disk, when everybody has ended.

use std::collections::{BTreeMap, HashMap, HashSet};

use jobq::ReconcileOptions;

use super::Soak;
use super::lanes::Lanes;
use super::ledger::{self, Committed, ENDED, Enqueued, RAN};
use super::plan::{COMMITTERS, Count, ENQUEUERS, Item, Kind};
use crate::report::{Report, Trouble};
use crate::world::{Tree, World};

/// What a job must have come to.
struct Expected {
    /// Its type decides before it completes.
    decides: bool,
    /// A handler has run for it.
    runs: bool,
    /// What it is in order on: a lane, or a path that others change, too.
    lane: Option<String>,
}

/// Everything that was acknowledged.
#[derive(Default)]
struct Truth {
    jobs: HashMap<String, Expected>,
    /// Of each path what it holds in the end.
    files: BTreeMap<String, Option<String>>,
    keys: u64,
}

/// A job as the database has it.
struct Kept {
    seq: i64,
    status: String,
    completed: u32,
    decided: u32,
    /// The attempt that decided it, or completed it if it has nothing to decide.
    last: u32,
    /// How often an attempt was lost, or given back.
    lost: u32,
    applied: u32,
}

pub fn judge(soak: &Soak, world: &World, report: &mut Report) {
    let truth = Truth::of(soak, report);
    let kept = kept(world, report);
    report.told.extend([("jobs", kept.len() as u64), ("keys", truth.keys)]);
    for key in kept.keys().filter(|key| !truth.jobs.contains_key(*key)) {
        report.trouble(Trouble::Wrong, format!("{key}: nobody has asked for it"));
    }
    for (key, expected) in &truth.jobs {
        match kept.get(key) {
            Some(kept) => compare(key, expected, kept, report),
            None => report.trouble(Trouble::Lost, format!("{key}: acknowledged, and there is no such job")),
        }
    }
    runs(soak, &truth, &kept, report);
    disk(world, &truth, report);
}

impl Truth {
    fn of(soak: &Soak, report: &mut Report) -> Self {
        let mut truth = Self::default();
        for enqueuer in 0..ENQUEUERS {
            let Enqueued { acknowledged, open } = Enqueued::of(soak, enqueuer);
            truth.keys += acknowledged;
            if open.is_some() {
                report.trouble(Trouble::Wrong, format!("enqueuer {enqueuer} has ended without an answer"));
            }
            for number in 0..acknowledged {
                let Item { key, kind, .. } = Item::of(soak, enqueuer, number);
                let (decides, lane) = match kind {
                    Kind::Note => (false, None),
                    Kind::InLane { lane, .. } => (false, Some(lane)),
                    Kind::File { path, content } => (truth.files.insert(path, Some(content)).is_none(), None),
                    Kind::Path { path, content } => {
                        truth.files.insert(path.clone(), content);
                        (true, Some(path))
                    }
                };
                truth.jobs.insert(key, Expected { decides, runs: true, lane });
            }
        }
        let mut counters: BTreeMap<String, u64> = BTreeMap::new();
        for committer in ENQUEUERS..ENQUEUERS + COMMITTERS {
            let Committed { acknowledged, open } = Committed::of(soak, committer);
            truth.keys += 3 * acknowledged;
            if open.is_some() {
                report.trouble(Trouble::Wrong, format!("committer {committer} has ended without an answer"));
            }
            for number in 0..acknowledged {
                let Count { id, path, file, note_id, file_id } = Count::of(committer, number);
                *counters.entry(path).or_default() += 1;
                truth.files.insert(file.0, Some(file.1));
                truth.jobs.insert(id, Expected { decides: true, runs: false, lane: None });
                truth.jobs.insert(note_id, Expected { decides: false, runs: true, lane: None });
                truth.jobs.insert(file_id, Expected { decides: true, runs: true, lane: None });
            }
        }
        truth.files.extend(counters.into_iter().map(|(path, count)| (path, Some(format!("{count}\n")))));
        truth
    }
}

/// All jobs, by their keys where they have one and else by their ids.
fn kept(world: &World, report: &mut Report) -> HashMap<String, Kept> {
    let sql = world.sql();
    let mut names = HashMap::new();
    let mut kept = HashMap::new();
    let mut jobs = sql.prepare("SELECT id, idempotency_key, seq, status FROM jobs").unwrap();
    let mut rows = jobs.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let id: String = row.get(0).unwrap();
        let name = row.get::<_, Option<String>>(1).unwrap().unwrap_or_else(|| id.clone());
        let (seq, status) = (row.get(2).unwrap(), row.get(3).unwrap());
        let job = Kept { seq, status, completed: 0, decided: 0, last: 0, lost: 0, applied: 0 };
        if kept.insert(name.clone(), job).is_some() {
            report.trouble(Trouble::Doubled, format!("{name}: two jobs"));
        }
        names.insert(id, name);
    }
    let mut events = sql.prepare("SELECT job_id, type, attempt FROM job_events ORDER BY job_id, seq").unwrap();
    let mut rows = events.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let id: String = row.get(0).unwrap();
        let Some(job) = names.get(&id).and_then(|name| kept.get_mut(name)) else {
            report.trouble(Trouble::Wrong, format!("{id}: events without a job"));
            continue;
        };
        let (what, attempt): (String, u32) = (row.get(1).unwrap(), row.get(2).unwrap());
        match what.as_str() {
            "completed" => {
                job.completed += 1;
                job.last = if job.decided == 0 { attempt } else { job.last };
            }
            "decided" => {
                job.decided += 1;
                job.last = attempt;
            }
            // One that is lost is told of twice: by `worker_lost`, and when the job is taken back.
            "reclaimed" | "released" | "rescheduled" => job.lost += 1,
            _ => {}
        }
    }
    let mut effects = sql.prepare("SELECT job_id, state FROM effects").unwrap();
    let mut rows = effects.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let (id, state): (String, String) = (row.get(0).unwrap(), row.get(1).unwrap());
        match names.get(&id).and_then(|name| kept.get_mut(name)) {
            Some(job) if state == "applied" => job.applied += 1,
            _ => report.trouble(Trouble::Wrong, format!("{id}: an effect that is {state}")),
        }
    }
    kept
}

fn compare(key: &str, expected: &Expected, kept: &Kept, report: &mut Report) {
    let effects = u32::from(expected.decides);
    if kept.status != "completed" || kept.completed == 0 || kept.applied < effects {
        let Kept { status, completed, applied, .. } = kept;
        let what = format!("{key}: acknowledged, and is {status} ({completed} times), {applied} effects applied");
        report.trouble(Trouble::Lost, what);
    }
    if kept.completed > 1 || kept.decided > effects || kept.applied > effects {
        let Kept { completed, decided, applied, .. } = kept;
        let what = format!("{key}: completed {completed}, decided {decided}, applied {applied} times");
        report.trouble(Trouble::Doubled, what);
    }
}

/// What has run, against what should have.
fn runs(soak: &Soak, truth: &Truth, kept: &HashMap<String, Kept>, report: &mut Report) {
    let mut ran: HashMap<String, Vec<u32>> = HashMap::new();
    let mut lanes = Lanes::default();
    for line in ledger::read(soak, RAN) {
        let (began, has_ended) = line.strip_suffix(ENDED).map_or((&*line, false), |began| (began, true));
        let known = began.split_once(' ').and_then(|(key, attempt)| Some((key, attempt.parse().ok()?)));
        let Some((key, attempt)) = known.filter(|(key, _)| truth.jobs.contains_key(*key)) else {
            report.trouble(Trouble::Wrong, format!("something ran that nobody has asked for: {line:?}"));
            continue;
        };
        if let (Some(lane), Some(job)) = (&truth.jobs[key].lane, kept.get(key)) {
            // One that was taken for frozen goes on when another attempt has been the last.
            let stale = attempt < job.last;
            if has_ended {
                lanes.ended(lane, job.seq, attempt, stale);
            } else {
                lanes.began(lane, job.seq, attempt, stale);
            }
        }
        if !has_ended {
            ran.entry(key.to_owned()).or_default().push(attempt);
        }
    }
    let mut reruns = 0;
    for (key, expected) in truth.jobs.iter().filter(|(_, expected)| expected.runs) {
        let attempts = ran.remove(key).unwrap_or_default();
        let Some(job) = kept.get(key) else { continue };
        if attempts.is_empty() {
            report.trouble(Trouble::Lost, format!("{key}: its handler never ran"));
        }
        reruns += attempts.len().saturating_sub(1) as u64;
        // An attempt that has begun is never begun again, nor is there one after that which decided.
        let once: HashSet<u32> = attempts.iter().copied().collect();
        let excused = attempts.len() <= 1 + job.lost as usize;
        if once.len() < attempts.len() || !excused || attempts.iter().any(|attempt| *attempt > job.last) {
            let what =
                format!("{key}: ran as attempts {attempts:?}, {} lost, the {}. was the last", job.lost, job.last);
            report.trouble(Trouble::Doubled, what);
        }
        if expected.decides && !attempts.is_empty() && !once.contains(&job.last) {
            report.trouble(Trouble::Wrong, format!("{key}: attempt {} decided and never ran", job.last));
        }
    }
    for trouble in lanes.troubles {
        report.trouble(Trouble::Wrong, trouble);
    }
    report.told.push(("reruns", reruns));
}

fn disk(world: &World, truth: &Truth, report: &mut Report) {
    let mut found: Tree = world.tree();
    found.retain(|path, _| !path.ends_with('/'));
    for (path, content) in &truth.files {
        let there = found.remove(path);
        if there.as_deref() != content.as_deref().map(str::as_bytes) {
            let there = there.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            report.trouble(Trouble::Lost, format!("{path}: should be {content:?}, is {there:?}"));
        }
    }
    for path in found.into_keys() {
        report.trouble(Trouble::Wrong, format!("{path}: nobody has asked for it"));
    }
    let queue = world.open().unwrap();
    let options = ReconcileOptions { deep: true, ..ReconcileOptions::default() };
    queue
        .reconcile(&options, |difference, _| {
            if let Some(difference) = difference {
                report.trouble(Trouble::Wrong, format!("{}: reconcile says {:?}", difference.path, difference.finding));
            }
            true
        })
        .unwrap();
    drop(queue);
    for name in world.litter() {
        report.trouble(Trouble::Litter, name);
    }
    if let Some(said) = world.unsound() {
        report.trouble(Trouble::Wrong, said);
    }
}
