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

payload!(Pay, "pay");
struct PayHandler(Arc<AtomicUsize>);
impl Handler for PayHandler {
    type Payload = Pay;
    fn run(&self, _: &Context, job: Pay) -> std::result::Result<Outcome<()>, HandlerError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        if job.n == 1 { Ok(Outcome::new(())) } else { Err(HandlerError::retry("the service said no")) }
    }
}

/// Exchanges the first bytes of the page that a table begins with, and returns what stood there. Whoever
/// has the database open looks at it again after the next change by another.
fn exchange(root: &Path, table: &str, bytes: [u8; 8]) -> [u8; 8] {
    let conn = sql(root);
    let page = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let page: u64 = conn.query_row(page, [table], |row| row.get::<_, u32>(0)).unwrap().into();
    let database = std::fs::File::options().read(true).write(true).open(root.join(".jobq/jobq.db")).unwrap();
    let mut before = [0; 8];
    database.read_exact_at(&mut before, (page - 1) * 4096).unwrap();
    database.write_all_at(&bytes, (page - 1) * 4096).unwrap();
    conn.execute("INSERT INTO jobq_meta (key, value) VALUES (hex(randomblob(8)), '')", []).unwrap();
    before
}

/// What the worker has told, and how often something was run.
#[derive(Default)]
struct Told {
    runs: Arc<AtomicUsize>,
    /// That something is kept.
    kept: AtomicUsize,
    /// That something is set aside.
    aside: AtomicUsize,
    over: AtomicUsize,
    unrecorded: AtomicUsize,
}

impl Told {
    fn hear(&self, event: &WorkerEvent) {
        let count =
            match event {
                WorkerEvent::Trouble { error, .. }
                    if error.contains("what came of job") && error.contains("backup") =>
                {
                    if error.contains("does not run it again") { &self.aside } else { &self.kept }
                }
                WorkerEvent::TroubleOver => &self.over,
                WorkerEvent::Attempt(report) if report.outcome == worker::AttemptEnd::Unrecorded => &self.unrecorded,
                _ => return,
            };
        count.fetch_add(1, Ordering::SeqCst);
    }
}

/// A queue in which a table can be neither read nor written, and a worker on it.
struct Damaged {
    folder: tempfile::TempDir,
    table: &'static str,
    /// What stood there before.
    sound: [u8; 8],
    queue: Arc<Queue>,
    told: Arc<Told>,
    shutdown: Shutdown,
    end: std::sync::mpsc::Receiver<std::result::Result<(), String>>,
}

impl Damaged {
    fn new(concurrency: usize) -> Self {
        Self::with("effects", concurrency, |_| {})
    }

    /// The same, and what is done before the worker starts.
    fn with(table: &'static str, concurrency: usize, before: impl FnOnce(&Queue)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let told = Arc::new(Told::default());
        drop(open(folder.path(), &registry(&told)));
        sql(folder.path()).execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let sound = exchange(folder.path(), table, [0xA5; 8]);
        let queue = open(folder.path(), &registry(&told));
        before(&queue);
        let options = WorkerOptions { concurrency, reconcile: false, ..WorkerOptions::default() };
        let worker = Worker::new(Arc::clone(&queue), registry(&told), options).unwrap();
        let hears = Arc::clone(&told);
        let shutdown = Shutdown::new();
        let end = start(worker.observed_by(move |event| hears.hear(event)), shutdown.clone());
        Self { folder, table, sound, queue, told, shutdown, end }
    }

    /// Waits until it was told so often that something is kept, since now.
    fn told(&self, times: usize) {
        let before = self.told.kept.load(Ordering::SeqCst);
        until("trouble is told", || self.told.kept.load(Ordering::SeqCst) >= before + times);
    }

    fn write(&self, n: u32) -> String {
        self.queue.enqueue(Write { n }).unwrap().id
    }

    fn status(&self, id: &str) -> Status {
        self.queue.get(id).unwrap().status
    }

    fn runs(&self) -> usize {
        self.told.runs.load(Ordering::SeqCst)
    }

    fn over(&self) -> usize {
        self.told.over.load(Ordering::SeqCst)
    }

    fn heal(&self) {
        exchange(self.folder.path(), self.table, self.sound);
    }

    fn ended(&self) {
        self.end.recv_timeout(std::time::Duration::from_secs(60)).expect("it ends").unwrap();
    }

    /// With jobs that stay its own, and whoever started it is told of these.
    fn ended_without(&self, jobs: &[&String]) {
        let error = self.end.recv_timeout(std::time::Duration::from_secs(60)).expect("it ends").unwrap_err();
        assert!(error.contains("they stay claimed") && jobs.iter().all(|id| error.contains(*id)), "{error}");
    }

