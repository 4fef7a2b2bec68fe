//! Tests under tokio's paused clock, which leaps to the next timer whenever its runtime has nothing to do.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use jobq::handlers::CreateFile;
use jobq::testing::TestQueue;
use jobq::{AsyncHandler, Context, Filter, HandlerError, NewJob, Outcome, Payload, Queue, Registry};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep, timeout};

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Serialize, Deserialize)]
enum Wait {
    /// By the runtime's clock.
    Sleep(Duration),
    /// For a blocking thread of the runtime.
    Thread {},
}

impl Payload for Wait {
    const TYPE: &'static str = "wait";
    type Output = ();
}

struct Waiter;

impl AsyncHandler for Waiter {
    type Payload = Wait;

    async fn run(&self, _: &Context, job: Wait) -> Result<Outcome, HandlerError> {
        match job {
            Wait::Sleep(time) => sleep(time).await,
            Wait::Thread {} => tokio::task::spawn_blocking(|| ()).await.map_err(HandlerError::permanent)?,
        }
        Ok(Outcome::done())
    }
}

fn paused() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

fn queue(runtime: &Runtime) -> TestQueue {
    TestQueue::new(Registry::builtin().with_async(Waiter, runtime.handle()))
}

fn file(number: u32) -> CreateFile {
    CreateFile::text(format!("{number}.txt"), "a")
}

/// Begins it, and sees that it does not end at once.
async fn begin<F: Future>(future: &mut Pin<&mut F>) {
    poll_fn(|cx| {
        assert!(future.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

/// Begins a call that goes on until the other one is dropped.
async fn begin_call(
    queue: &Arc<Queue>,
) -> (mpsc::Sender<()>, Pin<Box<impl Future<Output = jobq::Result<()>> + use<>>>) {
    let ((tell, begun), (end, ended)) = (mpsc::channel(), mpsc::channel::<()>());
    let wait = move |_: &Queue| {
        tell.send(()).unwrap();
        let _ = ended.recv();
        Ok(())
    };
    let mut call = Box::pin(queue.call_async(wait));
    begin(&mut call.as_mut()).await;
    // What is dropped before that is not called at all.
    begun.recv().unwrap();
    (end, call)
}

#[test]
fn calls_and_runs_take_no_time() {
    let runtime = paused();
    let queue = queue(&runtime);
    runtime.block_on(async {
        let start = Instant::now();
        for number in 0..20 {
            timeout(HOUR, queue.queue().enqueue_async(file(number))).await.unwrap().unwrap();
            let look = queue.queue().call_async(|queue| queue.list(&Filter::default()));
            timeout(HOUR, look).await.unwrap().unwrap();
        }
        timeout(HOUR, queue.queue().commit_async(|tx| tx.write("b.txt", "b"))).await.unwrap().unwrap();
        assert_eq!(timeout(HOUR, queue.run_all_async()).await.unwrap().completed, 20);
        assert_eq!(start.elapsed(), Duration::ZERO);
    });
}

/// It waits for a handler, which waits for the clock.
#[test]
fn a_call_that_waits_for_a_job_does_not_stop_the_clock() {
    let runtime = paused();
    let queue = queue(&runtime);
    runtime.block_on(async {
        let id = queue.enqueue(NewJob::of(&Wait::Sleep(HOUR))).unwrap().id;
        let wait = tokio::spawn(queue.queue().call_async(move |queue| queue.wait(&id, HOUR)));
        assert_eq!(queue.run_all_async().await.completed, 1);
        assert_eq!(wait.await.unwrap().unwrap().unwrap().status, jobq::Status::Completed);
    });
}

#[test]
fn a_call_that_runs_the_queue_does_not_either() {
    let runtime = paused();
    let queue = Arc::new(queue(&runtime));
    queue.enqueue(Wait::Sleep(HOUR)).unwrap();
    queue.enqueue(file(1)).unwrap();
    let run = Arc::clone(&queue);
    let call = queue.queue().call_async(move |_| Ok(run.run_all().completed));
    let ran = runtime.block_on(async { timeout(HOUR * 2, call).await.expect("it holds the clock, too") });
    assert_eq!(ran.unwrap(), 2);
}

#[test]
fn a_handler_s_own_sleep_does() {
    let runtime = paused();
    let queue = queue(&runtime);
    let sleeper = || NewJob::of(&Wait::Sleep(HOUR)).no_key();
    runtime.block_on(async {
        let start = Instant::now();
        for number in 0..10 {
            queue.enqueue(sleeper()).unwrap();
            queue.enqueue(file(number)).unwrap();
        }
        let ran = timeout(HOUR * 10 + HOUR / 2, queue.run_all_async()).await.unwrap();
        assert_eq!(ran.completed, 20);
        assert_eq!(start.elapsed().as_secs(), 10 * HOUR.as_secs());
        queue.enqueue(sleeper()).unwrap();
        timeout(HOUR / 2, queue.run_all_async()).await.expect_err("the handler sleeps for longer");
        // The one that was dropped gives its job back; whoever comes after it does not get ahead of that.
        assert_eq!(timeout(HOUR * 2, queue.run_all_async()).await.unwrap().completed, 1);
    });
}

#[test]
fn runs_that_overlap_sleep_one_after_the_other() {
    let runtime = paused();
    let queue = queue(&runtime);
    queue.enqueue(Wait::Sleep(HOUR)).unwrap();
    runtime.block_on(async {
        let mut first = pin!(timeout(HOUR * 2, queue.run_all_async()));
        begin(&mut first).await;
        let second = timeout(HOUR * 2, queue.run_all_async()).await.unwrap();
        assert_eq!((first.await.unwrap().completed, second.completed), (1, 0));
    });
}

#[test]
fn a_call_that_has_ended_or_that_nobody_wants_does_not_stop_the_clock() {
    let runtime = paused();
    let queue = queue(&runtime);
    runtime.block_on(async {
        let mut enqueue = pin!(queue.queue().enqueue_async(file(1)));
        begin(&mut enqueue).await;
        sleep(HOUR).await;
        enqueue.await.unwrap();
        let (_end, unwanted) = begin_call(&queue.queue()).await;
        drop(unwanted);
        sleep(HOUR).await;
    });
}

#[test]
fn a_runtime_does_not_wait_for_calls_before_it_ends() {
    let runtime = paused();
    let queue = queue(&runtime).queue();
    let (end, kept) = runtime.block_on(begin_call(&queue));
    // If it did, nobody would ever end the call.
    drop(runtime);
    drop(end);
    Builder::new_current_thread().build().unwrap().block_on(kept).unwrap();
}

#[test]
fn the_only_thread_for_blocking_work_is_left_to_others() {
    let runtime = Builder::new_current_thread().enable_time().max_blocking_threads(1).build().unwrap();
    let queue = queue(&runtime);
    let id = queue.enqueue(Wait::Thread {}).unwrap().id;
    runtime.block_on(async {
        let (end, other) = begin_call(&queue.queue()).await;
        assert_eq!(queue.run_all_async().await.completed, 1, "{:?}", queue.get(&id));
        drop(end);
        other.await.unwrap();
    });
}
