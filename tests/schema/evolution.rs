//! From version 1 to now, by one process or by several at once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use jobq::store::sqlite::{SCHEMA_VERSION, SqliteOptions, SqliteStore};
use jobq::store::{ClaimRequest, ExpectedQuery, Failure, FileStamp, Limits, Store as _};
use jobq::{ErrorKind, Gate, Status};
use rusqlite::Connection;

use super::support::{options_for, owner, raw, rows};
use super::{stored_version, version_1, written_by};

/// Everything SQLite knows of the schema, spelled so that comments and layout
/// do not matter: they are all that may differ between the two ways here.
fn shape(conn: &Connection) -> BTreeMap<String, Vec<Vec<String>>> {
    let objects = rows(conn, "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema");
    let mut shape = BTreeMap::new();
    for object in objects {
        let [kind, name, table, sql] = object.try_into().unwrap();
        let details = match kind.as_str() {
            "table" => rows(conn, &format!("PRAGMA table_xinfo(\"{name}\")")),
            "index" => rows(conn, &format!("PRAGMA index_xinfo(\"{name}\")")),
            _ => Vec::new(),
        };
        shape.insert(format!("{kind} {name}"), [vec![vec![table, normal(&sql)]], details].concat());
    }
    shape
}

fn normal(sql: &str) -> String {
    sql.lines().flat_map(|line| line.split("--").next().unwrap_or_default().split_whitespace()).collect()
}

#[test]
fn all_migrations_lead_to_the_schema_of_a_fresh_database() {
    for version in 1..SCHEMA_VERSION {
        leads_to_a_fresh_schema(version);
    }
}

fn leads_to_a_fresh_schema(version: i64) {
    let (_folder, migrated) = written_by(version);
    assert_eq!(stored_version(&raw(&migrated)), version.to_string());
    drop(SqliteStore::open(options_for(&migrated, false)).unwrap());
    let fresh = migrated.with_file_name("fresh.db");
    drop(SqliteStore::open(options_for(&fresh, true)).unwrap());

    let (migrated, fresh) = (raw(&migrated), raw(&fresh));
    assert_eq!(stored_version(&migrated), SCHEMA_VERSION.to_string());
    let (migrated, fresh) = (shape(&migrated), shape(&fresh));
    assert_eq!(migrated.keys().collect::<Vec<_>>(), fresh.keys().collect::<Vec<_>>());
    for (object, details) in &fresh {
        assert_eq!(&migrated[object], details, "{object}");
    }
}

const OVERTAKEN: &str = "01J00000000000000000000001";
const OVERTAKER: &str = "01J00000000000000000000002";
const NOT_OVERTAKEN: &str = "01J00000000000000000000003";

