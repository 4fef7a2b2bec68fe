//! Decide and apply through the real store, with a real disk under it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use jobq::clock::ManualClock;
use jobq::effects::{Act, Files};
use jobq::store::sqlite::{SqliteOptions, SqliteStore};
use jobq::store::{
    Application, DeadOwner, Decision, EffectOp, Ending, Lease, PlannedEffect, Reclaim, Step, Store as _,
};
use jobq::{NewJob, Status};
use rustix::io::Errno;

use super::support::{claim_request, note, owner, types};
use super::world::{World, inode, os_error, plan_puts, put, remove};

struct Bench {
    world: World,
    clock: Arc<ManualClock>,
    store: SqliteStore,
}

impl Bench {
    fn new() -> Self {
        let world = World::new();
        let clock = Arc::new(ManualClock::at(1_700_000_000_000));
        let path = world.state().join("jobq.db");
        let store = SqliteStore::open(SqliteOptions {
            create: true,
            types: types(),
            clock: clock.clone(),
            state: Some(world.state()),
            ..SqliteOptions::new(&path)
        });
        Self { store: store.unwrap(), world, clock }
    }

    /// Queues and claims jobs.
    fn claim(&self, count: u32) -> Vec<Lease> {
        let queue = super::support::queue_at(&self.world.state().join("jobq.db"));
        for n in 0..count {
            queue.enqueue(NewJob::of(&note(&n.to_string()))).unwrap();
        }
        let claimed: Vec<_> = self.store.claim(claim_request(count)).unwrap().into_iter().map(|c| c.lease).collect();
        assert_eq!(claimed.len(), count as usize);
        claimed
    }

    fn decide(&self, lease: &Lease, effects: Vec<PlannedEffect>) {
        let decision = Decision { effects, ..Decision::default() };
        assert_eq!(self.store.decide(lease.clone(), decision).unwrap(), Ending::Done);
    }

    fn status(&self, lease: &Lease) -> Status {
        self.store.get(&lease.id).unwrap().status
    }
}

#[test]
fn a_job_with_files_goes_all_the_way() {
    let bench = Bench::new();
    bench.world.write("goes", "old");
    bench.world.old("f", "old");
    let files = Arc::new(bench.world.files());
    let lease = bench.claim(1).remove(0);
    let effects = vec![put(&files, &lease, 0, "f", "new"), put(&files, &lease, 1, "a/b", "new"), remove("goes")];
    bench.decide(&lease, files.plan_all(effects).unwrap());
    assert_eq!(bench.world.content("f").as_deref(), Some("old"));
    assert_eq!(bench.store.apply(lease.clone(), files).unwrap(), Application::Completed);
    assert_eq!(bench.status(&lease), Status::Completed);
    assert_eq!(bench.world.content("f").as_deref(), Some("new"));
    assert_eq!(bench.world.content("a/b").as_deref(), Some("new"));
    assert_eq!(bench.world.content("goes"), None);
}

#[test]
fn a_conflict_fails_the_job_and_a_retry_applies_again() {
    let bench = Bench::new();
    bench.world.old("f", "old");
    let files = Arc::new(bench.world.files());
    let lease = bench.claim(1).remove(0);
    bench.decide(&lease, plan_puts(&files, &lease, &[("f", "new")]));
    bench.world.write("f", "the user's");
    let answer = bench.store.apply(lease.clone(), files.clone()).unwrap();
    assert!(matches!(&answer, Application::Conflict(why) if why.starts_with("conflict: f: ")), "{answer:?}");
    bench.world.write("f", "old");
    bench.store.retry(&lease.id).unwrap();
    let lease = bench.store.take_over(owner("next"), 1).unwrap().remove(0).lease;
    assert_eq!(bench.store.apply(lease, files).unwrap(), Application::Completed);
    assert_eq!(bench.world.content("f").as_deref(), Some("new"));
}

