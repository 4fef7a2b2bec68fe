//! What somebody was told, and when: each note has the number of things that had
//! been done to the disk when it came.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Note {
    /// The queue is there.
    Opened,
    /// This is about to be asked for.
    Begun(Operation),
    /// It was accepted; by its number.
    Accepted(usize),
    /// A worker says that what this job will do is durable.
    Decided(String),
    /// A worker says that this job is done.
    Completed(String),
    /// Jobs that are done may be deleted from now on.
    Pruning,
}

/// Jobs that are accepted together or not at all.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Operation {
    pub number: usize,
    pub name: String,
    pub jobs: Vec<PlannedJob>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlannedJob {
    pub id: String,
    pub changes: Vec<Change>,
}

/// What a file is to hold; nothing if it is to go.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Change {
    pub path: String,
    pub sha256: Option<String>,
}

/// What the power cuts are made of.
#[derive(Serialize, Deserialize)]
pub struct Recorded {
    /// How much was done to the disk before the work began.
    pub start: usize,
    pub notes: Vec<Stamped>,
}

impl Recorded {
    /// What was told until then, for those who go on from there.
    pub fn until(&self, position: usize) -> Vec<Stamped> {
        let told = self.notes.iter().filter(|stamped| stamped.position <= position);
        told.map(|stamped| Stamped { position: 0, note: stamped.note.clone() }).collect()
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Stamped {
    pub position: usize,
    pub note: Note,
}

/// What had been asked for and promised when the power went.
#[derive(Default)]
pub struct Ledger {
    pub opened: bool,
    pub begun: Vec<Operation>,
    /// Numbers of operations.
    accepted: Vec<usize>,
    pub decided: Vec<String>,
    pub completed: Vec<String>,
    /// How many operations had been asked for when jobs were last deleted.
    pruned: usize,
}

impl Ledger {
    pub fn at(notes: &[Stamped], position: usize) -> Self {
        let mut ledger = Self::default();
        for stamped in notes.iter().filter(|stamped| stamped.position <= position) {
            match stamped.note.clone() {
                Note::Opened => ledger.opened = true,
                Note::Begun(operation) => ledger.begun.push(operation),
                Note::Accepted(number) => ledger.accepted.push(number),
                Note::Decided(job) => ledger.decided.push(job),
                Note::Completed(job) => ledger.completed.push(job),
                Note::Pruning => ledger.pruned = ledger.begun.len(),
            }
        }
        ledger
    }

    pub fn read(path: &Path, position: usize) -> Self {
        let recorded: Recorded = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        Self::at(&recorded.notes, position)
    }

    pub fn was_accepted(&self, operation: &Operation) -> bool {
        self.accepted.contains(&operation.number)
    }

    /// Ids of jobs that may have been deleted since they were done. Whoever deletes
    /// waits until all that was asked for has been answered.
    pub fn may_be_pruned(&self) -> HashSet<&str> {
        self.begun[..self.pruned].iter().flat_map(|operation| &operation.jobs).map(|job| job.id.as_str()).collect()
    }

    /// What each path was to hold, one job after the other. Whoever asks for a
    /// change of a path has been answered about the one before.
    pub fn histories(&self) -> BTreeMap<&str, Vec<(&str, Option<&str>)>> {
        let mut histories: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for job in self.begun.iter().flat_map(|operation| &operation.jobs) {
            for change in &job.changes {
                histories.entry(change.path.as_str()).or_default().push((job.id.as_str(), change.sha256.as_deref()));
            }
        }
        histories
    }
}
