//! Rows that get in the way of others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobq::store::Store as _;
use jobq::*;
use serde::{Deserialize, Serialize};

use super::world::*;

#[derive(Serialize, Deserialize)]
struct Picky {
    n: u32,
}
impl Payload for Picky {
    const TYPE: &'static str = "picky";
    type Output = ();
    fn validate(&self) -> Result<()> {
        let table = [1, 2, 3];
        let _ = table[self.n as usize];
        Ok(())
    }
}
struct PickyHandler;
impl Handler for PickyHandler {
    type Payload = Picky;
    fn run(&self, _: &Context, _: Picky) -> std::result::Result<Outcome<()>, HandlerError> {
        Ok(Outcome::new(()))
    }
}

/// One plain-SQL row ends alone, whatever its validation does.
#[test]
fn a_row_whose_validation_panics_does_not_stop_the_queue() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(PickyHandler).with(NopHandler);
    let queue = open(folder.path(), &registry);
    let good = queue.enqueue(Nop { n: 1 }).unwrap().id;
    sql(folder.path())
        .execute("INSERT INTO jobs (id, type, payload) VALUES ('bad', 'picky', '{\"n\":7}')", [])
        .unwrap();
    let shutdown = Shutdown::new();
    let troubles = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&troubles);
    let worker = Worker::new(Arc::clone(&queue), registry, drain()).unwrap().observed_by(move |event| {
        if let WorkerEvent::Trouble { error, .. } = event {
            println!("trouble: {error}");
            seen.fetch_add(1, Ordering::SeqCst);
        }
    });
    let end = start(worker, shutdown.clone());
    let first = end.recv_timeout(Duration::from_secs(6));
    let job = queue.get(&good).unwrap();
    let enqueue = queue.enqueue(Nop { n: 2 });
    println!("enqueue of another job: {:?}", enqueue.map(|e| e.id).map_err(|e| e.to_string()));
    shutdown.request();
    shutdown.request();
    let _ = end.recv_timeout(Duration::from_secs(10));
    assert!(first.is_ok() && job.status == Status::Completed, "{first:?}, the good job is {}", job.status.as_str());
}

/// `--drain` stops when nothing is left to do now.
#[test]
fn drain_does_not_end_before_due_jobs_behind_many_of_another_type() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(NopHandler).with(StuckHandler);
    let queue = open(folder.path(), &registry);
    let at = std::time::SystemTime::now() + Duration::from_millis(1500);
    let jobs: Vec<NewJob> = (0..5_001).map(|n| NewJob::from(Stuck { n }).run_at(at)).collect();
    queue.enqueue_many(jobs).unwrap();
    let id = queue.enqueue(NewJob::from(Nop { n: 1 }).run_at(at + Duration::from_millis(1))).unwrap().id;
    until("all are due", || queue.store().outlook(&[], &jobq::store::Limits::new()).unwrap().next_at.is_none());
    let options = WorkerOptions { types: Some(vec!["nop".into()]), ..drain() };
    Worker::new(Arc::clone(&queue), registry, options).unwrap().run(&Shutdown::new()).unwrap();
    assert_eq!(queue.get(&id).unwrap().status, Status::Completed, "drain left a job that was due");
}

/// `--drain` does what dead workers left, also when the database was busy for a moment.
#[test]
fn drain_takes_back_from_the_dead_after_a_busy_moment() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(NopHandler);
    let queue = Arc::new(
        QueueOptions::in_folder(folder.path())
            .create(true)
            .types(registry.types())
            .busy_timeout(Duration::from_millis(100))
            .open()
            .unwrap(),
    );
    let id = queue.enqueue(Nop { n: 1 }).unwrap().id;
    let lock = jobq::liveness::OwnerLock::acquire(&queue.owners_folder()).unwrap();
    let request = jobq::store::ClaimRequest {
        owner: lock.owner().clone(),
        types: vec!["nop".into()],
        limit: 1,
        limits: jobq::store::Limits::new(),
    };
    queue.store().claim(request).unwrap().pop().unwrap();
    drop(lock); // dead
    let conn = sql(folder.path());
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    let options = WorkerOptions { poll_interval: Duration::from_secs(60), ..drain() };
    let busy = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&busy);
    let worker = Worker::new(Arc::clone(&queue), registry, options).unwrap().observed_by(move |event| {
        seen.fetch_add(usize::from(matches!(event, WorkerEvent::Trouble { .. })), Ordering::SeqCst);
    });
    let end = start(worker, Shutdown::new());
    until("it has found the database busy", || busy.load(Ordering::SeqCst) > 0);
    conn.execute_batch("ROLLBACK").unwrap();
    end.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
    assert_eq!(queue.get(&id).unwrap().status, Status::Completed, "drain ended without it");
}

