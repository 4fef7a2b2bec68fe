//! Calls from an application that keeps all threads busy.

use std::future::{Future, poll_fn};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Barrier};
use std::task::Poll;
use std::time::Duration;

use jobq::{NewJob, Queue};
use rusqlite::Connection;
use tokio::runtime::{Builder, Runtime};

const PATIENCE: Duration = Duration::from_secs(30);

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it should have happened by now")
}

fn mail(number: usize) -> NewJob {
    NewJob::raw("send_mail", format!(r#"{{"n":{number}}}"#))
}

/// A runtime with one thread for blocking work, which waits until the sender is dropped.
fn busy() -> (Runtime, mpsc::Sender<()>) {
    let runtime = Builder::new_current_thread().enable_time().max_blocking_threads(1).build().unwrap();
    let (hold, free): (_, Receiver<()>) = mpsc::channel();
    runtime.spawn_blocking(move || free.recv());
    (runtime, hold)
}

#[test]
fn blocking_work_of_the_application_holds_up_no_call() {
    let folder = tempfile::tempdir().unwrap();
    let queue = Arc::new(Queue::init(folder.path()).unwrap());
    let (runtime, hold) = busy();
    runtime.block_on(async {
        let job = soon(queue.enqueue_async(mail(1))).await.unwrap();
        assert!(soon(queue.commit_async(|tx| tx.write("a.txt", "a"))).await.unwrap().applied);
        let found = soon(queue.call_async(move |queue| queue.get(&job.id))).await.unwrap();
        assert_eq!(found.job_type, "send_mail");
    });
    drop(hold);
}

#[test]
fn calls_that_wait_hold_up_nobody_who_queues() {
    let folder = tempfile::tempdir().unwrap();
    let queue = Arc::new(Queue::init(folder.path()).unwrap());
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        // More than can be made at a time, all waiting for what is queued behind them.
        let (queued, wait) = mpsc::channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        let mut waits = Vec::new();
        for _ in 0..600 {
            let wait = Arc::clone(&wait);
            let mut call = Box::pin(queue.call_async(move |_| Ok(wait.lock().unwrap().recv().is_err())));
            let has_begun = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_pending()));
            assert!(has_begun.await);
            waits.push(call);
        }
        soon(queue.enqueue_async(mail(1))).await.unwrap();
        drop(queued);
        for wait in waits {
            assert!(soon(wait).await.unwrap());
        }
    });
}

/// Commits in the database's log: frames that have the size of the database.
fn commits(root: &Path) -> usize {
    let log = std::fs::read(root.join(".jobq/jobq.db-wal")).unwrap();
    let page = u32::from_be_bytes(log[8..12].try_into().unwrap()) as usize;
    log[32..].chunks_exact(24 + page).filter(|frame| frame[4..8] != [0; 4]).count()
}

#[test]
fn jobs_that_are_queued_at_the_same_time_share_a_commit() {
    const AT_ONCE: usize = 32;
    let folder = tempfile::tempdir().unwrap();
    let queue = Arc::new(Queue::init(folder.path()).unwrap());
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        soon(queue.enqueue_async(mail(0))).await.unwrap();
        let before = commits(folder.path());
        let together = Arc::new(Barrier::new(AT_ONCE));
        let database = Connection::open(folder.path().join(".jobq/jobq.db")).unwrap();
        database.execute_batch("BEGIN IMMEDIATE").unwrap();
        let calls: Vec<_> = (1..=AT_ONCE)
            .map(|number| {
                let together = Arc::clone(&together);
                tokio::spawn(queue.call_async(move |queue| {
                    together.wait();
                    queue.enqueue(mail(number))
                }))
            })
            .collect();
        let plain: Vec<_> = (1..=AT_ONCE).map(|n| tokio::spawn(queue.enqueue_async(mail(1000 + n)))).collect();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        drop(database);
        for call in calls.into_iter().chain(plain) {
            soon(call).await.unwrap().unwrap();
        }
        let made = commits(folder.path()) - before;
        assert!(made < AT_ONCE, "{made} commits for {} jobs", 2 * AT_ONCE);
    });
}
