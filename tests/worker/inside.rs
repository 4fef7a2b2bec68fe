//! A worker in this process, for tests that own its clocks.

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jobq::clock::ManualClock;
use jobq::worker::{Bell, Ticks};
use jobq::{Queue, QueueOptions, Result, Shutdown, Worker, WorkerEvent, WorkerOptions, WorkerSummary};

use super::child::{Setup, words};
use super::harness::{PATIENCE, World};

pub struct Inside {
    shutdown: Shutdown,
    thread: Option<JoinHandle<Result<WorkerSummary>>>,
    lines: Receiver<String>,
    pub heard: Vec<String>,
}

impl Inside {
    /// `ticks`: the monotonic time, if it is not to be the system's.
    pub fn start(setup: &Setup, queue: &Arc<Queue>, ticks: Option<Arc<dyn Ticks>>) -> Self {
        Self::start_with(setup, setup.options(), queue, ticks)
    }

    /// With options that a child process cannot be given.
    pub fn start_with(
        setup: &Setup,
        options: WorkerOptions,
        queue: &Arc<Queue>,
        ticks: Option<Arc<dyn Ticks>>,
    ) -> Self {
        let (send, lines) = channel();
        let send = Mutex::new(send);
        let tell = move |event: &WorkerEvent| {
            if let Some(words) = words(event) {
                let _ = send.lock().unwrap().send(words);
            }
        };
        let mut worker = Worker::new(Arc::clone(queue), setup.registry(), options).unwrap().observed_by(tell);
        if let Some(ticks) = ticks {
            worker = worker.ticks(ticks);
        }
        let shutdown = Shutdown::new();
        let asked = shutdown.clone();
        let thread = Some(std::thread::spawn(move || worker.run(&asked)));
        Self { shutdown, thread, lines, heard: Vec::new() }
    }

    /// Waits for a line that begins with these words; returns the rest of it.
    #[track_caller]
    pub fn hear(&mut self, words: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("waited for `{words}`, heard only {:?}", self.heard));
            self.heard.push(line.clone());
            if let Some(rest) = line.strip_prefix(words) {
                return rest.trim_start().to_owned();
            }
        }
    }

    pub fn stop(&mut self) -> WorkerSummary {
        self.shutdown.request();
        self.thread.take().unwrap().join().unwrap().unwrap()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // A failed check must not wait for a worker that goes on.
        self.shutdown.request();
        self.shutdown.request();
    }
}

/// The world's queue once more, with a clock that the test moves.
pub fn queue_with_clock(world: &World, clock: &Arc<ManualClock>, busy: Duration) -> Arc<Queue> {
    let types = world.setup("inside").registry().types();
    let root: &Path = &world.root();
    let queue = QueueOptions::in_folder(root).types(types).busy_timeout(busy).clock(Arc::clone(clock) as _);
    Arc::new(queue.open().unwrap())
}

/// Time that passes only by being waited for, and then at once.
pub struct Leaps {
    start: Instant,
    passed: Mutex<Duration>,
}

impl Leaps {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { start: Instant::now(), passed: Mutex::default() })
    }
}

impl Ticks for Leaps {
    fn now(&self) -> Instant {
        self.start + *self.passed.lock().unwrap()
    }

    fn wait(&self, _: &Bell, until: Instant) {
        let mut passed = self.passed.lock().unwrap();
        *passed = (*passed).max(until.saturating_duration_since(self.start));
        drop(passed);
        // The other threads need real time.
        std::thread::sleep(Duration::from_millis(1));
    }
}
