//! A database that goes away, or is replaced, while a worker has it open.

use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use jobq::*;
use serde::{Deserialize, Serialize};

use super::world::*;

/// So long that nothing is noticed by it.
const NEVER: Duration = Duration::from_secs(3600);

fn remove(root: &Path) {
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(root.join(format!(".jobq/jobq.db{end}")));
    }
}

/// What it ends with, when it does.
struct Ending(mpsc::Receiver<Result<WorkerSummary>>);

impl Ending {
    #[track_caller]
    fn come(self) -> Result<WorkerSummary> {
        self.0.recv_timeout(Duration::from_secs(60)).expect("the worker ends")
    }
}

fn run(worker: Worker, shutdown: &Shutdown) -> Ending {
    let ((send, end), shutdown) = (mpsc::channel(), shutdown.clone());
    std::thread::spawn(move || send.send(worker.run(&shutdown)));
    Ending(end)
}

/// Nothing that it still does could be recorded where others see it.
#[test]
fn a_handler_is_told_to_stop_when_the_database_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(StuckHandler);
    let queue = open(folder.path(), &registry);
    queue.enqueue(Stuck { n: 1 }).unwrap();
    let (send, started) = mpsc::channel();
    let options = WorkerOptions { poll_interval: Duration::from_millis(20), ..WorkerOptions::default() };
    let worker = Worker::new(queue, registry, options).unwrap().observed_by(move |event| {
        if let WorkerEvent::AttemptStarted { .. } = event {
            let _ = send.send(());
        }
    });
    let worker = run(worker, &Shutdown::new());
    started.recv().unwrap();
    remove(folder.path());
    let error = worker.come().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoDatabase);
    let message = error.to_string();
    assert!(message.contains("jobq.db is no longer there") && message.contains("start again"), "{message}");
}

payload!(Waits, "waits");

/// Says that it runs, and goes on when it may.
struct WaitsHandler(mpsc::Sender<()>, Mutex<mpsc::Receiver<()>>);
impl Handler for WaitsHandler {
    type Payload = Waits;
    fn run(&self, ctx: &Context, _: Waits) -> std::result::Result<Outcome<()>, HandlerError> {
        self.0.send(()).unwrap();
        self.1.lock().unwrap().recv().unwrap();
        Ok(Outcome::new(()).put("out.txt", ctx.stage(b"of a queue that is gone")?))
    }
}

/// Who has the new database may be at work on the same files.
#[test]
fn what_ends_after_the_database_was_replaced_is_not_applied() {
    let folder = tempfile::tempdir().unwrap();
    let ((runs, running), (go, may_go)) = (mpsc::channel(), mpsc::channel());
    let registry = Registry::new().with(WaitsHandler(runs, Mutex::new(may_go)));
    let queue = open(folder.path(), &registry);
    queue.enqueue(Waits { n: 1 }).unwrap();
    let options = WorkerOptions { poll_interval: NEVER, ..WorkerOptions::default() };
    let worker = run(Worker::new(queue, registry, options).unwrap(), &Shutdown::new());
    running.recv().unwrap();
    let other = tempfile::tempdir().unwrap();
    drop(Queue::init(other.path()).unwrap());
    // At once: the worker hears of it when none is there.
    std::fs::rename(other.path().join(".jobq/jobq.db"), folder.path().join(".jobq/jobq.db")).unwrap();
    go.send(()).unwrap();
    let error = worker.come().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoDatabase);
    assert!(error.to_string().contains("jobq.db was replaced by another file"), "{error}");
    assert!(!folder.path().join("out.txt").exists());
}

/// That it cannot be looked at does not mean that it is not there: others would take its jobs from a worker that gives
/// no sign of life.
#[test]
fn a_worker_that_cannot_look_at_its_database_keeps_its_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let ((runs, running), (go, may_go)) = (mpsc::channel(), mpsc::channel());
    let registry = Registry::new().with(WaitsHandler(runs, Mutex::new(may_go)));
    let queue = open(folder.path(), &registry);
    let id = queue.enqueue(Waits { n: 1 }).unwrap().id;
    let options = WorkerOptions {
        poll_interval: Duration::from_millis(20),
        lease: Duration::from_secs(3),
        ..WorkerOptions::default()
    };
    let shutdown = Shutdown::new();
    let worker = run(Worker::new(Arc::clone(&queue), registry, options).unwrap(), &shutdown);
    running.recv().unwrap();
    let sql = sql(folder.path());
    let signs = || sql.query_row("SELECT heartbeat FROM jobs", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = signs();
    // In its place a link that leads to itself.
    let (here, link) = (folder.path().join(".jobq"), folder.path().join("link"));
    std::os::unix::fs::symlink(&here, &link).unwrap();
    let exchange = || {
        let cwd = rustix::fs::CWD;
        rustix::fs::renameat_with(cwd, &here, cwd, &link, rustix::fs::RenameFlags::EXCHANGE).unwrap();
    };
    exchange();
    until("signs of life", || signs() >= before + 3);
    exchange();
    go.send(()).unwrap();
    assert_eq!(queue.wait(&id, Duration::from_secs(60)).unwrap().unwrap().status, Status::Completed);
    shutdown.request();
    assert_eq!(worker.come().unwrap().completed, 1);
}