payload!(Full, "full");
struct FullHandler;
impl Handler for FullHandler {
    type Payload = Full;
    fn run(&self, _: &Context, _: Full) -> std::result::Result<Outcome<()>, HandlerError> {
        // Its own scratch disk is full, or a quota of a service it talks to.
        Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into())
    }
}

/// One job that always says "no room" must not stop the others, nor run for ever.
#[test]
fn a_job_that_never_has_room_does_not_starve_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(NopHandler).with(FullHandler);
    let queue = open(folder.path(), &registry);
    let full = queue.enqueue(NewJob::from(Full { n: 1 }).priority(1)).unwrap().id;
    for n in 0..200 {
        queue.enqueue(Nop { n }).unwrap();
    }
    let shutdown = Shutdown::new();
    let done = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&done);
    let options = WorkerOptions { concurrency: 1, ..WorkerOptions::default() };
    let worker = Worker::new(Arc::clone(&queue), registry, options).unwrap().observed_by(move |event| match event {
        WorkerEvent::Attempt(report) if report.outcome == worker::AttemptEnd::Completed => {
            seen.fetch_add(1, Ordering::SeqCst);
        }
        WorkerEvent::Trouble { error, retry_in } => println!("{error} {retry_in:?}"),
        _ => {}
    });
    let end = start(worker, shutdown.clone());
    until("the no-ops have run", || done.load(Ordering::SeqCst) == 200);
    shutdown.request();
    let _ = end.recv_timeout(Duration::from_secs(10));
    let full = queue.get(&full).unwrap();
    assert_eq!((full.status, full.attempts), (Status::Pending, 0), "nobody's fault, so no attempt is used up");
}

/// Design §5: a worker releases rows locked by it that it does not hold (a claim
/// whose COMMIT failed and turned out to be durable). Made here by hand: the
/// very row such a claim leaves.
#[test]
fn a_claim_that_nobody_here_knows_of_is_released() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(NopHandler);
    let queue = open(folder.path(), &registry);
    let name = Arc::new(Mutex::new(String::new()));
    let told = Arc::clone(&name);
    let shutdown = Shutdown::new();
    let options = WorkerOptions {
        lease: Duration::from_secs(2),
        poll_interval: Duration::from_millis(100),
        ..WorkerOptions::default()
    };
    let worker = Worker::new(Arc::clone(&queue), registry, options).unwrap().observed_by(move |event| {
        if let WorkerEvent::Started { worker, .. } = event {
            *told.lock().unwrap() = worker.clone();
        }
    });
    let end = start(worker, shutdown.clone());
    let first = queue.enqueue(Nop { n: 1 }).unwrap().id; // so that the owner is on record
    queue.wait(&first, Duration::from_secs(5)).unwrap().unwrap();
    let at = std::time::SystemTime::now() + Duration::from_secs(1000);
    let id = queue.enqueue(NewJob::from(Nop { n: 2 }).run_at(at)).unwrap().id;
    sql(folder.path())
        .execute(
            "UPDATE jobs SET status='claimed', gate=NULL, locked_by=?2, locked_at=1, attempts=attempts+1, token=token+1 WHERE id=?1",
            rusqlite::params![id, *name.lock().unwrap()],
        )
        .unwrap();
    until("it has been given back", || queue.get(&id).unwrap().status != Status::Claimed);
    shutdown.request();
    end.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
}

