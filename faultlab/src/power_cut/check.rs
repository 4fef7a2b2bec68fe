//! The power is back: what is left is mounted, the queue is opened and brought to
//! its end, and all of it is held against what somebody was told before the cut.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use jobq::{Queue, sha256_hex};
use jobq::{QueueOptions, ReconcileOptions, Registry, Retention, Shutdown, Worker, WorkerEvent, WorkerOptions};
use serde::{Deserialize, Serialize};

use super::filesystem::{Kind, boot};
use super::notes::Ledger;
use super::recovered::Recovered;
use crate::report::Trouble::{self, Doubled, Litter, Lost, Wrong};
use crate::world::{litter, walk};

/// What is to be checked.
#[derive(Serialize, Deserialize)]
pub struct Order {
    pub kind: Kind,
    /// What was left on the disk.
    pub image: PathBuf,
    /// The notes, and up to where they count.
    pub recorded: PathBuf,
    pub position: usize,
    /// A place for what the check needs.
    pub folder: PathBuf,
}

type Found = Vec<(Trouble, String)>;

/// Runs in a process of its own, whose mounts nobody else sees and which go when
/// it does.
pub fn run(order: &Order) -> Result<Found, String> {
    let mut found = Found::new();
    let mounted = order.folder.join("mounted");
    order.kind.mount(&order.image, &mounted)?;
    boot(&order.folder)?;
    let root = mounted.join("root");
    let ledger = Ledger::read(&order.recorded, order.position);
    let before = match Recovered::read(&root, &order.folder) {
        Ok(before) => before,
        Err(why) => {
            if ledger.opened {
                found.push((Lost, format!("the queue is not there: {why}")));
            }
            Recovered::default()
        }
    };
    promises(&ledger, &before, &mut found);
    disk_agrees(&ledger, &before, &root, &mut found);
    match finish(&root, &before) {
        Ok(told) => found.extend(told),
        Err(why) => found.push((Lost, format!("the work cannot be finished: {why}"))),
    }
    match Recovered::read(&root, &order.folder) {
        Ok(after) => outcome(&ledger, &before, &after, &root, &mut found),
        Err(why) => found.push((Wrong, format!("the database cannot be read when all is done: {why}"))),
    }
    found.extend(litter(&root).into_iter().map(|name| (Litter, format!(".jobq/{name}"))));
    Ok(found)
}

/// What was acknowledged is in the database; what was not is there as a whole or
/// not at all.
fn promises(ledger: &Ledger, before: &Recovered, found: &mut Found) {
    let pruned = ledger.may_be_pruned();
    let is_there = |id: &str| before.jobs.contains_key(id) || pruned.contains(id);
    for operation in &ledger.begun {
        let name = format!("{} {}", operation.name, operation.number);
        let missing: Vec<&str> = operation.jobs.iter().map(|job| job.id.as_str()).filter(|id| !is_there(id)).collect();
        if ledger.was_accepted(operation) {
            found.extend(missing.iter().map(|id| (Lost, format!("{name}: job {id} was accepted and is not there"))));
        } else if !missing.is_empty() && missing.len() < operation.jobs.len() {
            found.push((Wrong, format!("{name} was accepted by half: {missing:?} are not there")));
        }
    }
    let asked_for: HashSet<&str> =
        ledger.begun.iter().flat_map(|operation| &operation.jobs).map(|job| job.id.as_str()).collect();
    let strange = before.jobs.keys().filter(|id| !asked_for.contains(id.as_str()));
    found.extend(strange.map(|id| (Wrong, format!("job {id} was never asked for"))));
    for id in &ledger.decided {
        if before.jobs.get(id).is_some_and(|job| !job.decided) {
            found.push((Lost, format!("job {id} was decided, and is {} without it", before.jobs[id].status)));
        }
    }
    for id in &ledger.completed {
        if before.jobs.get(id).is_some_and(|job| job.status != "completed") {
            found.push((Lost, format!("job {id} was completed, and is {}", before.jobs[id].status)));
        }
    }
    found.extend(before.unsound.iter().map(|why| (Wrong, format!("after the cut: {why}"))));
}

