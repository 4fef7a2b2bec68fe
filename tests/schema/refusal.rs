//! Databases this build must not touch.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jobq::store::sqlite::SqliteStore;
use jobq::store::{
    Applier, ApplyReport, Beat, Completion, DeadOwner, Decision, Failure, Lease, PlannedEffect, PruneRequest, Reclaim,
    Store as _,
};
use jobq::{ErrorKind, NewJob};
use rusqlite::TransactionBehavior;
use rusqlite::config::DbConfig;

use super::support::{claim_request, contents, note, options_for, owner, queue_at, raw};

/// Every file beside the database except the index of the WAL, which SQLite
/// rebuilds at will and which carries no content. No connection may be open.
fn files(db: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(db.parent().unwrap()).unwrap().map(Result::unwrap);
    let files = entries
        .filter(|entry| entry.path().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()));
    // An empty WAL says nothing, so it is as good as none.
    files.filter(|(name, bytes)| !name.ends_with("-shm") && !bytes.is_empty()).collect()
}

fn newer_database(db: &Path, checkpoint: bool) {
    drop(queue_at(db));
    let conn = raw(db);
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !checkpoint).unwrap();
    conn.execute("UPDATE jobq_meta SET value = '99' WHERE key = 'schema_version'", []).unwrap();
    if checkpoint {
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    }
}

#[test]
fn a_newer_database_is_refused_and_no_byte_of_it_changes() {
    for (checkpointed, create) in [(true, false), (true, true), (false, false), (false, true)] {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("jobq.db");
        newer_database(&db, checkpointed);
        let before = files(&db);
        assert_eq!(before.contains_key("jobq.db-wal"), !checkpointed, "the change is where it is meant to be");

        let refused = SqliteStore::open(options_for(&db, create)).err().expect("it is newer");

        assert_eq!(refused.kind(), ErrorKind::Schema);
        assert!(refused.to_string().contains("99"), "{refused}");
        assert!(files(&db) == before, "checkpointed: {checkpointed}, create: {create}");
    }
}

#[test]
fn a_database_of_someone_else_is_refused_and_no_byte_of_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("app.db");
    raw(&db).execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)").unwrap();
    let before = files(&db);
    let refused = SqliteStore::open(options_for(&db, false)).err().expect("it has no tables of ours");
    assert_eq!(refused.kind(), ErrorKind::NoDatabase);
    assert!(files(&db) == before);
}

struct NeverCalled;

impl Applier for NeverCalled {
    fn apply(&self, _: &Lease, _: &[PlannedEffect], _: bool) -> ApplyReport {
        panic!("a file must not be touched in a schema that has moved on");
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(())
    }
}

#[test]
fn a_running_process_stops_writing_once_the_schema_has_moved_on() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("jobq.db");
    let queue = queue_at(&db);
    let store = queue.store();
    let enqueued = |text: &str| queue.enqueue(note(text)).unwrap().id;
    let failed = enqueued("to fail");
    let lease = store.claim(claim_request(1)).unwrap().pop().unwrap().lease;
    store.fail(lease, Failure::new("test", "on purpose")).unwrap();
    enqueued("to be decided");
    let decided = store.claim(claim_request(1)).unwrap().pop().unwrap().lease;
    store.decide(decided.clone(), Decision::default()).unwrap();
    enqueued("to be claimed");
    let lease = store.claim(claim_request(1)).unwrap().pop().unwrap().lease;
    let pending = enqueued("to stay");

    let mut other = raw(&db);
    other.execute("INSERT INTO jobs (id, type, payload) VALUES ('plain', 'note', '{\"text\":\"plain\"}')", []).unwrap();
    other.execute("UPDATE jobq_meta SET value = value + 1 WHERE key = 'schema_version'", []).unwrap();
    let before = contents(&other);

    let beat = Beat { lease: lease.clone(), progress: None, checkpoint: None };
    let completion = Completion { lease: lease.clone(), result: None, follow_ups: Vec::new() };
    let failure = || Failure::new("test", "on purpose");
    let reclaim =
        Reclaim { dead: vec![DeadOwner { locked_by: "worker".to_owned(), started: None }], lapsed: Vec::new() };
    let prune = PruneRequest { ended_before: i64::MAX, failed: true, forget: true, job_type: None };
    let tx = other.transaction_with_behavior(TransactionBehavior::Deferred).unwrap();
    let answers = [
        ("enqueue_in", queue.enqueue_in(&tx, NewJob::of(&note("in"))).map(drop)),
        ("enqueue", queue.enqueue(note("new")).map(drop)),
        ("admit", store.admit().map(drop)),
        ("claim", store.claim(claim_request(1)).map(drop)),
        ("take_over", store.take_over(owner("other"), 1).map(drop)),
        ("hasten", store.hasten().map(drop)),
        ("heartbeat", store.heartbeat(vec![beat]).map(drop)),
        ("decide", store.decide(lease.clone(), Decision::default()).map(drop)),
        ("apply", store.apply(decided, Arc::new(NeverCalled)).map(drop)),
        ("complete", store.complete(vec![completion]).map(drop)),
        ("reschedule", store.reschedule(lease.clone(), failure(), Duration::ZERO).map(drop)),
        ("fail", store.fail(lease.clone(), failure()).map(drop)),
        ("release", store.release(lease.clone()).map(drop)),
        ("acknowledge_cancel", store.acknowledge_cancel(lease).map(drop)),
        ("reclaim", store.reclaim(reclaim).map(drop)),
        ("cancel", store.cancel(&pending).map(drop)),
        ("retry", store.retry(&failed).map(drop)),
        ("prune", store.prune(prune).map(drop)),
    ];
    drop(tx);
    for (verb, answer) in answers {
        assert_eq!(answer.expect_err(verb).kind(), ErrorKind::Schema, "{verb}");
    }
    assert_eq!(contents(&other), before);
}
