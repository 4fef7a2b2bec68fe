//! Async handlers in a worker.

use std::future::{Future, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jobq::worker::{AttemptEnd, AttemptReport};
use jobq::{
    AsyncHandler, Context, Ended, HandlerError, Job, NewJob, Outcome, Payload, Queue, QueueOptions, Registry, Shutdown,
    Status, Worker, WorkerEvent, WorkerOptions, WorkerSummary,
};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Task {
    /// Sleeps, writes a file, and leaves its number.
    Write(u32),
    Panic,
    /// Awaits what never comes.
    Never,
    /// The same, but ends when it is told that it should.
    Heedful,
    /// Waits until two of them are at it.
    Meet,
}

#[derive(Serialize, Deserialize)]
struct Do {
    task: Task,
}

impl Payload for Do {
    const TYPE: &'static str = "do";
    type Output = Option<u32>;
}

struct Doer {
    /// Told what begins, what is dropped, and what hooks were called.
    told: mpsc::UnboundedSender<&'static str>,
    met: AtomicUsize,
}

/// Tells that it was dropped.
struct Guard(mpsc::UnboundedSender<&'static str>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

impl AsyncHandler for Doer {
    type Payload = Do;

    async fn run(&self, ctx: &Context, job: Do) -> Result<Outcome<Option<u32>>, HandlerError> {
        let _guard = Guard(self.told.clone());
        // Not `Send`: it stays on the job's thread.
        let thread = std::rc::Rc::new(std::thread::current().id());
        let _ = self.told.send("begun");
        match job.task {
            Task::Write(number) => {
                tokio::time::sleep(Duration::from_millis(1)).await;
                let elsewhere = tokio::spawn(async move { number }).await;
                let number = elsewhere.map_err(HandlerError::permanent)?;
                assert_eq!(*thread, std::thread::current().id());
                ctx.checkpoint(&number)?;
                let staged = ctx.stage(number.to_string().as_bytes())?;
                Ok(Outcome::new(Some(number)).put(format!("{number}.txt"), staged))
            }
            Task::Panic => {
                tokio::task::yield_now().await;
                panic!("the handler's own words")
            }
            Task::Never => pending().await,
            Task::Heedful => Err(ctx.stopped().await),
            Task::Meet => {
                self.met.fetch_add(1, Ordering::AcqRel);
                while self.met.load(Ordering::Acquire) < 2 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Ok(Outcome::new(None))
            }
        }
    }

    fn on_success(&self, _: &Ended<'_>) -> Result<(), HandlerError> {
        self.told.send("success").map_err(HandlerError::permanent)
    }

    fn on_failure(&self, _: &Ended<'_>) -> Result<(), HandlerError> {
        self.told.send("failure").map_err(HandlerError::permanent)
    }
}

struct World {
    queue: Arc<Queue>,
    shutdown: Shutdown,
    told: mpsc::UnboundedReceiver<&'static str>,
    attempts: mpsc::UnboundedReceiver<AttemptReport>,
    end: oneshot::Receiver<jobq::Result<WorkerSummary>>,
    _folder: tempfile::TempDir,
}

impl World {
    /// A worker that runs beside the runtime's only thread.
    fn start(job: impl Into<NewJob>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (tell, told) = mpsc::unbounded_channel();
        let (report, attempts) = mpsc::unbounded_channel();
        let (ended, end) = oneshot::channel();
        let registry = Registry::new().with_async(Doer { told: tell, met: AtomicUsize::new(0) }, &Handle::current());
        let queue = QueueOptions::in_folder(folder.path()).create(true).types(registry.types()).open().unwrap();
        let queue = Arc::new(queue);
        queue.enqueue(job).unwrap();
        let options = WorkerOptions { concurrency: 2, ..WorkerOptions::default() };
        let worker = Worker::new(Arc::clone(&queue), registry, options).unwrap().observed_by(move |event| {
            if let WorkerEvent::Attempt(report_of) = event {
                let _ = report.send(report_of.clone());
            }
        });
        let shutdown = Shutdown::new();
        std::thread::spawn({
            let shutdown = shutdown.clone();
            move || ended.send(worker.run(&shutdown))
        });
        Self { queue, shutdown, told, attempts, end, _folder: folder }
    }

    async fn attempt(&mut self) -> AttemptReport {
        soon(self.attempts.recv()).await.unwrap()
    }

    async fn hear(&mut self, what: &str) {
        while soon(self.told.recv()).await.unwrap() != what {}
    }

    /// Everything it was told until the worker's end, and the job as it is then.
    async fn stop(mut self) -> (Vec<&'static str>, Job) {
        self.shutdown.request();
        soon(self.end).await.unwrap().unwrap();
        let mut told = Vec::new();
        while let Ok(what) = self.told.try_recv() {
            told.push(what);
        }
        (told, only_job(&self.queue))
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it should have happened by now")
}

fn on_one_thread(test: impl Future<Output = ()>) {
    Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
}

fn job(task: Task) -> NewJob {
    NewJob::of(&Do { task })
}

fn only_job(queue: &Queue) -> Job {
    queue.list(&jobq::Filter::default()).unwrap().remove(0)
}

#[test]
fn a_future_sleeps_spawns_stages_and_completes_its_job() {
    on_one_thread(async {
        let mut world = World::start(job(Task::Write(7)));
        assert_eq!(world.attempt().await.outcome, AttemptEnd::Completed);
        world.hear("success").await;
        assert_eq!(std::fs::read_to_string(world.queue.root().join("7.txt")).unwrap(), "7");
        let id = only_job(&world.queue).id;
        assert_eq!(world.queue.result::<Do>(&id).unwrap(), Some(Some(7)));
        world.stop().await;
    });
}

#[test]
fn a_panic_is_a_failed_attempt() {
    on_one_thread(async {
        let mut world = World::start(job(Task::Panic).max_attempts(1));
        let attempt = world.attempt().await;
        assert_eq!(attempt.outcome, AttemptEnd::Failed);
        let error = attempt.error.unwrap();
        assert_eq!(error.code, "handler_panic");
        assert!(error.message.contains("the handler's own words"));
        world.hear("failure").await;
        world.stop().await;
    });
}

#[test]
fn at_its_timeout_the_future_is_dropped_where_it_awaits() {
    on_one_thread(async {
        let mut world = World::start(job(Task::Never).max_attempts(1).timeout(Duration::from_millis(50)));
        let attempt = world.attempt().await;
        assert_eq!(attempt.outcome, AttemptEnd::Failed);
        assert_eq!(attempt.error.unwrap().code, "job_timeout");
        world.hear("dropped").await;
        // Its thread is not lost: the next job runs, with both at once.
        world.queue.enqueue(job(Task::Meet).no_key()).unwrap();
        world.queue.enqueue(job(Task::Meet).no_key()).unwrap();
        assert_eq!(world.attempt().await.outcome, AttemptEnd::Completed);
        assert_eq!(world.attempt().await.outcome, AttemptEnd::Completed);
        world.stop().await;
    });
}

#[test]
fn a_cancelled_job_s_future_is_dropped() {
    on_one_thread(async {
        for task in [Task::Never, Task::Heedful] {
            let mut world = World::start(job(task));
            world.hear("begun").await;
            world.queue.cancel(&only_job(&world.queue).id).unwrap();
            assert_eq!(world.attempt().await.outcome, AttemptEnd::Cancelled);
            world.hear("dropped").await;
            let (_, job) = world.stop().await;
            assert_eq!(job.status, Status::Cancelled);
        }
    });
}

#[test]
fn told_twice_a_worker_does_not_wait_for_a_future_that_does_not_heed_it() {
    on_one_thread(async {
        let mut world = World::start(job(Task::Meet).no_key());
        world.hear("begun").await;
        world.shutdown.request();
        let queue = Arc::clone(&world.queue);
        assert_eq!(only_job(&queue).status, Status::Claimed);
        world.shutdown.request();
        assert_eq!(world.attempt().await.outcome, AttemptEnd::Released);
        world.hear("dropped").await;
        let job = only_job(&queue);
        assert_eq!((job.status, job.attempts), (Status::Pending, 0));
        world.stop().await;
    });
}

#[test]
fn a_future_that_heeds_it_ends_with_the_worker_and_costs_no_attempt() {
    on_one_thread(async {
        let mut world = World::start(job(Task::Heedful));
        world.hear("begun").await;
        let (told, job) = world.stop().await;
        assert_eq!(told, ["dropped"]);
        assert_eq!((job.status, job.attempts), (Status::Pending, 0));
    });
}

#[test]
fn what_is_returned_when_told_to_stop_counts() {
    struct Quick;
    impl AsyncHandler for Quick {
        type Payload = Do;
        async fn run(&self, ctx: &Context, _: Do) -> Result<Outcome<Option<u32>>, HandlerError> {
            let _told = ctx.stopped().await;
            Ok(Outcome::new(Some(1)))
        }
    }
    let folder = tempfile::tempdir().unwrap();
    // Nothing here needs a driver, so nobody has to be at it.
    let runtime = Builder::new_current_thread().build().unwrap();
    let registry = Registry::new().with_async(Quick, runtime.handle());
    let queue = QueueOptions::in_folder(folder.path()).create(true).types(registry.types()).open().unwrap();
    let queue = Arc::new(queue);
    let id = queue.enqueue(job(Task::Never).timeout(Duration::from_millis(20))).unwrap().id;
    let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
    Worker::new(Arc::clone(&queue), registry, options).unwrap().run(&Shutdown::new()).unwrap();
    assert_eq!(queue.result::<Do>(&id).unwrap(), Some(Some(1)));
}
