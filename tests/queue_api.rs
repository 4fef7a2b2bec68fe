//! What applications call: typed payloads and results, their own transactions,
//! waiting.

use std::time::Duration;

use jobq::liveness::OwnerLock;
use jobq::store::{ClaimRequest, Completion, Store as _};
use jobq::{EnqueueOutcome, ErrorKind, Filter, JobTypes, NewJob, Payload, Queue, QueueOptions, Status};
use rusqlite::{Connection, TransactionBehavior};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Sum {
    numbers: Vec<u64>,
}

impl Payload for Sum {
    const TYPE: &'static str = "sum";
    type Output = u64;

    fn validate(&self) -> jobq::Result<()> {
        if self.numbers.is_empty() {
            return Err(jobq::Error::invalid("numbers", "must not be empty"));
        }
        Ok(())
    }
}

fn open(folder: &tempfile::TempDir) -> Queue {
    let types = JobTypes::builtin().with::<Sum>();
    QueueOptions::at(folder.path().join("app.db")).create(true).types(types).open().unwrap()
}

fn application(folder: &tempfile::TempDir) -> Connection {
    Connection::open(folder.path().join("app.db")).unwrap()
}

/// Claims the one ready job and completes it with this result.
fn complete_next(queue: &Queue, lock: &OwnerLock, result: &str) -> String {
    let request = ClaimRequest {
        owner: lock.owner().clone(),
        types: vec!["sum".into()],
        limit: 1,
        limits: jobq::store::Limits::new(),
    };
    let claimed = queue.store().claim(request).unwrap().remove(0);
    let id = claimed.lease.id.clone();
    let completion = Completion { lease: claimed.lease, result: Some(result.into()), follow_ups: Vec::new() };
    queue.store().complete(vec![completion]).unwrap().remove(0).unwrap();
    id
}

#[test]
fn a_typed_payload_goes_in_and_a_typed_result_comes_out() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let lock = OwnerLock::acquire(&queue.owners_folder()).unwrap();
    let job = queue.enqueue(Sum { numbers: vec![1, 2, 3] }).unwrap();
    assert_eq!(queue.result::<Sum>(&job.id).unwrap(), None, "not yet");
    assert_eq!(complete_next(&queue, &lock, "6"), job.id);
    assert_eq!(queue.result::<Sum>(&job.id).unwrap(), Some(6));
    assert_eq!(queue.get(&job.id).unwrap().payload::<Sum>().unwrap().numbers, [1, 2, 3]);
    let other = queue.enqueue(NewJob::raw("other", "{}")).unwrap();
    assert!(queue.result::<Sum>(&other.id).unwrap_err().is_invalid(), "another type's result");
}

#[test]
fn an_invalid_payload_is_refused_typed_or_raw_with_its_field() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let typed = queue.enqueue(Sum { numbers: vec![] }).unwrap_err();
    let raw = queue.enqueue(NewJob::raw("sum", r#"{"numbers":[]}"#)).unwrap_err();
    assert_eq!((typed.field(), raw.field()), (Some("numbers"), Some("numbers")));
    let many = [NewJob::of(&Sum { numbers: vec![1] }), NewJob::of(&Sum { numbers: vec![] })];
    assert_eq!(queue.enqueue_many(many).unwrap_err().item(), Some(1));
    assert!(queue.list(&Filter::default()).unwrap().is_empty(), "none of it was queued");
}

#[test]
fn typed_and_raw_payloads_that_mean_the_same_are_the_same_job() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let typed = queue.enqueue(Sum { numbers: vec![1, 2] }).unwrap();
    let raw = queue.enqueue(NewJob::raw("sum", "{ \"numbers\": [1, 2] }")).unwrap();
    assert_eq!((raw.outcome, raw.id), (EnqueueOutcome::Existing, typed.id));
}

#[test]
fn a_job_on_the_callers_transaction_exists_exactly_when_that_commits() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let mut app = application(&folder);
    app.execute_batch("CREATE TABLE model (x INTEGER)").unwrap();
    for commit in [false, true] {
        let tx = app.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        tx.execute("INSERT INTO model VALUES (1)", []).unwrap();
        let job = queue.enqueue_in(&tx, Sum { numbers: vec![1] }).unwrap();
        let refused = queue.enqueue_in(&tx, Sum { numbers: vec![2] }.after("no-such-job"));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound, "a refusal leaves the transaction usable");
        if commit {
            tx.commit().unwrap();
            assert_eq!(queue.get(&job.id).unwrap().status, Status::Pending);
        } else {
            tx.rollback().unwrap();
            assert!(queue.get(&job.id).unwrap_err().is_not_found());
        }
    }
    assert_eq!(app.query_row("SELECT count(*) FROM model", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    assert_eq!(queue.list(&Filter::default()).unwrap().len(), 1);
}

trait After {
    fn after(self, id: &str) -> NewJob;
}

impl<P: Payload> After for P {
    fn after(self, id: &str) -> NewJob {
        NewJob::of(&self).after(id)
    }
}

#[test]
fn tables_in_an_attached_database_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let mut app = Connection::open(folder.path().join("other.db")).unwrap();
    let path = folder.path().join("app.db");
    app.execute("ATTACH ?1 AS jobs_db", [path.to_str().unwrap()]).unwrap();
    let tx = app.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let error = queue.enqueue_in(&tx, Sum { numbers: vec![1] }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoDatabase, "{error}");
    drop(tx);
    assert!(queue.list(&Filter::default()).unwrap().is_empty());
}

#[test]
fn waiting_returns_the_job_when_it_ends_and_nothing_when_time_runs_out() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let lock = OwnerLock::acquire(&queue.owners_folder()).unwrap();
    let job = queue.enqueue(Sum { numbers: vec![1] }).unwrap();
    assert!(queue.wait(&job.id, Duration::from_millis(1)).unwrap().is_none());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| queue.wait(&job.id, Duration::from_secs(60)).unwrap().unwrap());
        complete_next(&queue, &lock, "1");
        assert_eq!(waiter.join().unwrap().status, Status::Completed);
    });
}

#[test]
fn temporary_tables_that_hide_ours_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(&folder);
    let mut app = application(&folder);
    app.execute_batch("CREATE TEMP TABLE job_holds (key, seq, job_id, active)").unwrap();
    let tx = app.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    assert_eq!(queue.enqueue_in(&tx, Sum { numbers: vec![1] }).unwrap_err().kind(), ErrorKind::Schema);
}
