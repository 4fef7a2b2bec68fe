//! What may never come to its end is said while it goes on, past the harness that keeps what a test prints.

use std::io::{BufRead as _, BufReader, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use jobq::testing::TestQueue;
use jobq::{Context, Ended, Handler, HandlerError, NewJob, Outcome, Payload, Registry};
use rusqlite::TransactionBehavior::Immediate;
use serde::{Deserialize, Serialize};

const NAME: &str = "said::the_process_that_a_test_starts";
const SETUP: &str = "JOBQ_TEST_SAID";

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Task {
    /// Nothing.
    Rest {},
    /// The test has a transaction open until it is told to go on, or for ever.
    Locked { for_ever: bool },
    /// Its hook queues another one when it is told to go on.
    Hook {},
    /// Its handler, which is not async, waits for a clock that stands still, or its hook does.
    #[cfg(feature = "tokio")]
    Block { in_hook: bool },
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

    fn run(&self, _: &Context, task: Task) -> Result<Outcome, HandlerError> {
        match task {
            Task::Thread {} => {
                let queue = self.queue();
                drop(thread::spawn(move || queue.run_all()).join());
            }
            #[cfg(feature = "tokio")]
            Task::Block { in_hook: false } => sleep_here(),
            _ => {}
        }
        Ok(Outcome::done())
    }

    fn on_success(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
        match ended.job.payload()? {
            Task::Hook {} => {
                until_told();
                self.queue().enqueue(Task::Rest {})?;
            }
            #[cfg(feature = "tokio")]
            Task::Block { in_hook: true } => sleep_here(),
            _ => {}
        }
        Ok(())
    }
}

/// By the paused clock of the process.
#[cfg(feature = "tokio")]
static RUNTIME: OnceLock<tokio::runtime::Handle> = OnceLock::new();

#[cfg(feature = "tokio")]
fn sleep_here() {
    RUNTIME.get().unwrap().block_on(async { tokio::time::sleep(Duration::from_secs(1)).await });
}

/// By the process that has started this one.
fn until_told() {
    let _ = std::io::stdin().read(&mut [0]);
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
    let here = || nested.world(Registry::new().with(nested.clone()), task);
    match task {
        Task::Rest {} => {}
        Task::Locked { for_ever } => {
            let queue = here();
            let mut conn = rusqlite::Connection::open(queue.database()).unwrap();
            let tx = conn.transaction_with_behavior(Immediate).unwrap();
            queue.enqueue_in(&tx, NewJob::of(&Task::Rest {})).unwrap();
            if for_ever {
                let panic = catch_unwind(AssertUnwindSafe(|| queue.run_all())).expect_err("it should have given up");
                let told = panic.downcast_ref::<String>().unwrap();
                assert!(told.contains("is locked") && told.contains("is a transaction of the test open?"), "{told}");
            } else {
                let run = thread::spawn(move || queue.run_all().completed);
                until_told();
                tx.commit().unwrap();
                assert_eq!(run.join().unwrap(), 2);
            }
        }
        Task::Hook {} => assert_eq!(here().run_all().completed, 2),
        #[cfg(feature = "tokio")]
        Task::Block { .. } => {
            RUNTIME.set(runtime.handle().clone()).unwrap();
            drop(runtime.block_on(here().run_all_async()));
        }
        Task::Thread {} => drop(here().run_all()),
        #[cfg(feature = "tokio")]
        Task::Spawn {} => drop(runtime.block_on(world().run_all_async())),
        #[cfg(feature = "tokio")]
        Task::Sleep {} => {
            let queue = world();
            drop(runtime.block_on(async { tokio::task::spawn_blocking(move || queue.run_all()).await }));
        }
    }
}

/// Longer than any of this takes.
const ENOUGH: Duration = Duration::from_secs(120);

/// Such a process, the first that it says, and who hears when it ends.
fn process(task: Task) -> (Child, String, Receiver<Option<String>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME])
        .env(SETUP, serde_json::to_string(&task).unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = child.stderr.take().unwrap();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let _ = tell.send(lines.find(|line| line.starts_with("jobq::testing: ")));
        lines.for_each(drop);
    });
    let said = told.recv_timeout(ENOUGH).ok().flatten();
    if said.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    (child, said.expect("it should have said something by now"), told)
}

/// By one that is killed then, as it would go on.
fn said_by(task: Task) -> String {
    let (mut child, said, _) = process(task);
    let _ = child.kill();
    let _ = child.wait();
    said
}

/// By one that is told to go on, and does.
fn said_on_the_way(task: Task) -> String {
    let (mut child, said, told) = process(task);
    drop(child.stdin.take());
    if told.recv_timeout(ENOUGH) == Err(RecvTimeoutError::Timeout) {
        let _ = child.kill();
    }
    assert!(child.wait().unwrap().success(), "after: {said}");
    said
}

#[test]
fn a_queue_that_the_test_itself_keeps_locked() {
    // They wait most of the time, so they do so together.
    let saids = [false, true].map(|for_ever| thread::spawn(move || said_on_the_way(Task::Locked { for_ever })));
    for said in saids.map(|said| said.join().unwrap()) {
        assert!(said.contains("is locked") && said.contains("is a transaction of the test open?"), "{said}");
    }
}

#[test]
fn a_hook_that_takes_long_and_is_waited_for() {
    let said = said_on_the_way(Task::Hook {});
    assert!(said.contains("the hook of `task`") && said.ends_with("the run waits for it"), "{said}");
}

#[cfg(feature = "tokio")]
#[test]
fn a_clock_that_stands_still_while_a_handler_or_a_hook_blocks_on_it() {
    let saids = [false, true].map(|in_hook| thread::spawn(move || said_by(Task::Block { in_hook })));
    let [handler, hook] = saids.map(|said| said.join().unwrap());
    assert!(handler.starts_with("jobq::testing: `task`") && handler.contains("paused clock still"), "{handler}");
    assert!(hook.starts_with("jobq::testing: the hook of `task`") && hook.contains("paused clock still"), "{hook}");
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
