//! Jobs are claimed, give signs of life, and come to their ends.

use super::queued::with_jobs;
use super::{NOTHING, Scenario};
use crate::by_hand::Hand;
use crate::child::{Child, Deed};
use crate::jobs::{self, note_with_next};

/// Two of three jobs are claimed and not started: that costs them nothing.
pub const CLAIM: Scenario = Scenario {
    name: "claim",
    prepare: |world| with_jobs(world, &["note-1", "note-2"], &["file-1"]),
    deed: |child| {
        let queue = child.open()?;
        let hand = Hand::new(child, &queue)?;
        hand.claim(1)?;
        hand.claim(1).map(drop)
    },
    notes: &["note-1", "note-2"],
    files: &["file-1"],
    ..NOTHING
};

/// What the last sign of life has said is there for the next attempt.
pub const HEARTBEAT: Scenario = Scenario {
    name: "heartbeat",
    prepare: |world| with_jobs(world, &["note-1"], &[]),
    deed: heartbeat,
    notes: &["note-1"],
    ..NOTHING
};

fn heartbeat(child: &Child) -> Deed {
    let queue = child.open()?;
    let hand = Hand::new(child, &queue)?;
    for job in hand.claim(1)? {
        hand.start(&job)?;
        for checkpoint in 1..=4 {
            hand.beat(&job, checkpoint)?;
        }
    }
    Ok(())
}

/// Four files, each staged, decided and applied.
pub const CREATE_FILE: Scenario = Scenario {
    name: "create_file",
    prepare: |world| with_jobs(world, &[], &["file-1", "file-2", "file-3", "file-4"]),
    deed: |child| Hand::new(child, &child.open()?)?.drain(),
    files: &["file-1", "file-2", "file-3", "file-4"],
    ..NOTHING
};

/// Without effects, each with a job that comes of it.
pub const COMPLETE: Scenario = Scenario {
    name: "complete",
    prepare: |world| {
        let queue = jobs::options(&world.root()).create(true).open().unwrap();
        queue.enqueue_many([note_with_next("note-1"), note_with_next("note-2")]).unwrap();
    },
    deed: |child| Hand::new(child, &child.open()?)?.drain(),
    notes: &["note-1", "note-2", "next-note-1", "next-note-2"],
    ..NOTHING
};
