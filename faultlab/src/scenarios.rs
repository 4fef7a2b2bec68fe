//! What a process does when a fault comes, and what must be so in the end.

mod commits;
mod lives;
mod pruned;
mod queued;
mod worked;

use std::collections::BTreeMap;

use jobq::Queue;

use crate::by_hand::Hand;
use crate::child::{Child, Deed};
use crate::jobs;
use crate::snapshot::Row;
use crate::world::{Tree, World};

pub use commits::Change;
pub use worked::{IN_TROUBLE, WORKER, enqueued};

/// One of them. Everything has a name of its own, so that it can be asked for
/// again.
pub struct Scenario {
    pub name: &'static str,
    /// The process makes the queue.
    pub creates: bool,
    /// What the world is when the process begins.
    pub prepare: fn(&World),
    /// What the process does.
    pub deed: fn(&Child) -> Deed,
    /// What one who got no answer asks for again.
    pub again: fn(&Queue) -> jobq::Result<()>,
    /// Jobs that a handler has completed in the end, and files they have made.
    pub notes: &'static [&'static str],
    pub files: &'static [&'static str],
    /// Commits that are there whole in the end.
    pub changes: &'static [&'static Change],
    /// Jobs that were queued together, if they were: all of them or none.
    pub batches: &'static [&'static [&'static str]],
    /// Jobs that are there no more, which have made files.
    pub gone: fn() -> Vec<String>,
}

/// One that does nothing, to be completed.
const NOTHING: Scenario = Scenario {
    name: "",
    creates: false,
    prepare: |_| {},
    deed: |_| Ok(()),
    again: |_| Ok(()),
    notes: &[],
    files: &[],
    changes: &[],
    batches: &[],
    gone: Vec::new,
};

/// The nine.
pub const ALL: &[Scenario] = &[
    queued::ENQUEUE,
    queued::ENQUEUE_MANY,
    lives::CLAIM,
    lives::HEARTBEAT,
    lives::CREATE_FILE,
    lives::COMPLETE,
    commits::COMMIT,
    commits::ROLL_FORWARD,
    pruned::PRUNE,
];

/// What a process does that was told this name.
pub fn deed(name: &str) -> Option<fn(&Child) -> Deed> {
    match name {
        "recover" => Some(recover),
        "worker" => Some(WORKER.deed),
        "accept" => Some(commits::accept),
        "accept_and_half_apply" => Some(commits::accept_and_half_apply),
        _ => ALL.iter().find(|scenario| scenario.name == name).map(|scenario| scenario.deed),
    }
}

/// Comes after somebody who has died, and finishes what there is.
fn recover(child: &Child) -> Deed {
    let queue = child.attempt(|| jobs::options(&child.root).create(true).open())?;
    Hand::new(child, &queue)?.drain()
}

impl Scenario {
    /// Every file that may ever be seen, with what it may hold.
    pub fn may_hold(&self, path: &str, content: &[u8]) -> bool {
        let made = self.made().any(|name| path == format!("out/{name}.txt") && content == jobs::text(&name).as_bytes());
        made || self.changes.iter().any(|change| change.may_hold(path, content))
    }

    /// What is there in the end.
    pub fn end(&self) -> Tree {
        let mut end = Tree::new();
        for name in self.made() {
            put(&mut end, &format!("out/{name}.txt"), &jobs::text(&name));
        }
        for change in self.changes {
            change.complete(&mut end);
        }
        end
    }

    fn made(&self) -> impl Iterator<Item = String> {
        let gone = (self.gone)().into_iter().filter(|name| name.starts_with("file"));
        self.files.iter().map(|name| (*name).to_owned()).chain(gone)
    }

    /// Whether each batch is there whole or not at all.
    pub fn batches(&self, rows: &BTreeMap<String, Row>) -> Vec<(String, bool)> {
        let whole = |batch: &&[&str]| {
            let there = batch.iter().filter(|name| rows.contains_key(&jobs::id(name))).count();
            (batch.join(" "), there == 0 || there == batch.len())
        };
        self.batches.iter().map(whole).collect()
    }

    /// All jobs that are there in the end, with handlers or without.
    pub fn jobs(&self) -> Vec<String> {
        let handled = self.handled().into_iter();
        handled.chain(self.changes.iter().map(|change| change.id.to_owned())).collect()
    }

    /// Those that a handler has run.
    pub fn handled(&self) -> Vec<String> {
        let of_changes = self.changes.iter().flat_map(|change| change.jobs.iter().map(|(id, _)| (*id).to_owned()));
        self.notes.iter().chain(self.files).map(|name| jobs::id(name)).chain(of_changes).collect()
    }
}

/// A file, and the folders it is in.
pub fn put(tree: &mut Tree, path: &str, content: &str) {
    for (at, _) in path.match_indices('/') {
        tree.insert(path[..=at].to_owned(), Vec::new());
    }
    tree.insert(path.to_owned(), content.as_bytes().to_vec());
}
