//! What may never come to its end is said while it goes on, past the harness that keeps what a test prints.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use jobq::testing::TestQueue;
use jobq::{Context, Handler, HandlerError, Outcome, Payload, Registry};
use serde::{Deserialize, Serialize};

const NAME: &str = "said::the_process_that_a_test_starts";
const SETUP: &str = "JOBQ_TEST_SAID";

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Task {
    /// Its handler waits for a thread that runs the queue.
    Thread {},
    /// An async one waits for a task that does.
    #[cfg(feature = "tokio")]
    Spawn {},
    /// An async one sleeps by a clock that cannot leap.
    #[cfg(feature = "tokio")]
    Sleep {},
}

impl Payload for Task {
    const TYPE: &'static str = "task";
    type Output = ();
}

#[derive(Clone, Default)]
struct Nested(Arc<OnceLock<Weak<TestQueue>>>);

impl Nested {
    fn queue(&self) -> Arc<TestQueue> {
        self.0.get().and_then(Weak::upgrade).unwrap()
    }

    fn world(&self, registry: Registry, task: Task) -> Arc<TestQueue> {
        let queue = Arc::new(TestQueue::new(registry));
        self.0.set(Arc::downgrade(&queue)).unwrap();
        queue.enqueue(task).unwrap();
        queue
    }
}

impl Handler for Nested {
    type Payload = Task;

    fn run(&self, _: &Context, _: Task) -> Result<Outcome, HandlerError> {
        let queue = self.queue();
        let _ = std::thread::spawn(move || queue.run_all()).join();
        Ok(Outcome::done())
    }
}

#[cfg(feature = "tokio")]
impl jobq::AsyncHandler for Nested {
    type Payload = Task;

    async fn run(&self, _: &Context, task: Task) -> Result<Outcome, HandlerError> {
        let queue = self.queue();
        match task {
            Task::Spawn {} => drop(tokio::spawn(async move { queue.run_all_async().await }).await),
            _ => tokio::time::sleep(Duration::from_secs(3600)).await,
        }
        Ok(Outcome::done())
    }
}

/// Not a test by itself. Without the variable it has nothing to do.
#[test]
fn the_process_that_a_test_starts() {
    let Ok(setup) = std::env::var(SETUP) else { return };
    let (nested, task) = (Nested::default(), serde_json::from_str(&setup).unwrap());
    #[cfg(feature = "tokio")]
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    #[cfg(feature = "tokio")]
    let world = || nested.world(Registry::new().with_async(nested.clone(), runtime.handle()), task);
    match task {
        Task::Thread {} => drop(nested.world(Registry::new().with(nested.clone()), task).run_all()),
        #[cfg(feature = "tokio")]
        Task::Spawn {} => drop(runtime.block_on(world().run_all_async())),
        #[cfg(feature = "tokio")]
        Task::Sleep {} => {
            let queue = world();
            drop(runtime.block_on(async { tokio::task::spawn_blocking(move || queue.run_all()).await }));
        }
    }
}

/// The first that such a process says; it is killed then, as it would go on.
fn said_by(task: Task) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME])
        .env(SETUP, serde_json::to_string(&task).unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = child.stderr.take().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let _ = tell.send(lines.into_iter().find(|line| line.starts_with("jobq::testing: `task` ")));
    });
    let said = told.recv_timeout(Duration::from_secs(120));
    let _ = child.kill();
    let _ = child.wait();
    said.ok().flatten().expect("it should have said something by now")
}

#[test]
fn a_run_that_a_thread_of_a_handler_waits_for() {
    let said = said_by(Task::Thread {});
    assert!(said.contains("another run of its queue waits") && said.contains("queue jobs instead"), "{said}");
}

#[cfg(feature = "tokio")]
#[test]
fn a_run_that_a_task_of_a_handler_waits_for() {
    let said = said_by(Task::Spawn {});
    assert!(said.contains("another run of its queue waits") && said.contains("queue jobs instead"), "{said}");
}

#[cfg(feature = "tokio")]
#[test]
fn a_clock_that_the_run_itself_keeps_from_leaping() {
    let said = said_by(Task::Sleep {});
    assert!(said.contains("clock of its runtime stands still") && said.contains("use `run_all_async`"), "{said}");
}
