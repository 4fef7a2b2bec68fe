//! Handlers, observers and hooks that misbehave, and workers that have to end all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use jobq::store::Store as _;
use jobq::*;
use serde::{Deserialize, Serialize};

use super::world::*;

payload!(Steadfast, "steadfast");
struct SteadfastHandler;
impl Handler for SteadfastHandler {
    type Payload = Steadfast;
    fn run(&self, ctx: &Context, _: Steadfast) -> std::result::Result<Outcome<()>, HandlerError> {
        // It would rather end what it does, and has to be told to stop.
        while ctx.stop().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        ctx.check().map(|()| Outcome::new(()))
    }
}

/// The schema moves on while a job runs: what comes of it could not be recorded, so it is not waited for.
#[test]
fn a_worker_whose_schema_moved_on_ends() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(SteadfastHandler);
    let queue = open(folder.path(), &registry);
    queue.enqueue(Steadfast { n: 1 }).unwrap();
    let shutdown = Shutdown::new();
    let started = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&started);
    let options = WorkerOptions { lease: Duration::from_secs(3), ..WorkerOptions::default() };
    let worker = Worker::new(queue, registry, options).unwrap().observed_by(move |event| {
        if let WorkerEvent::AttemptStarted { .. } = event {
            seen.store(true, Ordering::SeqCst);
        }
    });
    let end = start(worker, shutdown.clone());
    while !started.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(5));
    }
    sql(folder.path()).execute("UPDATE jobq_meta SET value = '99' WHERE key = 'schema_version'", []).unwrap();
    // Nobody has to tell it.
    let ended = end.recv_timeout(Duration::from_secs(60)).expect("it ends");
    assert!(ended.unwrap_err().contains("99"), "and says why");
}

/// An observer that panics once costs at most its event.
#[test]
fn an_observer_that_panics_does_not_hang_the_worker() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(NopHandler);
    let queue = open(folder.path(), &registry);
    for n in 0..5 {
        queue.enqueue(Nop { n }).unwrap();
    }
    let shutdown = Shutdown::new();
    let worker = Worker::new(Arc::clone(&queue), registry, drain()).unwrap().observed_by(|event| {
        if let WorkerEvent::Attempt(_) = event {
            panic!("observer");
        }
    });
    let end = start(worker, shutdown.clone());
    let first = end.recv_timeout(Duration::from_secs(5));
    shutdown.request();
    shutdown.request();
    let second = if first.is_err() { end.recv_timeout(Duration::from_secs(5)) } else { first.clone() };
    println!("drain: {first:?}, after two requests: {second:?}");
    assert!(second.is_ok(), "it hangs, also after two requests to stop");
    assert!(first.is_ok(), "it hangs until told to stop");
}

struct Bomb;
impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "in drop");
    }
}
struct DropBombHandler;
impl Handler for DropBombHandler {
    type Payload = DropBomb;
    fn run(&self, _: &Context, _: DropBomb) -> std::result::Result<Outcome<()>, HandlerError> {
        std::panic::panic_any(Bomb)
    }
}

/// "Panics in a handler are a failed attempt", also when what it panics with panics.
#[test]
fn a_panic_whose_payload_panics_is_a_failed_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(DropBombHandler);
    let queue = open(folder.path(), &registry);
    let id = queue.enqueue(DropBomb { n: 1 }).unwrap().id;
    let shutdown = Shutdown::new();
    let end = start(Worker::new(Arc::clone(&queue), registry, drain()).unwrap(), shutdown.clone());
    let first = end.recv_timeout(Duration::from_secs(5));
    let job = queue.get(&id).unwrap();
    println!("{first:?} {} {:?}", job.status.as_str(), job.last_error);
    shutdown.request();
    shutdown.request();
    let _ = end.recv_timeout(Duration::from_secs(10));
    assert!(first.is_ok(), "drain hangs; the job is {} with {:?}", job.status.as_str(), job.last_error);
}

payload!(Big, "big");
struct CrossHandler;
impl Handler for CrossHandler {
    type Payload = Big;
    fn run(&self, ctx: &Context, job: Big) -> std::result::Result<Outcome<()>, HandlerError> {
        let staged = ctx.stage(format!("{}", job.n).as_bytes())?;
        Ok(Outcome::new(()).put("busy.txt", staged))
    }
}

