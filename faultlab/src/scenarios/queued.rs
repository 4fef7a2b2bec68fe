//! Jobs are queued.

use super::{NOTHING, Scenario};
use crate::child::{Child, Deed};
use crate::jobs::{self, file, note};
use crate::said::Said;
use crate::world::World;

/// The first jobs of a folder in which there has never been a queue.
pub const ENQUEUE: Scenario = Scenario {
    name: "enqueue",
    creates: true,
    deed: enqueue,
    again: |queue| {
        queue.enqueue(note("note-1"))?;
        queue.enqueue(file("file-1"))?;
        Ok(())
    },
    notes: &["note-1"],
    files: &["file-1"],
    ..NOTHING
};

fn enqueue(child: &Child) -> Deed {
    let queue = child.attempt(|| jobs::options(&child.root).create(true).open())?;
    for job in [note, file].iter().zip(["note-1", "file-1"]) {
        let (make, id) = job;
        let stored = child.attempt(|| queue.enqueue(make(id)))?;
        child.tell(&Said::Stored(stored.id));
    }
    Ok(())
}

const FIRST: &[&str] =
    &["note-01", "note-02", "note-03", "note-04", "note-05", "note-06", "note-07", "note-08", "note-09", "note-10"];
const SECOND: &[&str] =
    &["note-11", "note-12", "note-13", "note-14", "note-15", "note-16", "note-17", "note-18", "note-19", "note-20"];

static ALL: [&str; 20] = {
    let mut all = [""; 20];
    let mut at = 0;
    while at < 10 {
        (all[at], all[at + 10]) = (FIRST[at], SECOND[at]);
        at += 1;
    }
    all
};

/// Many at once, twice: all of each or none.
pub const ENQUEUE_MANY: Scenario = Scenario {
    name: "enqueue_many",
    prepare: |world| drop(jobs::options(&world.root()).create(true).open().unwrap()),
    deed: enqueue_many,
    again: |queue| {
        for part in [FIRST, SECOND] {
            queue.enqueue_many(part.iter().map(|id| note(id)))?;
        }
        Ok(())
    },
    notes: &ALL,
    batches: &[FIRST, SECOND],
    ..NOTHING
};

fn enqueue_many(child: &Child) -> Deed {
    let queue = child.open()?;
    for part in [FIRST, SECOND] {
        for stored in child.attempt(|| queue.enqueue_many(part.iter().map(|id| note(id))))? {
            child.tell(&Said::Stored(stored.id));
        }
    }
    Ok(())
}

/// A queue with these jobs in it.
pub fn with_jobs(world: &World, notes: &[&str], files: &[&str]) {
    let queue = jobs::options(&world.root()).create(true).open().unwrap();
    let jobs = notes.iter().map(|id| note(id)).chain(files.iter().map(|id| file(id)));
    queue.enqueue_many(jobs).unwrap();
}