#[test]
fn jobs_of_version_1_are_all_there_after_the_migration() {
    let (_folder, db) = version_1();
    let store = SqliteStore::open(options_for(&db, false)).unwrap();
    let mut jobs = store.list(&jobq::Filter::default()).unwrap();
    jobs.reverse();
    let found: Vec<_> = jobs
        .iter()
        .map(|job| (job.seq, job.id.as_str(), job.job_type.as_str(), job.status, job.payload.as_str()))
        .collect();
    let expected = [
        (1, OVERTAKEN, "delete_file", Status::Failed, r#"{"path": "a.txt"}"#),
        (2, OVERTAKER, "create_file", Status::Completed, r#"{"path": "a.txt", "content": "a"}"#),
        (3, NOT_OVERTAKEN, "create_file", Status::Failed, r#"{"path": "b.txt", "content": "b"}"#),
        (4, "01J00000000000000000000004", "send_mail", Status::Pending, r#"{"to": "ada@example.org"}"#),
        (5, "01J00000000000000000000005", "create_file", Status::Completed, r#"{"path": "c.txt", "content": "c"}"#),
    ];
    assert_eq!(found, expected);
    assert_eq!(jobs[3].idempotency_key.as_deref(), Some("mail-1"));
}

#[test]
fn effects_of_version_2_are_all_there_in_their_order() {
    let (_folder, db) = written_by(2);
    let store = SqliteStore::open(options_for(&db, false)).unwrap();
    let page = store.expected(&ExpectedQuery { hashes: true, limit: 10, ..ExpectedQuery::default() }).unwrap();
    let found: Vec<_> = page.files.iter().map(|file| (file.path.as_str(), file.sha256.clone(), file.stamp)).collect();
    let stamp = FileStamp { mtime: 7, inode: 8 };
    let expected = ["a", "c"].map(|content| Some(jobq::sha256_hex(content.as_bytes())));
    assert_eq!(found, [("a.txt", expected[0].clone(), stamp), ("c.txt", expected[1].clone(), stamp)]);
    assert_eq!(store.history("c.txt").unwrap()[0].job_id, "01J00000000000000000000005");
    // What was decided is applied in the order it was decided in, not in that of the paths.
    let planned = store.planned("01J00000000000000000000006").unwrap();
    assert_eq!(planned.iter().map(|effect| effect.path.as_str()).collect::<Vec<_>>(), ["z.txt", "a.txt"]);
    assert_eq!(rows(&raw(&db), "SELECT applied_at FROM effects WHERE path = 'c.txt'"), [["1700000002000"]]);
}

#[test]
fn work_of_version_3_goes_on() {
    let (_folder, db) = written_by(3);
    let store = SqliteStore::open(options_for(&db, false)).unwrap();
    let mut jobs = store.list(&jobq::Filter::default()).unwrap();
    jobs.reverse();
    let found: Vec<_> = jobs.iter().map(|job| (job.seq, job.job_type.as_str(), job.status, job.gate)).collect();
    let expected = [
        (1, "create_file", Status::Completed, None),
        (2, "create_file", Status::Failed, None),
        (3, "delete_file", Status::Pending, Some(Gate::Delayed)),
        (4, "send_mail", Status::Pending, Some(Gate::New)),
        (5, "create_file", Status::Pending, Some(Gate::Ready)),
    ];
    assert_eq!(found, expected);
    assert_eq!(store.history("a.txt").unwrap()[0].job_id, "01J00000000000000000000001");
    let request = ClaimRequest {
        owner: owner("worker"),
        types: vec!["create_file".to_owned()],
        limit: 10,
        limits: Limits::from([("create_file".to_owned(), 1)]),
    };
    let claimed = store.claim(request).unwrap().remove(0).lease;
    assert_eq!(claimed.seq, 5);
    let failure = Failure::new("rate_limited", "too many requests").pausing_type(Duration::from_secs(60));
    store.fail(claimed, failure).unwrap();
    assert_eq!(store.stats().unwrap().paused[0].job_type, "create_file");
}

#[test]
fn work_of_version_4_goes_on_and_a_forged_row_is_refused() {
    let (_folder, db) = written_by(4);
    let store = SqliteStore::open(options_for(&db, false)).unwrap();
    let mut jobs = store.list(&jobq::Filter::default()).unwrap();
    jobs.reverse();
    let found: Vec<_> = jobs.iter().map(|job| (job.seq, job.job_type.as_str(), job.status, job.gate)).collect();
    let expected = [
        (1, "create_file", Status::Completed, None),
        (2, "create_file", Status::Failed, None),
        (3, "delete_file", Status::Pending, Some(Gate::Delayed)),
        (4, "send_mail", Status::Pending, Some(Gate::New)),
        (5, "create_file", Status::Pending, Some(Gate::Ready)),
    ];
    assert_eq!(found, expected);
    assert_eq!(store.stats().unwrap().paused[0].job_type, "send_mail");
    let forged = "INSERT INTO jobs (id, type, payload, checkpoint) VALUES ('forged', 'send_mail', '{}', '{}')";
    let refused = raw(&db).execute(forged, []).unwrap_err().to_string();
    assert!(refused.contains("checkpoint"), "{refused}");
    assert_eq!(super::support::claim(&store, 10).iter().map(|claim| claim.job.seq).collect::<Vec<_>>(), [5]);
}

#[test]
fn the_migration_knows_which_retries_would_undo_a_later_job() {
    let (_folder, db) = version_1();
    let store = SqliteStore::open(options_for(&db, false)).unwrap();

    let refused = store.retry(OVERTAKEN).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WrongState);
    assert!(refused.to_string().contains(OVERTAKER), "{refused}");
    assert_eq!(store.get(OVERTAKEN).unwrap().status, Status::Failed);

    assert_eq!(store.retry(NOT_OVERTAKEN).unwrap().status, Status::Pending);
    assert_eq!(store.get(NOT_OVERTAKEN).unwrap().status, Status::Pending);
}

#[test]
fn a_migration_that_fails_leaves_version_1_untouched() {
    let (_folder, db) = version_1();
    // The application has a table by the name the migration wants.
    raw(&db).execute_batch("CREATE TABLE retry_guards (mine TEXT); INSERT INTO retry_guards VALUES ('keep');").unwrap();
    let before = super::support::contents(&raw(&db));
    let shape_before = shape(&raw(&db));

    let refused = SqliteStore::open(options_for(&db, false)).err().expect("the migration cannot work");

    assert!(refused.to_string().contains("retry_guards"), "{refused}");
    let conn = raw(&db);
    assert_eq!(stored_version(&conn), "1");
    assert_eq!(super::support::contents(&conn), before);
    assert_eq!(shape(&conn), shape_before);
}

/// Opens one database from several connections at the same moment, many times,
/// since a race shows itself only sometimes.
fn open_at_once(prepare: impl Fn(&Path), create: bool) {
    const OPENERS: usize = 4;
    for round in 0..25 {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("jobq.db");
        prepare(&db);
        let barrier = Barrier::new(OPENERS);
        std::thread::scope(|scope| {
            let open = || {
                barrier.wait();
                SqliteStore::open(options_for(&db, create)).map(drop)
            };
            let openers: Vec<_> = (0..OPENERS).map(|_| scope.spawn(open)).collect();
            for opener in openers {
                opener.join().unwrap().unwrap_or_else(|e| panic!("round {round}: {e}"));
            }
        });
        assert_eq!(stored_version(&raw(&db)), SCHEMA_VERSION.to_string());
        assert_eq!(rows(&raw(&db), "PRAGMA integrity_check"), [["ok"]]);
    }
}

#[test]
fn processes_that_create_one_database_at_once_all_succeed() {
    open_at_once(|_| {}, true);
}

#[test]
fn processes_that_migrate_one_database_at_once_all_succeed() {
    let (_folder, fixture) = version_1();
    let copy = |db: &Path| assert!(std::fs::copy(&fixture, db).unwrap() > 0);
    open_at_once(copy, false);
}

/// SQLite itself does not wait when the journal mode changes while someone
/// writes, which is why openers that come together may get in each other's way.
#[test]
fn an_opener_waits_for_a_writer_as_long_as_it_was_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("app.db");
    let application = raw(&db);
    application.execute_batch("CREATE TABLE theirs (x); BEGIN IMMEDIATE; INSERT INTO theirs VALUES (1)").unwrap();

    let patience = Duration::from_millis(300);
    let started = Instant::now();
    let refused = SqliteStore::open(SqliteOptions { busy_timeout: patience, ..options_for(&db, true) });

    assert_eq!(refused.err().map(|e| e.kind()), Some(ErrorKind::Busy));
    assert!(started.elapsed() >= patience, "gave up after {:?}", started.elapsed());
    application.execute_batch("COMMIT").unwrap();
    drop(SqliteStore::open(options_for(&db, true)).unwrap());
    assert_eq!(rows(&application, "SELECT x FROM theirs"), [["1"]]);
}
