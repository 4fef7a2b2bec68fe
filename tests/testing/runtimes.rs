//! Runs of one queue in several runtimes with paused clocks.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobq::testing::TestQueue;
use jobq::{AsyncHandler, Context, Handler, HandlerError, Outcome, Payload, Registry};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Serialize, Deserialize)]
struct Block {}

impl Payload for Block {
    const TYPE: &'static str = "block";
    type Output = ();
}

/// Tells that it has begun, and ends when the other one is dropped.
struct Blocker(Sender<()>, Mutex<Receiver<()>>);

impl Handler for Blocker {
    type Payload = Block;

    fn run(&self, _: &Context, _: Block) -> Result<Outcome, HandlerError> {
        self.0.send(()).unwrap();
        let _ = self.1.lock().unwrap().recv();
        Ok(Outcome::done())
    }
}

#[derive(Serialize, Deserialize)]
struct Sleep {}

impl Payload for Sleep {
    const TYPE: &'static str = "sleep";
    type Output = ();
}

/// Tells that it sleeps.
struct Sleeper(Sender<()>);

impl AsyncHandler for Sleeper {
    type Payload = Sleep;

    async fn run(&self, _: &Context, _: Sleep) -> Result<Outcome, HandlerError> {
        let mut sleep = std::pin::pin!(tokio::time::sleep(HOUR));
        std::future::poll_fn(|cx| {
            let polled = sleep.as_mut().poll(cx);
            let _ = self.0.send(());
            polled
        })
        .await;
        Ok(Outcome::done())
    }
}

fn paused() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

#[test]
fn each_clock_stands_still_while_its_run_waits_for_one_of_another_runtime() {
    let ((tell, told), (end, ended)) = (channel(), channel());
    let queue = Arc::new(TestQueue::new(Registry::new().with(Blocker(tell, Mutex::new(ended)))));
    queue.enqueue(Block {}).unwrap();
    let elsewhere = Arc::clone(&queue);
    let first = std::thread::spawn(move || {
        paused().block_on(async { timeout(HOUR, elsewhere.run_all_async()).await.unwrap() })
    });
    told.recv().unwrap();
    // Time enough for a clock that is not held to leap.
    let gate = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        drop(end);
    });
    let second = paused().block_on(async { timeout(HOUR, queue.run_all_async()).await });
    gate.join().unwrap();
    assert_eq!((first.join().unwrap().completed, second.expect("its clock was held").completed), (1, 0));
}

#[test]
fn a_handler_that_sleeps_already_is_known_to_a_run_that_its_runtime_asks_for() {
    let (runtime, (tell, told)) = (paused(), channel());
    let queue = Arc::new(TestQueue::new(Registry::new().with_async(Sleeper(tell), runtime.handle())));
    queue.enqueue(Sleep {}).unwrap();
    let elsewhere = Arc::clone(&queue);
    let first = std::thread::spawn(move || elsewhere.run_all());
    told.recv().unwrap();
    let second = runtime.block_on(queue.run_all_async());
    assert_eq!((first.join().unwrap().completed, second.completed), (1, 0));
}
