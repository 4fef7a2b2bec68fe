//! Runs of one queue that overlap, and a run within itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use jobq::testing::TestQueue;
use jobq::{Context, Ended, Handler, HandlerError, NewJob, Outcome, Payload, Registry, Status};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
enum Task {
    /// Takes a while, and queues another one so many times.
    Work(u32),
    /// Its handler runs the queue that it runs in.
    Run {},
    /// Its hook does.
    RunInHook {},
    /// Its handler runs another queue.
    RunAnother {},
}

impl Payload for Task {
    const TYPE: &'static str = "task";
    type Output = ();
}

#[derive(Clone, Default)]
struct Worker {
    at_it: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    queue: Arc<OnceLock<Weak<TestQueue>>>,
}

impl Worker {
    fn run_queue(&self) {
        let queue = self.queue.get().and_then(Weak::upgrade).unwrap();
        queue.run_all();
    }
}

impl Handler for Worker {
    type Payload = Task;

    fn run(&self, _: &Context, task: Task) -> Result<Outcome, HandlerError> {
        match task {
            Task::Work(more) => {
                self.most.fetch_max(self.at_it.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..200 {
                    std::thread::yield_now();
                }
                self.at_it.fetch_sub(1, Ordering::SeqCst);
                return Ok((0..more).fold(Outcome::done(), |outcome, _| outcome.follow_up(work(0))));
            }
            Task::Run {} => self.run_queue(),
            Task::RunInHook {} => {}
            Task::RunAnother {} => {
                let other = TestQueue::new(Registry::builtin());
                other.enqueue(jobq::handlers::CreateFile::text("a.txt", "a"))?;
                assert_eq!(other.run_all().completed, 1);
            }
        }
        Ok(Outcome::done())
    }

    fn on_success(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
        if matches!(ended.job.payload()?, Task::RunInHook {}) {
            self.run_queue();
        }
        Ok(())
    }
}

fn work(more: u32) -> NewJob {
    NewJob::of(&Task::Work(more)).no_key()
}

fn world() -> (Arc<TestQueue>, Worker) {
    let worker = Worker::default();
    let queue = Arc::new(TestQueue::new(Registry::new().with(worker.clone())));
    worker.queue.set(Arc::downgrade(&queue)).unwrap();
    (queue, worker)
}

fn message(of: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(of)).expect_err("it should have failed");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn threads_that_run_one_queue_take_turns() {
    let (queue, worker) = world();
    for _ in 0..20 {
        queue.enqueue(work(2)).unwrap();
    }
    let run = || {
        let queue = Arc::clone(&queue);
        std::thread::spawn(move || queue.run_all().completed)
    };
    let runs = [run(), run(), run(), run()];
    assert_eq!(runs.into_iter().map(|run| run.join().unwrap()).sum::<u64>(), 60);
    assert_eq!(worker.most.load(Ordering::SeqCst), 1);
}

fn assert_told_of(task: &Task, run: fn(&TestQueue)) {
    let (queue, _) = world();
    let id = queue.enqueue(NewJob::of(task)).unwrap().id;
    queue.enqueue(work(0)).unwrap();
    let told = message(|| run(&queue));
    assert!(told.contains("within a run of the same queue") && told.contains("queue jobs instead"), "{told}");
    let status = queue.get(&id).unwrap().status;
    assert_eq!(status, if matches!(task, Task::Run {}) { Status::Pending } else { Status::Completed });
}

#[test]
fn a_run_within_itself_is_told_of() {
    for task in [Task::Run {}, Task::RunInHook {}] {
        assert_told_of(&task, |queue| drop(queue.run_all()));
    }
}

#[test]
fn a_handler_may_run_another_queue() {
    let (queue, _) = world();
    queue.enqueue(Task::RunAnother {}).unwrap();
    assert_eq!(queue.run_all().completed, 1);
}

#[cfg(feature = "tokio")]
mod in_async_tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Poll, Waker};

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn the_first_that_is_awaited_is_the_first_that_runs() {
        let (queue, worker) = world();
        for _ in 0..20 {
            queue.enqueue(work(2)).unwrap();
        }
        let (mut first, mut second) = (pin!(queue.run_all_async()), pin!(queue.run_all_async()));
        let mut nobody = std::task::Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut nobody).is_pending());
        assert!(matches!(second.as_mut().poll(&mut nobody), Poll::Pending));
        let third = queue.run_all().completed;
        let (first, second) = runtime().block_on(async { (first.await.completed, second.await.completed) });
        assert_eq!((first, second, third), (60, 0, 0));
        assert_eq!(worker.most.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_run_within_itself_is_told_of() {
        for task in [Task::Run {}, Task::RunInHook {}] {
            assert_told_of(&task, |queue| drop(runtime().block_on(queue.run_all_async())));
        }
    }

    struct Awaiting(Worker);

    impl jobq::AsyncHandler for Awaiting {
        type Payload = Task;

        async fn run(&self, _: &Context, _: Task) -> Result<Outcome, HandlerError> {
            let queue = self.0.queue.get().and_then(Weak::upgrade).unwrap();
            queue.run_all_async().await;
            Ok(Outcome::done())
        }
    }

    #[test]
    fn so_is_one_that_an_async_handler_awaits() {
        let (runtime, worker) = (runtime(), Worker::default());
        let registry = Registry::new().with_async(Awaiting(worker.clone()), runtime.handle());
        let queue = Arc::new(TestQueue::new(registry));
        worker.queue.set(Arc::downgrade(&queue)).unwrap();
        queue.enqueue(Task::Run {}).unwrap();
        let told = message(|| drop(runtime.block_on(queue.run_all_async())));
        assert!(told.contains("within a run of the same queue"), "{told}");
    }
}
