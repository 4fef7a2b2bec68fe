//! A world in which days pass at once.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jobq::clock::{Clock as _, ManualClock};
use jobq::handlers::{CreateFile, DeleteFile};
use jobq::store::PruneRequest;
use jobq::worker::{Bell, Ticks};
use jobq::{ErrorKind, NewJob, Queue, Retention, WorkerOptions};

use super::harness::World;
use super::inside::{Inside, queue_with_clock};

pub const DAY: i64 = 86_400_000;

/// The system's time, and as much more as a test says.
#[derive(Default)]
pub struct Ahead(Mutex<Duration>);

impl Ahead {
    pub fn advance(&self, millis: i64) {
        *self.0.lock().unwrap() += Duration::from_millis(millis.unsigned_abs());
    }
}

impl Ticks for Ahead {
    fn now(&self) -> Instant {
        Instant::now() + *self.0.lock().unwrap()
    }

    fn wait(&self, bell: &Bell, until: Instant) {
        let until = until.checked_sub(*self.0.lock().unwrap()).unwrap_or(until);
        // The test may move this clock meanwhile.
        bell.wait(until.min(Instant::now() + Duration::from_millis(5)));
    }
}

pub struct Place {
    pub world: World,
    pub clock: Arc<ManualClock>,
    pub ticks: Arc<Ahead>,
    pub queue: Arc<Queue>,
}

impl Place {
    pub fn new() -> Self {
        let world = World::new();
        let clock = Arc::new(ManualClock::at(1_700_000_000_000));
        let queue = queue_with_clock(&world, &clock, Duration::from_secs(30));
        Self { world, clock, ticks: Arc::default(), queue }
    }

    /// A worker that drains the queue, and prunes when it starts.
    pub fn drain(&self, retention: Retention) {
        let setup = self.world.setup("drains");
        let options = WorkerOptions { drain: true, retention, ..setup.options() };
        let mut worker = Inside::start_with(&setup, options, &self.queue, Some(Arc::clone(&self.ticks) as _));
        worker.hear("stopped");
        worker.stop();
    }

    pub fn run(&self, job: impl Into<NewJob>) -> String {
        let id = self.queue.enqueue(job).unwrap().id;
        self.drain(Retention::forever());
        assert!(self.queue.get(&id).unwrap().status.is_finished());
        id
    }

    pub fn is_gone(&self, id: &str) -> bool {
        self.queue.get(id).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    pub fn now(&self) -> i64 {
        self.clock.now()
    }

    /// Time passes for everybody.
    pub fn pass(&self, millis: i64) {
        // In this order: what looks in between must not see time pass without the clock.
        self.clock.advance(millis);
        self.ticks.advance(millis);
    }

    pub fn prune(&self, job_type: Option<&str>, ended_before: i64, forget: bool) {
        let request = PruneRequest { job_type: job_type.map(str::to_owned), ended_before, failed: true, forget };
        while self.queue.prune(request.clone()).unwrap() > 0 {}
    }

    /// Path, what was done, and by whom; in order of time.
    pub fn effects(&self) -> Vec<[String; 3]> {
        let conn = self.world.sql();
        let mut statement =
            conn.prepare("SELECT path, op, job_id FROM effects ORDER BY path, applied_in IS NULL, applied_in").unwrap();
        let rows = statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?])).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }
}

pub fn effect(path: &str, op: &str, job: &str) -> [String; 3] {
    [path, op, job].map(str::to_owned)
}

pub fn write(path: &str, content: &str) -> CreateFile {
    CreateFile { overwrite: true, ..CreateFile::text(path, content) }
}

pub fn delete(path: &str) -> DeleteFile {
    DeleteFile { path: path.to_owned(), require_exists: false }
}
