//! Files that several jobs or workers are at.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use jobq::store::Store as _;
use jobq::*;

use super::world::*;

struct SameHandler;
impl Handler for SameHandler {
    type Payload = Same;
    fn run(&self, ctx: &Context, job: Same) -> std::result::Result<Outcome<()>, HandlerError> {
        let staged = ctx.stage(format!("content {}", job.n).as_bytes())?;
        Ok(Outcome::new(()).put("same.txt", staged))
    }
}

/// `Outcome::put` is "whatever it holds now": jobs that put the same path must
/// not conflict with one another.
#[test]
fn a_put_of_whatever_is_there_never_conflicts_with_another_job() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(SameHandler);
    let queue = open(folder.path(), &registry);
    let ids: Vec<String> = (0..60).map(|n| queue.enqueue(Same { n }).unwrap().id).collect();
    Worker::new(Arc::clone(&queue), registry, drain()).unwrap().run(&Shutdown::new()).unwrap();
    let bad: Vec<_> = ids.iter().map(|id| queue.get(id).unwrap()).filter(|j| j.status != Status::Completed).collect();
    for job in bad.iter().take(3) {
        println!("{} {} {:?}", job.id, job.status.as_str(), job.last_error);
    }
    assert!(bad.is_empty(), "{} of 60 did not complete", bad.len());
}

/// The same with two workers.
#[test]
fn a_put_of_whatever_is_there_with_two_workers() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(SameHandler);
    let queue = open(folder.path(), &registry);
    let ids: Vec<String> = (0..400).map(|n| queue.enqueue(Same { n }).unwrap().id).collect();
    let ends: Vec<_> = (0..2)
        .map(|_| {
            let registry = Registry::new().with(SameHandler);
            let queue = open(folder.path(), &registry);
            start(Worker::new(queue, registry, drain()).unwrap(), Shutdown::new())
        })
        .collect();
    for end in ends {
        end.recv_timeout(Duration::from_secs(100)).unwrap().unwrap();
    }
    let bad: Vec<_> = ids.iter().map(|id| queue.get(id).unwrap()).filter(|j| j.status != Status::Completed).collect();
    for job in bad.iter().take(3) {
        println!("{} {} {:?}", job.id, job.status.as_str(), job.last_error);
    }
    assert!(bad.is_empty(), "{} of 400 did not complete", bad.len());
}

/// A decided job keeps its staged content whoever loses its lease.
#[test]
fn a_frozen_worker_that_comes_back_does_not_throw_away_what_another_has_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::builtin();
    let queue = open(folder.path(), &registry);
    let id = queue.enqueue(jobq::handlers::CreateFile::text("out/a.txt", "hello")).unwrap().id;
    // A freezes between decide and apply.
    let (decided, frozen) = mpsc::channel();
    let (thaw, go) = mpsc::channel::<()>();
    let (decided, go) = (Mutex::new(decided), Mutex::new(go));
    let shutdown = Shutdown::new();
    let a = Worker::new(Arc::clone(&queue), registry, WorkerOptions::default()).unwrap().observed_by(move |event| {
        if let WorkerEvent::Decided { .. } = event {
            decided.lock().unwrap().send(()).unwrap();
            go.lock().unwrap().recv().unwrap();
        }
        if let WorkerEvent::Attempt(report) = event {
            println!("A says {:?}", report.outcome);
        }
    });
    let end = start(a, shutdown.clone());
    frozen.recv_timeout(Duration::from_secs(10)).unwrap();
    // Its lease runs out: B (by the store's verbs) takes it back and over.
    let registry = Registry::builtin();
    let b = open(folder.path(), &registry);
    let db = jobq::store::sqlite::SqliteStore::open(jobq::store::sqlite::SqliteOptions::new(
        folder.path().join(".jobq/jobq.db"),
    ))
    .unwrap();
    let lease = db.leases().unwrap().pop().unwrap();
    db.reclaim(jobq::store::Reclaim {
        dead: vec![],
        lapsed: vec![jobq::store::LapsedLease {
            lease: lease.lease,
            heartbeat: lease.heartbeat,
            started: jobq::store::Started::Unknown,
        }],
    })
    .unwrap();
    let lock = jobq::liveness::OwnerLock::acquire(&b.owners_folder()).unwrap();
    let taken = db.take_over(lock.owner().clone(), 10).unwrap().pop().unwrap();
    // A comes back before B has applied.
    thaw.send(()).unwrap();
    shutdown.request();
    end.recv_timeout(Duration::from_secs(10)).unwrap().unwrap();
    let files: Arc<dyn jobq::store::Applier> = Arc::new(
        jobq::effects::Files::open(folder.path(), &folder.path().join(".jobq"), &lock.owner().locked_by).unwrap(),
    );
    println!("B: {:?}", db.apply(taken.lease, files));
    let job = queue.get(&id).unwrap();
    assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
}