/// The first `failing` syncs of folders below the root fail.
fn failing(files: Files, failing: usize) -> (Arc<Files>, Arc<AtomicUsize>) {
    let (rewritten, left) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(failing));
    let counted = rewritten.clone();
    let armed = AtomicBool::new(false);
    let files = files.watched(move |act, what| {
        // Only once something has been applied: staging has syncs of its own.
        match act {
            Act::Create => armed.store(true, Ordering::SeqCst),
            Act::Replace => drop(counted.fetch_add(1, Ordering::SeqCst)),
            Act::SyncFolder if armed.load(Ordering::SeqCst) && !what.starts_with(".jobq") => {
                let failed = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
                return if failed.is_ok() { Err(os_error(Errno::IO)) } else { Ok(()) };
            }
            _ => {}
        }
        Ok(())
    });
    (Arc::new(files), rewritten)
}

/// The store runs a group again job by job when its folders cannot be synced. It
/// does not know yet that what is in place cannot be trusted; the files do.
#[test]
fn a_group_whose_sync_failed_is_written_afresh() {
    let bench = Bench::new();
    let (files, rewritten) = failing(bench.world.files(), 1);
    let leases = bench.claim(3);
    for (n, lease) in leases.iter().enumerate() {
        bench.decide(lease, plan_puts(&files, lease, &[(&format!("d{n}/f"), "new")]));
    }
    let steps = leases.iter().map(|lease| (lease.clone(), Step::Apply(files.clone()))).collect();
    for answer in bench.store.settle(steps).unwrap() {
        answer.unwrap();
    }
    for lease in &leases {
        assert_eq!(bench.status(lease), Status::Completed);
    }
    assert_eq!(rewritten.load(Ordering::SeqCst), 3, "all of the group were in doubt");
}

#[test]
fn a_job_whose_sync_keeps_failing_is_put_off_and_written_afresh_by_the_next() {
    let bench = Bench::new();
    let (files, rewritten) = failing(bench.world.files(), 2);
    let lease = bench.claim(1).remove(0);
    bench.decide(&lease, plan_puts(&files, &lease, &[("a/f", "new")]));
    let answer = bench.store.apply(lease.clone(), files).unwrap();
    assert!(matches!(&answer, Application::Deferred(why) if why.starts_with("sync_failed: ")), "{answer:?}");
    assert_eq!((bench.status(&lease), rewritten.load(Ordering::SeqCst)), (Status::Claimed, 1));
    let before = inode(&bench.world.path("a/f"));

    bench.clock.advance(10_000);
    let next = bench.store.take_over(owner("next"), 1).unwrap().remove(0).lease;
    let others = Arc::new(bench.world.files_of("owner-2"));
    assert_eq!(bench.store.apply(next, others).unwrap(), Application::Completed);
    assert_ne!(inode(&bench.world.path("a/f")), before, "the next process knew");
    assert_eq!(bench.world.content("a/f").as_deref(), Some("new"));
}

/// What a dead process has left, in other hands.
fn taken_over(bench: &Bench) -> Vec<Lease> {
    let dead = vec![DeadOwner { locked_by: claim_request(1).owner.locked_by, started: None }];
    bench.store.reclaim(Reclaim { dead, lapsed: Vec::new() }).unwrap();
    bench.store.take_over(owner("next"), 64).unwrap().into_iter().map(|taken| taken.lease).collect()
}

/// Its size is as it was, and so is its name; it is for the hash to tell.
#[test]
fn staged_content_that_is_damaged_is_not_put_in_place() {
    let bench = Bench::new();
    let leases = bench.claim(2);
    let files = Arc::new(bench.world.files());
    for (lease, path) in leases.iter().zip(["damaged", "sound"]) {
        bench.decide(lease, plan_puts(&files, lease, &[(path, "content")]));
    }
    let staged = bench.store.planned(&leases[0].id).unwrap().remove(0);
    let EffectOp::Put { stage: Some(stage), .. } = staged.op else { panic!("{staged:?}") };
    std::fs::write(bench.world.state().join("stage").join(stage), "cantent").unwrap();
    for lease in taken_over(&bench) {
        let next = Arc::new(bench.world.files());
        let answer = bench.store.apply(lease.clone(), next).unwrap();
        match bench.store.get(&lease.id).unwrap().status {
            Status::Failed => {
                assert_eq!(lease.id, leases[0].id);
                assert!(matches!(&answer, Application::Conflict(why) if why.contains("damaged")), "{answer:?}");
            }
            status => assert_eq!((lease.id.as_str(), status), (leases[1].id.as_str(), Status::Completed)),
        }
    }
    assert_eq!((bench.world.content("damaged"), bench.world.content("sound").as_deref()), (None, Some("content")));
}