/// A database that refuses the end of one job, as a trigger of the application's may, keeps nobody else waiting.
#[test]
fn an_end_that_is_refused_is_one_jobs_own() {
    for words in ["jobq: no", "no"] {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::new().with(NopHandler);
        let queue = open(folder.path(), &registry);
        for n in 0..40 {
            queue.enqueue(Nop { n }).unwrap();
        }
        sql(folder.path())
            .execute_batch(&format!(
                "CREATE TRIGGER refuses BEFORE UPDATE OF status ON jobs WHEN NEW.status = 'completed' AND OLD.seq = 20
                 BEGIN SELECT RAISE(ABORT, '{words}'); END"
            ))
            .unwrap();
        let worker = Worker::new(Arc::clone(&queue), registry, drain()).unwrap();
        let end = start(worker, Shutdown::new());
        end.recv_timeout(Duration::from_secs(60)).expect("it ends").expect("without an error");
        let count = |status| queue.list(&Filter { status: Some(status), ..Filter::default() }).unwrap().len();
        assert_eq!((count(Status::Completed), count(Status::Failed)), (39, 1), "{words}");
    }
}

/// Others would take the jobs of a worker that gives no sign of life for a whole lease.
#[test]
fn a_row_that_takes_no_sign_of_life_does_not_silence_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(StuckHandler);
    let queue = open(folder.path(), &registry);
    let [damaged, sound] = [1, 2].map(|n| queue.enqueue(Stuck { n }).unwrap().id);
    let options = WorkerOptions { lease: Duration::from_secs(1), concurrency: 2, ..WorkerOptions::default() };
    let (worker, shutdown) = (Worker::new(Arc::clone(&queue), registry, options).unwrap(), Shutdown::new());
    let end = start(worker, shutdown.clone());
    let is_claimed = |id: &String| queue.get(id).unwrap().status == Status::Claimed;
    until("both run", || is_claimed(&damaged) && is_claimed(&sound));
    let conn = sql(folder.path());
    conn.execute_batch(&format!(
        "CREATE TRIGGER refuses BEFORE UPDATE OF heartbeat ON jobs WHEN OLD.id = '{damaged}' AND NEW.heartbeat > 0
         BEGIN SELECT RAISE(ABORT, 'no'); END"
    ))
    .unwrap();
    let signs = || conn.query_row("SELECT heartbeat FROM jobs WHERE id = ?1", [&sound], |row| row.get::<_, i64>(0));
    let before = signs().unwrap();
    until("it gives signs of life", || signs().unwrap() > before + 2);
    shutdown.request();
    end.recv_timeout(Duration::from_secs(60)).expect("it ends").unwrap();
    assert_eq!([&damaged, &sound].map(|id| queue.get(id).unwrap().status), [Status::Pending; 2]);
}

/// Nor does it keep the worker from others, if it is all that the worker has.
#[test]
fn a_row_that_takes_no_sign_of_life_does_not_keep_others_from_being_claimed() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(StuckHandler).with(NopHandler);
    let queue = open(folder.path(), &registry);
    let damaged = queue.enqueue(Stuck { n: 1 }).unwrap().id;
    let options = WorkerOptions { lease: Duration::from_millis(200), concurrency: 2, ..WorkerOptions::default() };
    let (worker, shutdown) = (Worker::new(Arc::clone(&queue), registry, options).unwrap(), Shutdown::new());
    let end = start(worker, shutdown.clone());
    until("it runs", || queue.get(&damaged).unwrap().status == Status::Claimed);
    sql(folder.path())
        .execute_batch(
            "CREATE TRIGGER refuses BEFORE UPDATE OF heartbeat ON jobs WHEN OLD.type = 'stuck' AND NEW.heartbeat > 0
             BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .unwrap();
    // One after the other, for longer than it takes to try a sign of life.
    let since = std::time::Instant::now();
    for n in 0.. {
        let id = queue.enqueue(Nop { n }).unwrap().id;
        let job = queue.wait(&id, Duration::from_secs(60)).unwrap();
        assert_eq!(job.expect("it is claimed").status, Status::Completed);
        if since.elapsed() > Duration::from_millis(100) {
            break;
        }
    }
    shutdown.request();
    end.recv_timeout(Duration::from_secs(60)).expect("it ends").unwrap();
}

