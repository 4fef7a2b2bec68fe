//! A database that is locked, and a writer that breaks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use jobq::store::Store as _;
use jobq::*;
use serde::{Deserialize, Serialize};

use super::world::*;

/// A live owner's lease is lost only after a whole lease of silence *on a writable database*.
#[test]
fn a_locked_database_costs_no_live_worker_its_lease() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(StuckHandler);
    let queue = open(folder.path(), &registry);
    let id = queue.enqueue(Stuck { n: 1 }).unwrap().id;
    let runs = Arc::new(AtomicUsize::new(0));
    let shutdown = Shutdown::new();
    let options = || WorkerOptions {
        lease: Duration::from_secs(3),
        poll_interval: Duration::from_millis(200),
        ..WorkerOptions::default()
    };
    let go = |n: usize| {
        let registry = Registry::new().with(StuckHandler);
        let queue = open(folder.path(), &registry);
        let runs = Arc::clone(&runs);
        let w = Worker::new(queue, registry, options()).unwrap().observed_by(move |event| match event {
            WorkerEvent::AttemptStarted { attempt, .. } => {
                println!("worker {n} starts attempt {attempt}");
                runs.fetch_add(1, Ordering::SeqCst);
            }
            WorkerEvent::Reclaimed(done) => println!("worker {n} reclaimed {done:?}"),
            WorkerEvent::Trouble { error, retry_in } => println!("worker {n} trouble {error} {retry_in:?}"),
            _ => {}
        });
        start(w, shutdown.clone())
    };
    let a = go(1);
    while runs.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let b = go(2);
    // So that it has seen the lease; nothing tells when it has.
    std::thread::sleep(Duration::from_secs(1));
    let conn = sql(folder.path());
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::sleep(Duration::from_millis(5500));
    conn.execute_batch("ROLLBACK").unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let attempts = queue.get(&id).unwrap().attempts;
    shutdown.request();
    let _ = (a.recv_timeout(Duration::from_secs(10)), b.recv_timeout(Duration::from_secs(10)));
    assert_eq!(
        (runs.load(Ordering::SeqCst), attempts),
        (1, 1),
        "the live worker's job was run a second time beside it"
    );
}

struct Slow;
payload!(Slower, "slower");
impl Handler for Slow {
    type Payload = Slower;
    fn run(&self, _: &Context, _: Slower) -> std::result::Result<Outcome<()>, HandlerError> {
        std::thread::sleep(Duration::from_secs(25));
        Ok(Outcome::new(()))
    }
}

/// Backoff goes back to its base after a success.
#[test]
fn a_busy_worker_forgets_its_trouble_too() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(Slow);
    let queue = Arc::new(
        QueueOptions::in_folder(folder.path())
            .create(true)
            .types(registry.types())
            .busy_timeout(Duration::from_millis(200))
            .open()
            .unwrap(),
    );
    queue.enqueue(Slower { n: 1 }).unwrap();
    let waits = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&waits);
    let shutdown = Shutdown::new();
    let options = WorkerOptions { concurrency: 1, lease: Duration::from_secs(20), ..WorkerOptions::default() };
    let worker = Worker::new(Arc::clone(&queue), registry, options).unwrap().observed_by(move |event| match event {
        WorkerEvent::Trouble { retry_in, .. } => seen.lock().unwrap().push(retry_in.as_millis()),
        WorkerEvent::TroubleOver => seen.lock().unwrap().push(0),
        _ => {}
    });
    let end = start(worker, shutdown.clone());
    let running = Filter { status: Some(Status::Claimed), ..Filter::default() };
    until("it runs", || queue.list(&running).unwrap().len() == 1);
    for _ in 0..3 {
        let conn = sql(folder.path());
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        let before = waits.lock().unwrap().len();
        while waits.lock().unwrap().iter().skip(before).all(|w| *w == 0) {
            std::thread::sleep(Duration::from_millis(10));
        }
        conn.execute_batch("ROLLBACK").unwrap();
        // Until a heartbeat has gone through.
        while *waits.lock().unwrap().last().unwrap() != 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let heard = waits.lock().unwrap().clone();
    shutdown.request();
    shutdown.request();
    let _ = end.recv_timeout(Duration::from_secs(10));
    assert_eq!(heard.iter().filter(|w| **w > 1_000).count(), 0, "waits {heard:?}; 0 is `TroubleOver`");
}

/// A panic in whatever the writer's leader calls must not leave the seat taken.
#[test]
fn a_panic_in_sync_does_not_stop_every_later_write() {
    struct Panics;
    impl jobq::store::Applier for Panics {
        fn apply(
            &self,
            _: &jobq::store::Lease,
            effects: &[jobq::store::PlannedEffect],
            _: bool,
        ) -> jobq::store::ApplyReport {
            jobq::store::ApplyReport::Applied(vec![jobq::store::FileStamp::default(); effects.len()])
        }
        fn sync(&self) -> std::result::Result<(), jobq::store::Failure> {
            panic!("in sync")
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::builtin().with(NopHandler);
    let queue = open(folder.path(), &registry);
    queue.enqueue(jobq::handlers::DeleteFile::at("x")).unwrap();
    let lock = jobq::liveness::OwnerLock::acquire(&queue.owners_folder()).unwrap();
    let request = jobq::store::ClaimRequest {
        owner: lock.owner().clone(),
        types: vec!["delete_file".into()],
        limit: 1,
        limits: jobq::store::Limits::new(),
    };
    let lease = queue.store().claim(request).unwrap().pop().unwrap().lease;
    let effect = jobq::store::PlannedEffect {
        path: "x".into(),
        op: jobq::store::EffectOp::Remove,
        precondition: jobq::store::Precondition::Absent,
        observed: None,
    };
    queue.store().decide(lease.clone(), jobq::store::Decision { effects: vec![effect], ..Default::default() }).unwrap();
    let theirs = Arc::clone(&queue);
    let _ = std::thread::spawn(move || theirs.store().apply(lease, Arc::new(Panics))).join();
    let (send, receive) = mpsc::channel();
    let theirs = Arc::clone(&queue);
    std::thread::spawn(move || send.send(theirs.enqueue(Nop { n: 1 }).map(|e| e.id).map_err(|e| e.to_string())));
    let answer = receive.recv_timeout(Duration::from_secs(5));
    println!("{answer:?}");
    assert!(answer.is_ok(), "every write of this process hangs for ever");
}
