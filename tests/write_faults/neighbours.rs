//! Operations that go wrong by themselves, beside others that do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jobq::handlers::CreateFile;
use jobq::store::{Applier, ApplyReport, Decision, EffectOp, Failure, Lease, PlannedEffect, Precondition, Store as _};
use jobq::{ErrorKind, Hold, NewJob, Payload, Queue, QueueOptions, Status};
use serde::{Deserialize, Serialize};

use super::group::{Caller, enqueue, opener, together};
use super::support::{self, claim_request, raw};
use super::{Bench, id, job};

#[test]
fn a_batch_whose_last_job_is_refused_is_undone_alone() {
    let bench = Bench::set_up();
    let queue = bench.queue();
    let batch: Caller<'_> = Box::new(|| queue.enqueue_many([job(2), job(3), job(4).after(id(99))]).map(drop));
    let callers = vec![enqueue(&queue, job(1)), batch, enqueue(&queue, job(5))];

    let answers = together(&bench, &queue, &opener(&queue), callers, || {});

    let error = answers[1].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("job 3") && error.to_string().contains(&id(99)), "{error}");
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    drop(queue);
    let found: Vec<_> = (1..=5).map(|number| bench.rows_of(&id(number))).collect();
    assert_eq!(found, [1, 0, 0, 0, 1]);
    bench.assert_whole();
}

struct Panics;

impl Applier for Panics {
    fn apply(&self, _: &Lease, _: &[PlannedEffect], _: bool) -> ApplyReport {
        panic!("a bug in the one who applies, on purpose");
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(())
    }
}

#[test]
fn a_panic_inside_an_operation_is_answered_and_harms_no_neighbour() {
    let bench = Bench::set_up();
    let queue = bench.queue();
    queue.enqueue(job(1)).unwrap();
    let lease = queue.store().claim(claim_request(1)).unwrap().pop().unwrap().lease;
    let effect = PlannedEffect {
        path: "a.txt".to_owned(),
        op: EffectOp::Remove,
        precondition: Precondition::Absent,
        observed: None,
    };
    let decision = Decision { result: None, effects: vec![effect], follow_ups: Vec::new() };
    queue.store().decide(lease.clone(), decision).unwrap();
    let apply: Caller<'_> = Box::new(|| queue.store().apply(lease, Arc::new(Panics)).map(drop));
    let callers = vec![enqueue(&queue, job(2)), apply, enqueue(&queue, job(3))];

    let answers = together(&bench, &queue, &opener(&queue), callers, || {});

    let error = answers[1].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.to_string().contains("panic") && error.to_string().contains(&id(1)), "{error}");
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    let decided = queue.get(&id(1)).unwrap();
    assert_eq!((decided.status, decided.outcome.is_some()), (Status::Claimed, true), "still decided");
    drop(queue);
    assert_eq!((bench.rows_of(&id(2)), bench.rows_of(&id(3))), (1, 1));
    bench.assert_whole();
}

static PANICS_LEFT: AtomicUsize = AtomicUsize::new(0);

/// A type of an application whose check has a bug that shows now and then.
#[derive(Serialize, Deserialize)]
struct Fragile {
    path: String,
}

impl Payload for Fragile {
    const TYPE: &'static str = "fragile";
    type Output = ();

    fn validate(&self) -> jobq::Result<()> {
        let left = PANICS_LEFT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        assert!(left.is_err(), "a bug in the application, on purpose");
        Ok(())
    }

    fn holds(&self) -> jobq::Result<Vec<Hold>> {
        Ok(vec![Hold::path(&self.path)?])
    }
}

fn fragile_queue(bench: &Bench) -> Queue {
    QueueOptions::at(&bench.db).create(true).types(support::types().with::<Fragile>()).open().unwrap()
}

/// A sound row and, behind it, one whose check panics so many times.
fn insert_plain(bench: &Bench, panics: usize) {
    let conn = raw(&bench.db);
    let sql = "INSERT INTO jobs (id, type, payload) VALUES (?1, ?2, ?3)";
    conn.execute(sql, ["sound", "note", r#"{"text":"sound"}"#]).unwrap();
    conn.execute(sql, ["fragile", "fragile", r#"{"path":"a.txt"}"#]).unwrap();
    PANICS_LEFT.store(panics, Ordering::SeqCst);
}

#[test]
fn a_panic_after_the_first_change_harms_no_neighbour() {
    let bench = Bench::set_up();
    let queue = fragile_queue(&bench);
    let opener = opener(&queue);
    // Twice: once in the group, once when the group is run again, carefully.
    insert_plain(&bench, 2);
    let admit: Caller<'_> = Box::new(|| queue.store().admit().map(drop));
    let callers = vec![admit, enqueue(&queue, job(1)), enqueue(&queue, job(2))];

    let answers = together(&bench, &queue, &opener, callers, || {});

    assert!(answers[1].is_ok() && answers[2].is_ok(), "{answers:?}");
    assert_eq!(queue.get("sound").unwrap().gate, Some(jobq::Gate::Ready));
    drop(queue);
    assert_eq!((bench.rows_of(&id(1)), bench.rows_of(&id(2))), (1, 1));
    bench.assert_whole();
}

/// The row is as bad as one that is refused in good order, and ends as that one does.
#[test]
fn a_row_whose_check_always_panics_fails_and_stops_nobody() {
    let bench = Bench::set_up();
    let queue = fragile_queue(&bench);
    insert_plain(&bench, usize::MAX);
    let queued = queue.enqueue(job(1));
    let claimed = queue.store().claim(claim_request(10));
    PANICS_LEFT.store(0, Ordering::SeqCst);
    assert_eq!(queued.expect("a bad row stops nobody").id, id(1));
    let claimed: Vec<_> = claimed.unwrap().into_iter().map(|claimed| claimed.job.id).collect();
    assert_eq!(claimed, ["sound".to_owned(), id(1)]);
    assert_eq!(queue.get("fragile").unwrap().status, Status::Failed);
}

/// An admission that did not come to its end has not happened: the next
/// operation of the group must not take it for done and go past the row.
#[test]
fn a_group_does_not_overtake_rows_whose_admission_was_cut_short() {
    let bench = Bench::set_up();
    let queue = fragile_queue(&bench);
    let opener = opener(&queue);
    raw(&bench.db)
        .execute(r#"INSERT INTO jobs (id, type, payload) VALUES ('fragile', 'fragile', '{"path":"a.txt"}')"#, [])
        .unwrap();
    PANICS_LEFT.store(1, Ordering::SeqCst);
    let later = NewJob::of(&CreateFile::text("a.txt", "later")).id(id(1));
    let admit: Caller<'_> = Box::new(|| queue.store().admit().map(drop));
    let claim: Caller<'_> = Box::new(|| queue.store().claim(claim_request(10)).map(drop));

    let answers = together(&bench, &queue, &opener, vec![admit, enqueue(&queue, later), claim], || {});

    assert!(answers[1].is_ok() && answers[2].is_ok(), "{answers:?}");
    let (earlier, later) = (queue.get("fragile").unwrap(), queue.get(&id(1)).unwrap());
    assert!(earlier.seq < later.seq);
    let overtaken = later.status != Status::Pending && !earlier.status.is_finished();
    assert!(!overtaken, "the later job is {} while the earlier one is {}", later.status, earlier.status);
}