/// Changes rows as no writer can: types and checks of the schema do not hold for damage.
fn hurt(bench: &Bench, damage: &str, job: &str) {
    let open = || rusqlite::Connection::open(bench.world.state().join("jobq.db")).unwrap();
    let relaxed = "PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = replace(replace(sql, ' TEXT ', ' ANY '), 'TEXT,', 'ANY,')
         WHERE type = 'table' AND name IN ('jobs', 'effects');
        DROP TRIGGER jobs_transition";
    open().execute_batch(relaxed).unwrap();
    let sql = open();
    sql.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
    assert!(sql.execute(damage, [job]).unwrap() > 0, "{damage}");
}

/// Whatever of a decision is not as it was recorded, nothing of it is done.
#[test]
fn a_damaged_plan_ends_failed_and_alone() {
    for damage in [
        "UPDATE effects SET path = 'other' WHERE job_id = ?1 AND number = 0",
        "UPDATE effects SET path = CAST(x'61ff' AS TEXT) WHERE job_id = ?1 AND number = 0",
        "UPDATE effects SET op = 'remove', sha256 = NULL, size = NULL, stage = NULL WHERE job_id = ?1 AND number = 0",
        "UPDATE effects SET path = 'stays' WHERE job_id = ?1 AND number = 1",
        "UPDATE effects SET job_id = 'nobody' WHERE job_id = ?1 AND number = 1",
        "DELETE FROM effects WHERE job_id = ?1",
        "UPDATE jobs SET outcome = replace(outcome, 'first', 'furst') WHERE id = ?1",
        "UPDATE jobs SET outcome = replace(outcome, '\"sha256\"', '\"sha257\"') WHERE id = ?1",
        "UPDATE jobs SET outcome = '{' WHERE id = ?1",
        "UPDATE jobs SET outcome = CAST(x'7bff' AS TEXT) WHERE id = ?1",
        // As a flipped bit leaves it: by the schema it could not be so.
        "UPDATE effects SET state = 'pl`nned' WHERE job_id = ?1 AND number = 0",
        "UPDATE effects SET state = 'planned' || char(0) WHERE job_id = ?1 AND number = 1",
        "UPDATE effects SET path = 7 WHERE job_id = ?1 AND number = 0",
        "UPDATE effects SET stage = 1.5 WHERE job_id = ?1 AND number = 0",
        "UPDATE jobs SET outcome = 7 WHERE id = ?1",
    ] {
        let bench = Bench::new();
        for path in ["goes", "stays"] {
            bench.world.old(path, path);
        }
        let leases = bench.claim(2);
        let files = Arc::new(bench.world.files());
        let effects = files.plan_all(vec![put(&files, &leases[0], 0, "new", "new"), remove("goes")]).unwrap();
        let decision = Decision { effects, result: Some("\"first\"".to_owned()), ..Decision::default() };
        bench.store.decide(leases[0].clone(), decision).unwrap();
        bench.decide(&leases[1], plan_puts(&files, &leases[1], &[("sound", "content")]));
        hurt(&bench, damage, &leases[0].id);
        let taken = taken_over(&bench);
        let steps = taken.iter().map(|lease| (lease.clone(), Step::Apply(files.clone()))).collect();
        for answer in bench.store.settle(steps).expect(damage) {
            answer.expect(damage);
        }
        assert_eq!(
            [bench.status(&leases[0]), bench.status(&leases[1])],
            [Status::Failed, Status::Completed],
            "{damage}"
        );
        let error = bench.store.get(&leases[0].id).unwrap().last_error.unwrap();
        assert!(error.starts_with("plan_damaged: "), "{damage}: {error}");
        let there = ["new", "other", "goes", "stays", "sound"].map(|path| bench.world.content(path).is_some());
        assert_eq!(there, [false, false, true, true, true], "{damage}");
    }
}
