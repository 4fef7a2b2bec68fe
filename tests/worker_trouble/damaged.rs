//! A database that is damaged in one place.

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jobq::*;
use serde::{Deserialize, Serialize};

use super::world::*;

payload!(Write, "write");
struct WriteHandler(Arc<AtomicUsize>);
impl Handler for WriteHandler {
    type Payload = Write;
    fn run(&self, ctx: &Context, job: Write) -> std::result::Result<Outcome<()>, HandlerError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let staged = ctx.stage(b"paid for")?;
        Ok(Outcome::new(()).put(format!("{}.txt", job.n), staged))
    }
}

/// Exchanges the first bytes of the page that effects begin with, and returns what stood there. Whoever
/// has the database open looks at it again after the next change by another.
fn exchange(root: &Path, bytes: [u8; 8]) -> [u8; 8] {
    let conn = sql(root);
    let page = "SELECT rootpage FROM sqlite_schema WHERE name = 'effects'";
    let page: u64 = conn.query_row(page, [], |row| row.get::<_, u32>(0)).unwrap().into();
    let database = std::fs::File::options().read(true).write(true).open(root.join(".jobq/jobq.db")).unwrap();
    let mut before = [0; 8];
    database.read_exact_at(&mut before, (page - 1) * 4096).unwrap();
    database.write_all_at(&bytes, (page - 1) * 4096).unwrap();
    conn.execute("INSERT INTO jobq_meta (key, value) VALUES (hex(randomblob(8)), '')", []).unwrap();
    before
}

/// A queue whose effects can be neither read nor written, and a worker on it.
struct Damaged {
    folder: tempfile::TempDir,
    /// What stood there before.
    sound: [u8; 8],
    queue: Arc<Queue>,
    runs: Arc<AtomicUsize>,
    told: Arc<AtomicUsize>,
    over: Arc<AtomicUsize>,
    shutdown: Shutdown,
    end: std::sync::mpsc::Receiver<std::result::Result<(), String>>,
}

impl Damaged {
    fn new(concurrency: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [runs, told, over] = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
        let registry = Registry::new().with(WriteHandler(Arc::clone(&runs))).with(NopHandler);
        drop(open(folder.path(), &registry));
        sql(folder.path()).execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let sound = exchange(folder.path(), [0xA5; 8]);
        let queue = open(folder.path(), &registry);
        let (tells, ends) = (Arc::clone(&told), Arc::clone(&over));
        let options = WorkerOptions { concurrency, reconcile: false, ..WorkerOptions::default() };
        let worker = Worker::new(Arc::clone(&queue), registry, options).unwrap();
        let worker = worker.observed_by(move |event| match event {
            WorkerEvent::Trouble { error, .. } if error.contains("what came of job") && error.contains("backup") => {
                tells.fetch_add(1, Ordering::SeqCst);
            }
            WorkerEvent::TroubleOver => drop(ends.fetch_add(1, Ordering::SeqCst)),
            _ => {}
        });
        let shutdown = Shutdown::new();
        let end = start(worker, shutdown.clone());
        Self { folder, sound, queue, runs, told, over, shutdown, end }
    }

    /// Waits until trouble was told so often, since now.
    fn told(&self, times: usize) {
        let before = self.told.load(Ordering::SeqCst);
        until("trouble is told", || self.told.load(Ordering::SeqCst) >= before + times);
    }

    fn write(&self, n: u32) -> String {
        self.queue.enqueue(Write { n }).unwrap().id
    }

    fn status(&self, id: &str) -> Status {
        self.queue.get(id).unwrap().status
    }

    fn ended(&self) {
        self.end.recv_timeout(std::time::Duration::from_secs(60)).expect("it ends").unwrap();
    }
}

/// What came of a job is neither lost nor the job's fault: it is kept until it can be recorded.
/// Others go on, but no more are run in vain than are run at once.
#[test]
fn what_cannot_be_recorded_is_kept_and_not_all_are_run_for_it() {
    let world = Damaged::new(2);
    let first = world.write(1);
    world.told(1);
    let nop = world.queue.enqueue(Nop { n: 1 }).unwrap().id;
    until("another job is done", || world.status(&nop) == Status::Completed);
    let second = world.write(2);
    until("it has run", || world.runs.load(Ordering::SeqCst) == 2);
    // Both have been tried again by then.
    world.told(2);
    let third = world.write(3);
    world.told(1);
    assert_eq!(
        [&first, &second, &third].map(|id| world.status(id)),
        [Status::Claimed, Status::Claimed, Status::Pending]
    );

    exchange(world.folder.path(), world.sound);
    for (id, path) in [(first, "1.txt"), (second, "2.txt"), (third, "3.txt")] {
        until("it is recorded", || world.status(&id) == Status::Completed);
        assert_eq!(std::fs::read(world.folder.path().join(path)).unwrap(), b"paid for");
    }
    world.shutdown.request();
    world.ended();
    assert_eq!(world.runs.load(Ordering::SeqCst), 3, "none was run twice");
    assert_eq!(world.over.load(Ordering::SeqCst), 1, "that it goes on is told");
}

/// Told to go at once, a worker waits for no repair.
#[test]
fn a_worker_that_keeps_what_cannot_be_recorded_can_be_stopped() {
    let world = Damaged::new(1);
    let id = world.write(1);
    // The next try after the third is in four seconds.
    world.told(3);
    world.shutdown.request();
    world.shutdown.request();
    world.ended();
    assert_eq!(world.over.load(Ordering::SeqCst), 0, "it does not go on");
    assert!(!world.status(&id).is_finished(), "somebody will run it when the database is well");
}

/// What is broken on the disk is not mended while a worker has it open. The job says why, and the slot is free.
#[test]
fn what_cannot_be_recorded_for_long_fails_and_says_why() {
    let world = Damaged::new(1);
    let id = world.write(1);
    let nop = world.queue.enqueue(Nop { n: 1 }).unwrap().id;
    until("it has failed", || world.status(&id) == Status::Failed);
    let error = world.queue.get(&id).unwrap().last_error.unwrap();
    assert!(error.starts_with("database_damaged: ") && error.contains("backup"), "{error}");
    assert_eq!(world.runs.load(Ordering::SeqCst), 1);
    until("another job is done", || world.status(&nop) == Status::Completed);
    world.shutdown.request();
    world.ended();
}
