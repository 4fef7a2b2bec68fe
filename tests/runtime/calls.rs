//! Calls from async code.

use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use jobq::{EnqueueOutcome, ErrorKind, Filter, NewJob, Queue, QueueOptions, Status};
use rusqlite::Connection;
use tokio::runtime::{Builder, Runtime};

const ID: &str = "01J00000000000000000000000";

struct World {
    runtime: Runtime,
    queue: Arc<Queue>,
    folder: tempfile::TempDir,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let options = QueueOptions::in_folder(folder.path()).create(true).busy_timeout(Duration::from_secs(60));
    let queue = Arc::new(options.open().unwrap());
    World { runtime: Builder::new_current_thread().enable_time().build().unwrap(), queue, folder }
}

/// As long as this lives nobody else can write.
fn lock(root: &Path) -> Connection {
    let conn = Connection::open(root.join(".jobq/jobq.db")).unwrap();
    conn.busy_timeout(Duration::from_secs(60)).unwrap();
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    conn
}

/// Begins it, and sees that it does not end at once.
async fn begin<F: Future>(future: &mut std::pin::Pin<&mut F>) {
    poll_fn(|cx| {
        assert!(future.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

/// Waits for calls that nobody waits for: each has the queue.
fn until_nobody_calls(queue: &Arc<Queue>) {
    while Arc::strong_count(queue) > 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn mail() -> NewJob {
    NewJob::raw("send_mail", "{}").id(ID)
}

#[test]
fn other_tasks_of_the_only_thread_go_on_while_a_job_is_queued() {
    let World { runtime, queue, folder } = world();
    let database = lock(folder.path());
    runtime.block_on(async {
        let mut enqueue = pin!(queue.enqueue_async(mail()));
        let mut commit = pin!(queue.commit_async(|tx| tx.write("a.txt", "a")));
        begin(&mut enqueue).await;
        begin(&mut commit).await;
        // If this thread were blocked, nobody would ever let go of the database.
        let other = tokio::spawn(async move {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            drop(database);
        });
        other.await.unwrap();
        assert_eq!(enqueue.await.unwrap().outcome, EnqueueOutcome::Inserted);
        assert!(commit.await.unwrap().applied);
    });
    assert_eq!(queue.get(ID).unwrap().status, Status::Pending);
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "a");
}

#[test]
fn a_future_that_is_dropped_leaves_the_job_queued_once() {
    let World { runtime, queue, folder } = world();
    runtime.block_on(async {
        drop(queue.enqueue_async(NewJob::raw("never", "{}")));
        let database = lock(folder.path());
        {
            let mut dropped = pin!(queue.enqueue_async(mail()));
            begin(&mut dropped).await;
        }
        drop(database);
        // Before or after the one that was dropped: the answer is the same job.
        let again = queue.enqueue_async(mail()).await.unwrap();
        assert_eq!(again.id, ID);
    });
    until_nobody_calls(&queue);
    let jobs = queue.list(&Filter::default()).unwrap();
    assert_eq!(jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), [ID]);
}

#[test]
fn a_commit_that_is_dropped_happens_whole_and_once() {
    let World { runtime, queue, folder } = world();
    let fill = |tx: &mut jobq::Draft| {
        tx.id(ID)?;
        tx.write("a.txt", "a")?;
        tx.enqueue(NewJob::raw("send_mail", "{}"))
    };
    runtime.block_on(async {
        let database = lock(folder.path());
        {
            let mut dropped = pin!(queue.commit_async(fill));
            begin(&mut dropped).await;
        }
        drop(database);
        let again = queue.commit_async(fill).await.unwrap();
        assert_eq!((again.id.as_str(), again.jobs.len()), (ID, 1));
    });
    until_nobody_calls(&queue);
    assert_eq!(queue.get(ID).unwrap().status, Status::Completed);
    assert_eq!(queue.list(&Filter::default()).unwrap().len(), 2, "the commit and its job");
}

#[test]
fn many_at_once_are_all_accepted_and_refusals_are_errors() {
    let World { runtime, queue, folder: _kept } = world();
    runtime.block_on(async {
        let job = |n: u32| NewJob::raw("send_mail", format!(r#"{{"n":{n}}}"#));
        // Spawned: the future owns what it needs.
        let tasks: Vec<_> = (0..50).map(|n| tokio::spawn(queue.enqueue_async(job(n)))).collect();
        for task in tasks {
            assert_eq!(task.await.unwrap().unwrap().outcome, EnqueueOutcome::Inserted);
        }
        let wrong = queue.enqueue_async(NewJob::raw("create_file", "{}")).await.unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::Invalid);
        let empty = queue.commit_async(|_| Ok(())).await.unwrap_err();
        assert_eq!(empty.kind(), ErrorKind::Invalid);
        let missing = queue.call_async(|queue| queue.get("nope")).await.unwrap_err();
        assert!(missing.is_not_found());
        let panicked = tokio::spawn(queue.call_async(|_| -> jobq::Result<()> { panic!("a caller's own words") }));
        assert!(panicked.await.unwrap_err().is_panic());
    });
    assert_eq!(queue.list(&Filter { limit: 100, ..Filter::default() }).unwrap().len(), 50);
}

/// Wakes a thread that has nothing else to do.
struct Unpark(std::thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn it_needs_no_runtime_of_a_certain_kind() {
    let World { queue, folder: _kept, .. } = world();
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut enqueue = pin!(queue.enqueue_async(mail()));
    let answer = loop {
        match enqueue.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            Poll::Ready(answer) => break answer,
            Poll::Pending => std::thread::park(),
        }
    };
    assert_eq!(answer.unwrap().id, ID);
}