/// Before anybody has repaired anything: the database is never ahead of the disk,
/// and no file under its final name is anything but whole.
fn disk_agrees(ledger: &Ledger, before: &Recovered, root: &Path, found: &mut Found) {
    for (path, history) in ledger.histories() {
        let actual = content(root, path);
        let applied = before.applied.get(path).cloned().flatten();
        let is_planned = before.planned.get(path).is_some_and(|planned| planned.contains(&actual));
        if actual == applied || is_planned {
            continue;
        }
        let ever = actual.is_none() || history.iter().any(|(_, sha256)| *sha256 == actual.as_deref());
        let words = format!("after the cut {path} holds {actual:?}, and the database says {applied:?}");
        // What was completed, and is not there, is lost whatever else is there.
        if ever || applied.is_some() {
            found.push((Lost, words.clone()));
        }
        if !ever {
            found.push((Wrong, words));
        }
    }
}

/// Opens the queue as anybody would, and does what is left to do.
fn finish(root: &Path, before: &Recovered) -> Result<Found, String> {
    let registry = Registry::builtin();
    let queue = QueueOptions::in_folder(root).create(true).types(registry.types()).open();
    let queue = Arc::new(queue.map_err(|e| e.to_string())?);
    let started = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&started);
    let options =
        WorkerOptions { concurrency: 2, drain: true, retention: Retention::forever(), ..WorkerOptions::default() };
    let worker = Worker::new(Arc::clone(&queue), registry, options).map_err(|e| e.to_string())?;
    let worker = worker.observed_by(move |event| {
        if let WorkerEvent::AttemptStarted { job_id, .. } = event {
            seen.lock().unwrap().push(job_id.clone());
        }
    });
    worker.run(&Shutdown::new()).map_err(|e| e.to_string())?;
    let mut found = reconciled(&queue)?;
    let mut known = HashSet::new();
    for id in started.lock().unwrap().iter() {
        if before.jobs.get(id).is_some_and(|job| job.decided) {
            found.push((Doubled, format!("the handler of job {id} ran after it was decided")));
        } else if !known.insert(id.clone()) {
            found.push((Wrong, format!("the handler of job {id} ran twice after the cut")));
        }
    }
    Ok(found)
}

fn reconciled(queue: &Queue) -> Result<Found, String> {
    let mut found = Found::new();
    let options = ReconcileOptions { deep: true, threads: 1, ..ReconcileOptions::default() };
    let sums = queue.reconcile(&options, |difference, _| {
        found.extend(difference.map(|difference| (Wrong, format!("reconcile: {difference:?}"))));
        true
    });
    sums.map(|_| found).map_err(|e| e.to_string())
}

/// Everything that is in the database is done, once, and the disk holds what the
/// last accepted job of each path has put there.
fn outcome(ledger: &Ledger, before: &Recovered, after: &Recovered, root: &Path, found: &mut Found) {
    for (id, job) in after.jobs.iter().filter(|(_, job)| job.status != "completed") {
        found.push((Lost, format!("job {id} ends up {}: {}", job.status, job.last_error)));
    }
    let missing = before.jobs.keys().filter(|id| !after.jobs.contains_key(*id));
    found.extend(missing.map(|id| (Lost, format!("job {id} has gone while the work was finished"))));
    found.extend(after.repeated.iter().map(|what| (Doubled, what.clone())));
    found.extend(after.unsound.iter().map(|why| (Wrong, format!("when all is done: {why}"))));
    let pruned = ledger.may_be_pruned();
    let histories = ledger.histories();
    for (path, history) in &histories {
        let accepted = |id: &str| after.jobs.contains_key(id) || pruned.contains(id);
        let expected = history.iter().rev().find(|(id, _)| accepted(id)).and_then(|(_, sha256)| *sha256);
        let actual = content(root, path);
        if actual.as_deref() != expected {
            found.push((Lost, format!("in the end {path} holds {actual:?} instead of {expected:?}")));
        }
    }
    found.extend(strangers(root, &histories).into_iter().map(|name| (Litter, name)));
}

/// What lies below the root that nobody has asked for.
fn strangers<T>(root: &Path, asked_for: &BTreeMap<&str, T>) -> Vec<String> {
    let mut names = walk(root);
    names.retain(|name| {
        let is_folder_of = |path: &str| name.ends_with('/') && path.starts_with(name.as_str());
        !name.starts_with(".jobq/") && !asked_for.keys().any(|path| *path == name || is_folder_of(path))
    });
    names
}

fn content(root: &Path, path: &str) -> Option<String> {
    std::fs::read(root.join(path)).ok().map(|bytes| sha256_hex(&bytes))
}