    /// Another worker does what is left.
    fn drain(&self) {
        let worker = Worker::new(Arc::clone(&self.queue), registry(&self.told), drain()).unwrap();
        worker.run(&Shutdown::new()).unwrap();
    }
}

fn registry(told: &Told) -> Registry {
    let runs = || Arc::clone(&told.runs);
    Registry::new().with(WriteHandler(runs())).with(PayHandler(runs())).with(NopHandler)
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
    until("it has run", || world.runs() == 2);
    // Both have been tried again by then.
    world.told(2);
    let third = world.write(3);
    world.told(1);
    assert_eq!(
        [&first, &second, &third].map(|id| world.status(id)),
        [Status::Claimed, Status::Claimed, Status::Pending]
    );

    world.heal();
    for (id, path) in [(first, "1.txt"), (second, "2.txt"), (third, "3.txt")] {
        until("it is recorded", || world.status(&id) == Status::Completed);
        assert_eq!(std::fs::read(world.folder.path().join(path)).unwrap(), b"paid for");
    }
    world.shutdown.request();
    world.ended();
    assert_eq!(world.runs(), 3, "none was run twice");
    assert_eq!(world.over(), 1, "that it goes on is told");
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
    world.ended_without(&[&id]);
    assert_eq!(world.over(), 0, "it does not go on");
    assert!(!world.status(&id).is_finished(), "somebody will run it when the database is well");
    assert_eq!(world.told.unrecorded.load(Ordering::SeqCst), 1, "and how it ended is");
    world.heal();
    world.drain();
    let job = world.queue.get(&id).unwrap();
    assert_eq!((job.status, job.attempts), (Status::Completed, 2), "the attempt that was made counts");
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
    assert_eq!(world.runs(), 1);
    until("another job is done", || world.status(&nop) == Status::Completed);
    assert_eq!(world.over(), 0, "that it was given up is no recovery");
    world.shutdown.request();
    world.ended();
}

/// Not even that it failed can be written down: it is run no more all the same, by nobody.
#[test]
fn what_can_be_written_down_in_no_way_is_not_run_without_end() {
    let mut ids = Vec::new();
    let world = Damaged::with("retry_guards", 2, |queue| {
        for n in [1, 2] {
            let job = NewJob::from(Pay { n }).max_attempts(1).lane(format!("lane {n}"));
            ids.push(queue.enqueue(job).unwrap().id);
        }
    });
    let aside = || world.told.aside.load(Ordering::SeqCst);
    // Told again with each try.
    until("both are given up", || aside() >= 3 || world.runs() > 2);
    assert_eq!(world.runs(), 2, "each once");
    let nop = world.queue.enqueue(Nop { n: 1 }).unwrap().id;
    until("another job is done", || world.status(&nop) == Status::Completed);
    world.shutdown.request();
    world.ended_without(&ids.iter().collect::<Vec<_>>());
    let told = &world.told;
    assert_eq!((world.over(), told.unrecorded.load(Ordering::SeqCst)), (0, 2), "how each ended is told once");
    let jobs = |status| ids.iter().all(|id| world.queue.get(id).is_ok_and(|job| (job.status, job.attempts) == status));
    assert!(jobs((Status::Claimed, 1)), "no attempt is given back");

    world.heal();
    world.drain();
    assert!(jobs((Status::Failed, 1)), "the attempt was their last");
    assert_eq!(world.runs(), 2);
}

/// No more are run in vain than at once, and after these one at a time, to see whether it has got better.
#[test]
fn not_all_that_is_queued_is_run_in_vain() {
    let world = Damaged::with("effects", 2, |queue| {
        let jobs = (1..=40).map(|n| NewJob::from(Write { n }));
        queue.enqueue_many(jobs).unwrap();
    });
    let count = |status| {
        let count = "SELECT count(*) FROM jobs WHERE status = ?1";
        sql(world.folder.path()).query_row(count, [status], |row| row.get::<_, u32>(0)).unwrap()
    };
    until("one is run to see", || world.runs() > 2);
    assert_eq!((world.runs(), count("failed")), (3, 2));
    world.told(2);
    assert_eq!((world.runs(), count("failed"), world.over()), (3, 2, 0));
    world.heal();
    until("it is well", || count("completed") == 38);
    assert_eq!((world.runs(), world.over()), (40, 1));
    world.shutdown.request();
    world.ended();
}
