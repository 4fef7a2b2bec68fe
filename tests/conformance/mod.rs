//! The store conformance suite: what any [`Store`] has to do, written against
//! the trait alone. A store passes it with a [`Harness`] and one line of
//! `conformance!`.

pub mod admit;
pub mod apply;
pub mod attempts;
pub mod cancel;
pub mod commit;
pub mod completed;
pub mod decide;
pub mod dedup;
pub mod draft;
pub mod enqueue;
pub mod events;
pub mod expected;
pub mod fencing;
pub mod follow_ups;
pub mod holds;
pub mod interleavings;
pub mod limits;
pub mod order;
pub mod outlook;
pub mod pauses;
pub mod prune;
pub mod reading;
pub mod recent;
pub mod reclaim;
pub mod repair;
pub mod repeated;
pub mod retry;
pub mod settle;
pub mod stats;
pub mod waiting;
pub mod world;
#[macro_use]
mod suite;

use std::sync::Arc;

use jobq::JobTypes;
use jobq::clock::Clock;
use jobq::store::Store;

/// How to make a store of one kind.
pub trait Harness {
    type S: Store;
    /// What has to stay there while the store is used.
    type Place;

    /// A fresh, empty store that takes its time from `clock` and knows `types`.
    fn open(clock: Arc<dyn Clock>, types: JobTypes) -> (Self::S, Self::Place);
}

/// A folder for one test, in memory where the system has such a place: what is
/// under test here is not the disk.
pub fn memory_folder() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder for the test")
}
