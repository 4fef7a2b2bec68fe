//! A runtime that ends before the worker does.

use std::future::pending;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use jobq::{
    AsyncHandler, Context, HandlerError, Job, NewJob, Outcome, Payload, Queue, QueueOptions, Registry, Shutdown,
    Status, Worker, WorkerEvent, WorkerOptions, WorkerSummary,
};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle, Runtime};

const PATIENCE: Duration = Duration::from_secs(30);

/// What a handler waits for when the runtime ends under it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum On {
    Timer,
    Task,
    Blocking,
    /// Not the runtime's, and it never comes.
    Nothing,
}

#[derive(Serialize, Deserialize)]
struct Wait {
    on: On,
}

impl Payload for Wait {
    const TYPE: &'static str = "wait";
    type Output = ();
}

struct Waiter(Sender<()>);

impl AsyncHandler for Waiter {
    type Payload = Wait;

    async fn run(&self, _: &Context, job: Wait) -> Result<Outcome, HandlerError> {
        let _ = self.0.send(());
        match job.on {
            On::Timer => tokio::time::sleep(Duration::from_secs(3600)).await,
            On::Task => tokio::spawn(pending()).await.map_err(HandlerError::permanent)?,
            On::Blocking => {
                while tokio::task::spawn_blocking(|| ()).await.map_err(HandlerError::permanent).is_ok() {}
                return Err(HandlerError::permanent("no threads"));
            }
            On::Nothing => pending().await,
        }
        Ok(Outcome::done())
    }
}

struct World {
    queue: Arc<Queue>,
    begun: Receiver<()>,
    shutdown: Shutdown,
    stopping: Receiver<()>,
    worker: JoinHandle<jobq::Result<WorkerSummary>>,
    _folder: tempfile::TempDir,
}

impl World {
    /// A worker that hears of nothing by looking.
    fn start(runtime: &Handle, jobs: &[On]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (tell, begun) = mpsc::channel();
        let registry = Registry::new().with_async(Waiter(tell), runtime);
        let queue = QueueOptions::in_folder(folder.path()).create(true).types(registry.types()).open().unwrap();
        let queue = Arc::new(queue);
        for on in jobs {
            queue.enqueue(NewJob::of(&Wait { on: *on }).max_attempts(1)).unwrap();
        }
        let options = WorkerOptions { concurrency: 8, poll_interval: PATIENCE * 10, ..WorkerOptions::default() };
        let (stop, stopping) = mpsc::channel();
        let worker = Worker::new(Arc::clone(&queue), registry, options).unwrap().observed_by(move |event| {
            if let WorkerEvent::Stopping { .. } = event {
                let _ = stop.send(());
            }
        });
        let shutdown = Shutdown::new();
        let worker = std::thread::spawn({
            let shutdown = shutdown.clone();
            move || worker.run(&shutdown)
        });
        Self { queue, begun, shutdown, stopping, worker, _folder: folder }
    }

    fn wait_for_begun(&self, jobs: usize) {
        for _ in 0..jobs {
            self.begun.recv_timeout(PATIENCE).unwrap();
        }
    }

    fn jobs(&self) -> Vec<Job> {
        self.queue.list(&jobq::Filter::default()).unwrap()
    }

    fn stopped(self) -> (jobq::Result<WorkerSummary>, Vec<(Status, u32)>) {
        let patience = std::time::Instant::now() + PATIENCE;
        while !self.worker.is_finished() && std::time::Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
        let jobs = self.jobs();
        assert!(self.worker.is_finished(), "the worker goes on; its jobs: {jobs:?}");
        (self.worker.join().unwrap(), jobs.iter().map(|job| (job.status, job.attempts)).collect())
    }
}

fn of_one_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

#[test]
fn what_ran_goes_back_with_its_attempt_and_the_worker_says_why_it_stops() {
    for on in [On::Timer, On::Task, On::Nothing] {
        let runtime = of_one_thread();
        let world = World::start(runtime.handle(), &[on]);
        world.wait_for_begun(1);
        drop(runtime);
        let (end, jobs) = world.stopped();
        let error = end.unwrap_err().to_string();
        assert!(error.contains("`wait`") && error.contains("Keep the runtime"), "{error}");
        assert_eq!(jobs, [(Status::Pending, 0)], "{on:?}");
    }
}

#[test]
fn all_its_jobs_go_back_whatever_they_wait_for() {
    let runtime = of_one_thread();
    let world = World::start(runtime.handle(), &[On::Timer, On::Task, On::Blocking, On::Nothing]);
    world.wait_for_begun(4);
    runtime.shutdown_background();
    let (end, jobs) = world.stopped();
    assert!(end.is_err());
    assert_eq!(jobs, [(Status::Pending, 0); 4]);
}

#[test]
fn a_worker_on_the_runtime_s_own_threads_does_not_keep_it_from_ending() {
    let runtime = of_one_thread();
    let mut world = World::start(runtime.handle(), &[]);
    let (end, ended) = mpsc::channel();
    let worker = std::mem::replace(&mut world.worker, std::thread::spawn(|| Ok(WorkerSummary::default())));
    runtime.spawn_blocking(move || end.send(worker.join().unwrap().map_err(|e| e.to_string())));
    let dropper = std::thread::spawn(move || drop(runtime));
    // Idle, and told by nobody.
    let end = ended.recv_timeout(PATIENCE).unwrap();
    assert!(end.unwrap_err().contains("has ended"));
    dropper.join().unwrap();
}

#[test]
fn with_a_runtime_that_is_gone_no_job_is_tried() {
    let runtime = of_one_thread();
    let handle = runtime.handle().clone();
    drop(runtime);
    let world = World::start(&handle, &[On::Nothing]);
    // The handler goes with the worker, and with it the other side.
    assert_eq!(world.begun.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected), "it was called");
    let (end, jobs) = world.stopped();
    assert!(end.is_err());
    assert_eq!(jobs, [(Status::Pending, 0)]);
}

#[test]
fn a_runtime_that_ends_while_the_worker_stops_is_no_error() {
    let runtime = of_one_thread();
    let world = World::start(runtime.handle(), &[On::Nothing]);
    world.wait_for_begun(1);
    world.shutdown.request();
    world.stopping.recv_timeout(PATIENCE).unwrap();
    drop(runtime);
    let (end, jobs) = world.stopped();
    assert_eq!(end.unwrap().others, 1, "given back");
    assert_eq!(jobs, [(Status::Pending, 0)]);
}