/// "wait for what runs, saying what it waits for": a decision that waits for a path is waited for, too.
#[test]
fn a_worker_that_stops_says_that_it_waits_for_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::builtin().with(CrossHandler);
    let queue = open(folder.path(), &registry);
    // Somebody alive holds the path.
    queue.enqueue(jobq::handlers::CreateFile::text("busy.txt", "x")).unwrap();
    let lock = jobq::liveness::OwnerLock::acquire(&queue.owners_folder()).unwrap();
    let request = jobq::store::ClaimRequest {
        owner: lock.owner().clone(),
        types: vec!["create_file".into()],
        limit: 1,
        limits: jobq::store::Limits::new(),
    };
    queue.store().claim(request).unwrap().pop().unwrap();
    queue.enqueue(Big { n: 1 }).unwrap();
    let said = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&said);
    let shutdown = Shutdown::new();
    let worker =
        Worker::new(Arc::clone(&queue), registry, WorkerOptions::default()).unwrap().observed_by(move |event| {
            if let WorkerEvent::Stopping { waiting_for } = event {
                println!("stopping {waiting_for:?}");
                seen.fetch_add(1, Ordering::SeqCst);
            }
        });
    let end = start(worker, shutdown.clone());
    let running = Filter { status: Some(Status::Claimed), ..Filter::default() };
    until("both are claimed", || queue.list(&running).unwrap().len() == 2);
    shutdown.request();
    let first = end.recv_timeout(Duration::from_secs(7));
    let said = said.load(Ordering::SeqCst);
    shutdown.request();
    println!("after two: {:?}", end.recv_timeout(Duration::from_secs(10)));
    assert!(first.is_ok() || said > 0, "it has waited for 7 s and not said for what");
}

payload!(Hung, "hung");
struct HungHook;
impl Handler for HungHook {
    type Payload = Hung;
    fn run(&self, _: &Context, _: Hung) -> std::result::Result<Outcome<()>, HandlerError> {
        Ok(Outcome::new(()))
    }
    fn on_success(&self, _: &Ended<'_>) -> std::result::Result<(), HandlerError> {
        std::thread::sleep(Duration::from_secs(3600));
        Ok(())
    }
}

/// A hook that hangs is best effort: the worker says so, and drain ends.
#[test]
fn drain_ends_although_a_hook_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(HungHook);
    let queue = open(folder.path(), &registry);
    queue.enqueue(Hung { n: 1 }).unwrap();
    let shutdown = Shutdown::new();
    let options = WorkerOptions { grace: Some(Duration::from_secs(1)), ..drain() };
    let end = start(Worker::new(Arc::clone(&queue), registry, options).unwrap(), shutdown.clone());
    let first = end.recv_timeout(Duration::from_secs(8));
    shutdown.request();
    let second = if first.is_err() { end.recv_timeout(Duration::from_secs(8)) } else { first.clone() };
    println!("drain {first:?}; after SIGTERM and a grace of 1 s {second:?}");
    assert!(second.is_ok(), "after SIGTERM its grace of 1 s was not heeded");
    assert!(first.is_ok(), "drain does not end");
}

payload!(Released, "released");
struct ReleasedHandler(AtomicUsize);
impl Handler for ReleasedHandler {
    type Payload = Released;
    fn run(&self, _: &Context, _: Released) -> std::result::Result<Outcome<()>, HandlerError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(HandlerError::released())
    }
}

/// A handler that lets go although nobody asked it must not make the worker spin.
#[test]
fn a_handler_that_always_lets_go_does_not_make_the_worker_spin() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(ReleasedHandler(AtomicUsize::new(0)));
    let queue = open(folder.path(), &registry);
    let id = queue.enqueue(Released { n: 1 }).unwrap().id;
    let shutdown = Shutdown::new();
    let end = start(Worker::new(Arc::clone(&queue), registry, WorkerOptions::default()).unwrap(), shutdown.clone());
    let job = queue.wait(&id, Duration::from_secs(60)).unwrap().expect("its attempts are used up");
    shutdown.request();
    let _ = end.recv_timeout(Duration::from_secs(10));
    assert_eq!((job.status, job.attempts), (Status::Failed, 3));
}

payload!(Fickle, "fickle");
struct FickleHandler(std::path::PathBuf);
impl Handler for FickleHandler {
    type Payload = Fickle;
    fn run(&self, ctx: &Context, _: Fickle) -> std::result::Result<Outcome<()>, HandlerError> {
        if ctx.attempt() > 1 {
            return Ok(Outcome::new(()));
        }
        let asked = |asked: bool| {
            let ask = "UPDATE jobs SET cancel_requested = ?1 WHERE type = 'fickle'";
            sql(&self.0).execute(ask, [asked]).unwrap();
        };
        asked(true);
        until("it is told to stop", || ctx.check().is_err());
        asked(false);
        ctx.check().map(|()| Outcome::new(()))
    }
}

/// What the store does not take at all leaves a job behind that is still this worker's. It was run, so it does not go
/// back as if it had not been.
#[test]
fn a_job_whose_end_is_refused_keeps_its_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(FickleHandler(folder.path().to_owned()));
    let queue = open(folder.path(), &registry);
    let id = queue.enqueue(Fickle { n: 1 }).unwrap().id;
    let shutdown = Shutdown::new();
    let end = start(Worker::new(Arc::clone(&queue), registry, WorkerOptions::default()).unwrap(), shutdown.clone());
    until("it has begun again", || queue.get(&id).unwrap().token > 1);
    assert_eq!(queue.get(&id).unwrap().attempts, 2, "the first attempt counts");
    until("it is done", || queue.get(&id).unwrap().status == Status::Completed);
    shutdown.request();
    end.recv_timeout(Duration::from_secs(60)).expect("it ends").unwrap();
}
