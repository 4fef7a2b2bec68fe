//! `run_all_async`.

use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use jobq::testing::TestQueue;
use jobq::{AsyncHandler, Context, HandlerError, Outcome, Payload, Registry, Status};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "task")]
enum Do {
    /// Needs nothing of its runtime.
    Nothing,
    Sleep,
    /// For ever.
    Hang,
    /// For ever, and never again.
    HangOnce,
    /// Counts what its runtime has to do, before it first awaits something and after.
    Count,
}

impl Payload for Do {
    const TYPE: &'static str = "do";
    type Output = ();
}

/// Told what begins and what is dropped.
struct Doer(mpsc::UnboundedSender<&'static str>, AtomicBool);

struct Guard<'d>(&'d Doer);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let _ = self.0.0.send("dropped");
    }
}

impl AsyncHandler for Doer {
    type Payload = Do;

    async fn run(&self, _: &Context, job: Do) -> Result<Outcome, HandlerError> {
        let _guard = Guard(self);
        let _ = self.0.send("begun");
        match job {
            Do::Nothing => {}
            Do::Sleep => tokio::time::sleep(Duration::from_millis(1)).await,
            Do::Count => {
                let count = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
                let before = count();
                tokio::task::yield_now().await;
                if count() != before + 1 {
                    return Err(HandlerError::permanent(format_args!("{before}, then {}", count())));
                }
            }
            Do::HangOnce if self.1.swap(true, Ordering::SeqCst) => {}
            Do::Hang | Do::HangOnce => pending().await,
        }
        Ok(Outcome::done())
    }
}

fn world() -> (Runtime, TestQueue, mpsc::UnboundedReceiver<&'static str>) {
    world_on(&mut Builder::new_current_thread())
}

fn world_on(runtime: &mut Builder) -> (Runtime, TestQueue, mpsc::UnboundedReceiver<&'static str>) {
    let runtime = runtime.enable_time().build().unwrap();
    let (tell, told) = mpsc::unbounded_channel();
    let queue = TestQueue::new(Registry::new().with_async(Doer(tell, AtomicBool::new(false)), runtime.handle()));
    (runtime, queue, told)
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("it should have happened by now")
}

#[test]
fn async_handlers_run_while_an_async_test_waits() {
    let (runtime, queue, _told) = world();
    // The handler's sleep needs the runtime's only thread, which is this one.
    queue.enqueue(Do::Sleep).unwrap();
    assert_eq!(runtime.block_on(async { soon(queue.run_all_async()).await }).completed, 1);
}

#[test]
fn what_is_dropped_half_way_stops_and_gives_its_job_back() {
    let (runtime, queue, mut told) = world();
    let id = queue.enqueue(Do::Hang).unwrap().id;
    runtime.block_on(async {
        {
            let mut run = pin!(queue.run_all_async());
            let begun = poll_fn(|cx| {
                assert!(run.as_mut().poll(cx).is_pending());
                told.poll_recv(cx)
            });
            assert_eq!(soon(begun).await, Some("begun"));
        }
        assert_eq!(soon(told.recv()).await, Some("dropped"));
        // The worker has the queue until its end.
        soon(poll_fn(|cx| {
            cx.waker().wake_by_ref();
            if std::sync::Arc::strong_count(&queue.queue()) == 2 { Poll::Ready(()) } else { Poll::Pending }
        }))
        .await;
    });
    let job = queue.get(&id).unwrap();
    assert_eq!((job.status, job.attempts), (Status::Pending, 0));
}

#[test]
fn a_run_after_one_that_was_dropped_finds_its_job() {
    for again in [true, false] {
        let (runtime, queue, mut told) = world();
        queue.enqueue(Do::HangOnce).unwrap();
        let ran = runtime.block_on(async {
            {
                let mut run = pin!(queue.run_all_async());
                let begun = poll_fn(|cx| {
                    assert!(run.as_mut().poll(cx).is_pending());
                    told.poll_recv(cx)
                });
                assert_eq!(soon(begun).await, Some("begun"));
            }
            if again { Some(soon(queue.run_all_async()).await) } else { None }
        });
        assert_eq!(ran.unwrap_or_else(|| queue.run_all()).completed, 1, "{again}");
    }
}

fn assert_told_of(queue: &TestQueue, id: &str) {
    let panic = catch_unwind(AssertUnwindSafe(|| queue.run_all())).unwrap_err();
    let words = panic.downcast_ref::<String>().unwrap();
    assert!(words.contains(id) && words.contains("use `run_all_async`"), "{words}");
    assert_eq!(queue.get(id).unwrap().attempts, 0);
}

#[test]
fn blocking_the_only_thread_that_a_handler_needs_is_told_of() {
    let (runtime, queue, _told) = world();
    let id = queue.enqueue(Do::Sleep).unwrap().id;
    let queue = std::sync::Arc::new(queue);
    runtime.block_on(async { assert_told_of(&queue, &id) });
    // Another thread may wait as it likes.
    let elsewhere = std::sync::Arc::clone(&queue);
    let ran = runtime.block_on(async { soon(tokio::task::spawn_blocking(move || elsewhere.run_all())).await });
    assert_eq!(ran.unwrap().completed, 1);
}

#[test]
fn a_runtime_that_nobody_drives_is_told_of() {
    let (_runtime, queue, _told) = world();
    let id = queue.enqueue(Do::Sleep).unwrap().id;
    assert_told_of(&queue, &id);
}

#[test]
fn a_handler_that_needs_nothing_of_its_runtime_runs_wherever_the_test_waits() {
    let (runtime, queue, _told) = world();
    queue.enqueue(Do::Nothing).unwrap();
    assert_eq!(runtime.block_on(async { queue.run_all() }).completed, 1);
}

/// As long as it only computes it has not, and may take longer than a runtime has to answer.
#[test]
fn a_runtime_is_asked_when_its_handler_first_waits() {
    let (runtime, queue, _told) = world();
    queue.enqueue(Do::Count).unwrap();
    let ran = runtime.block_on(async { queue.run_all() });
    assert_eq!(ran.completed, 1, "{:?}", ran.attempts);
}

/// Whoever waits within it: another of its threads goes on.
#[test]
fn a_runtime_of_several_threads_needs_nothing_special() {
    let (runtime, queue, _told) = world_on(Builder::new_multi_thread().worker_threads(2));
    queue.enqueue(Do::Sleep).unwrap();
    assert_eq!(runtime.block_on(async { queue.run_all() }).completed, 1);
    queue.enqueue(Do::Sleep).unwrap();
    assert_eq!(runtime.block_on(async { soon(queue.run_all_async()).await }).completed, 1);
    queue.enqueue(Do::Sleep).unwrap();
    assert_eq!(queue.run_all().completed, 1);
    let queue = std::sync::Arc::new(queue);
    queue.enqueue(Do::Sleep).unwrap();
    let within = std::sync::Arc::clone(&queue);
    assert_eq!(
        runtime.block_on(async { soon(tokio::spawn(async move { within.run_all() })).await }).unwrap().completed,
        1
    );
}

#[test]
fn blocking_work_of_the_test_holds_up_no_run() {
    let runtime = Builder::new_current_thread().enable_time().max_blocking_threads(1).build().unwrap();
    let (hold, free) = std::sync::mpsc::channel::<()>();
    runtime.spawn_blocking(move || free.recv());
    let queue = TestQueue::new(Registry::builtin());
    queue.enqueue(jobq::handlers::CreateFile::text("a.txt", "a")).unwrap();
    assert_eq!(runtime.block_on(async { soon(queue.run_all_async()).await }).completed, 1);
    drop(hold);
}
