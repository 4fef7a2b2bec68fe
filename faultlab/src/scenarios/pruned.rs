//! Old jobs are deleted, and the log is copied into the database.

use std::sync::Arc;

use jobq::clock::{Clock as _, ManualClock, SystemClock};
use jobq::{PruneRequest, Queue, Shutdown, Worker, WorkerOptions};

use super::{NOTHING, Scenario};
use crate::child::{Child, Deed};
use crate::jobs::{self, Found, file, note};
use crate::said::Said;
use crate::world::World;

const HALF_A_DAY: i64 = 12 * 3_600_000;

/// Jobs of yesterday go, in between and at the end the log is copied; what is not
/// finished stays, and so does what is known of the files.
pub const PRUNE: Scenario = Scenario {
    name: "prune_checkpoint",
    prepare,
    deed,
    again: |queue| {
        prune(queue)?;
        queue.enqueue(note("note-2")).map(drop)
    },
    notes: &["note-1", "note-2"],
    files: &["file-1"],
    gone,
    ..NOTHING
};

fn gone() -> Vec<String> {
    let ids = |kind: &'static str| (10..40).map(move |n| format!("{kind}-{n}"));
    ids("note").chain(ids("file").take(8)).collect()
}

fn prepare(world: &World) {
    let registry = jobs::registry(&Found::default());
    let yesterday = Arc::new(ManualClock::at(SystemClock.now() - 2 * HALF_A_DAY));
    let queue = Arc::new(jobs::options(&world.root()).create(true).clock(yesterday).open().unwrap());
    let job = |id: &String| if id.starts_with("file") { file(id) } else { note(id) };
    queue.enqueue_many(gone().iter().map(job)).unwrap();
    let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
    Worker::new(Arc::clone(&queue), registry, options).unwrap().run(&Shutdown::new()).unwrap();
    queue.enqueue_many([note("note-1"), file("file-1")]).unwrap();
}

fn deed(child: &Child) -> Deed {
    let queue = child.open()?;
    child.attempt(|| prune(&queue))?;
    child.tell(&Said::Gone(gone().iter().map(|name| jobs::id(name)).collect()));
    // As any program may that knows SQLite.
    let _ = rusqlite::Connection::open(queue.database()).and_then(|conn| {
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        conn.close().map_err(|(_, error)| error)
    });
    let stored = child.attempt(|| queue.enqueue(note("note-2")))?;
    child.tell(&Said::Stored(stored.id));
    Ok(())
}

fn prune(queue: &Queue) -> jobq::Result<()> {
    let ended_before = SystemClock.now() - HALF_A_DAY;
    let old = PruneRequest { job_type: None, ended_before, failed: false, forget: false };
    while queue.prune(old.clone())? > 0 {}
    Ok(())
}