/// What a dead worker had and cannot be taken back is in the way of nobody.
#[test]
fn a_row_that_cannot_be_taken_back_keeps_nobody_from_claiming() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(NopHandler).with(StuckHandler);
    let queue = open(folder.path(), &registry);
    let [damaged, sound] = [1, 2].map(|n| queue.enqueue(Stuck { n }).unwrap().id);
    let lock = jobq::liveness::OwnerLock::acquire(&queue.owners_folder()).unwrap();
    let request = jobq::store::ClaimRequest {
        owner: lock.owner().clone(),
        types: vec!["stuck".into()],
        limit: 2,
        limits: jobq::store::Limits::new(),
    };
    assert_eq!(queue.store().claim(request).unwrap().len(), 2);
    drop(lock); // dead
    sql(folder.path())
        .execute_batch(&format!(
            "CREATE TRIGGER refuses BEFORE UPDATE OF status ON jobs WHEN NEW.status = 'pending' AND OLD.id = '{damaged}'
             BEGIN SELECT RAISE(ABORT, 'no'); END"
        ))
        .unwrap();
    let nop = queue.enqueue(Nop { n: 1 }).unwrap().id;
    let troubles = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&troubles);
    let options = WorkerOptions { types: Some(vec!["nop".into()]), ..drain() };
    let worker = Worker::new(Arc::clone(&queue), registry, options).unwrap().observed_by(move |event| {
        seen.fetch_add(usize::from(matches!(event, WorkerEvent::Trouble { .. })), Ordering::SeqCst);
    });
    start(worker, Shutdown::new()).recv_timeout(Duration::from_secs(60)).expect("it ends").unwrap();
    let states = [&damaged, &sound, &nop].map(|id| queue.get(id).unwrap().status);
    assert_eq!(states, [Status::Claimed, Status::Pending, Status::Completed]);
    assert_eq!(troubles.load(Ordering::SeqCst), 0);
    // Whoever comes can still tell that its owner is dead.
    sql(folder.path()).execute_batch("DROP TRIGGER refuses").unwrap();
    assert_eq!(open(folder.path(), &Registry::new().with(StuckHandler)).reclaim().unwrap().pending, [damaged]);
}

/// Others are claimed all the same, a drain ends, and what was left aside is as it was.
#[test]
fn a_row_that_cannot_be_claimed_keeps_nobody_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(NopHandler);
    let queue = open(folder.path(), &registry);
    let damaged = queue.enqueue(NewJob::from(Nop { n: 0 }).priority(1)).unwrap().id;
    let others: Vec<String> = (1..20).map(|n| queue.enqueue(Nop { n }).unwrap().id).collect();
    sql(folder.path())
        .execute_batch(&format!(
            "CREATE TRIGGER refuses BEFORE UPDATE OF status ON jobs WHEN NEW.status = 'claimed' AND OLD.id = '{damaged}'
             BEGIN SELECT RAISE(ABORT, 'no'); END"
        ))
        .unwrap();
    let options = WorkerOptions { concurrency: 1, ..drain() };
    let worker = Worker::new(Arc::clone(&queue), registry, options).unwrap();
    start(worker, Shutdown::new()).recv_timeout(Duration::from_secs(60)).expect("it ends").unwrap();
    assert!(others.iter().all(|id| queue.get(id).unwrap().status == Status::Completed));
    assert_eq!(queue.get(&damaged).unwrap().status, Status::Pending);
}

/// Nobody must take the end of a drain for the end of its jobs.
#[test]
fn a_worker_that_leaves_a_job_claimed_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(NopHandler);
    let queue = open(folder.path(), &registry);
    let id = queue.enqueue(Nop { n: 1 }).unwrap().id;
    sql(folder.path())
        .execute_batch(
            "CREATE TRIGGER refuses BEFORE UPDATE OF status ON jobs WHEN OLD.status = 'claimed'
             BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .unwrap();
    let worker = Worker::new(Arc::clone(&queue), registry, drain()).unwrap();
    let end = start(worker, Shutdown::new()).recv_timeout(Duration::from_secs(60)).expect("it ends");
    assert_eq!(queue.get(&id).unwrap().status, Status::Claimed);
    assert!(end.as_ref().is_err_and(|error| error.contains(&id)), "{end:?}");
}
