//! A worker that leaves in good order has lost nobody: what it still has goes
//! back, and only what it had started has used an attempt.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobq::*;
use serde::{Deserialize, Serialize};

use super::world::*;

fn events(queue: &Queue, id: &str) -> Vec<String> {
    let query = EventQuery { job_id: Some(id.to_owned()), after: 0, limit: 100 };
    queue.events(&query).unwrap().into_iter().map(|event| event.event_type).collect()
}

/// A claim whose COMMIT failed and turned out to be durable, and no sweep comes
/// before the worker is told to stop.
#[test]
fn a_claim_it_does_not_know_of_loses_no_attempt_when_it_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(NopHandler);
    let queue = open(folder.path(), &registry);
    let name = Arc::new(Mutex::new(String::new()));
    let told = Arc::clone(&name);
    let shutdown = Shutdown::new();
    let options = WorkerOptions { poll_interval: Duration::from_secs(3600), ..WorkerOptions::default() };
    let worker = Worker::new(Arc::clone(&queue), registry, options).unwrap().observed_by(move |event| {
        if let WorkerEvent::Started { worker, .. } = event {
            *told.lock().unwrap() = worker.clone();
        }
    });
    let end = start(worker, shutdown.clone());
    let first = queue.enqueue(Nop { n: 1 }).unwrap().id; // so that the owner is on record
    queue.wait(&first, Duration::from_secs(30)).unwrap().unwrap();
    let at = std::time::SystemTime::now() + Duration::from_secs(1000);
    let id = queue.enqueue(NewJob::from(Nop { n: 2 }).run_at(at)).unwrap().id;
    sql(folder.path())
        .execute(
            "UPDATE jobs SET status='claimed', gate=NULL, locked_by=?2, locked_at=1, attempts=attempts+1, token=token+1 WHERE id=?1",
            rusqlite::params![id, *name.lock().unwrap()],
        )
        .unwrap();
    shutdown.request();
    end.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
    let job = queue.get(&id).unwrap();
    assert_eq!((job.status, job.attempts, job.last_error), (Status::Pending, 0, None));
    assert_eq!(events(&queue, &id), ["queued", "released"]);
}

payload!(Obedient, "obedient");
struct ObedientHandler(Arc<AtomicBool>);
impl Handler for ObedientHandler {
    type Payload = Obedient;
    fn run(&self, ctx: &Context, _: Obedient) -> std::result::Result<Outcome<()>, HandlerError> {
        while ctx.stop().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.0.store(true, Ordering::SeqCst);
        Err(HandlerError::released())
    }
}

/// "A second signal … those jobs are released too", also those whose end could
/// not be recorded because the database was locked at that moment.
#[test]
fn a_forced_stop_gives_back_what_it_could_not_record() {
    let folder = tempfile::tempdir().unwrap();
    let stopped = Arc::new(AtomicBool::new(false));
    let registry = Registry::new().with(NopHandler).with(ObedientHandler(Arc::clone(&stopped)));
    let queue = QueueOptions::in_folder(folder.path()).create(true).types(registry.types());
    let queue = Arc::new(queue.busy_timeout(Duration::from_millis(100)).open().unwrap());
    let long = queue.enqueue(Obedient { n: 1 }).unwrap().id;
    let short = queue.enqueue(Nop { n: 1 }).unwrap().id;
    let shutdown = Shutdown::new();
    let (asked, blocker) = (shutdown.clone(), Mutex::new(Some(sql(folder.path()))));
    let worker = Worker::new(Arc::clone(&queue), registry, WorkerOptions::default()).unwrap();
    let root = folder.path().to_owned();
    let worker = worker.observed_by(move |event| match event {
        // Both are claimed; nothing is recorded from here on.
        WorkerEvent::AttemptStarted { job_type, .. } if job_type == "nop" => {
            let claimed = "SELECT count(*) = 2 FROM jobs WHERE status = 'claimed'";
            until("both are claimed", || sql(&root).query_row(claimed, [], |row| row.get(0)).unwrap());
            blocker.lock().unwrap().as_ref().unwrap().execute_batch("BEGIN IMMEDIATE").unwrap();
        }
        // The end of the short one could not be recorded. Before that is tried again
        // the worker is told to go at once, and then the database is free.
        WorkerEvent::Trouble { .. } if std::thread::current().name() == Some("jobq-finish") => {
            asked.request();
            asked.request();
            until("the stop has come through", || stopped.load(Ordering::SeqCst));
            drop(blocker.lock().unwrap().take());
        }
        _ => {}
    });
    let ended = start(worker, shutdown).recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(ended.is_err(), "not all is in order");
    for id in [long, short] {
        let job = queue.get(&id).unwrap();
        assert_eq!((job.status, job.attempts, job.last_error), (Status::Pending, 0, None), "{}", job.job_type);
        assert_eq!(events(&queue, &id), ["queued", "claimed", "released"]);
    }
}
