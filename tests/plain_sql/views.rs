//! The six questions, asked with plain SQL.

use jobq::store::{Failure, Store as _};
use jobq::{NewJob, clock};

use super::Bench;
use super::support::{claim, complete, note, raw, rows};

/// A time as the views show it, to the second: of the last minute, or of the second to come, since the test says of
/// jobs that have just begun that they took 250 ms.
fn is_now(text: &str) -> bool {
    let now = clock::millis(std::time::SystemTime::now());
    let recent: Vec<String> = (-1..=60).map(|ago| clock::rfc3339(now - ago * 1_000)[..19].to_owned()).collect();
    text.len() == "2026-01-01T00:00:00.000Z".len() && recent.iter().any(|second| text.starts_with(second))
}

#[test]
fn the_views_answer_the_six_questions() {
    let Some(bench) = Bench::set_up() else { return };
    let (queue, store) = (&bench.queue, bench.queue.store());
    let keyed = |text: &str| NewJob::of(&note(text)).key("k");
    let done = queue.enqueue(keyed("done")).unwrap().id;
    complete(store, &claim(store, 1)[0]);
    let failed = queue.enqueue(note("failed")).unwrap().id;
    store.fail(claim(store, 1)[0].lease.clone(), Failure::new("broken", "on purpose")).unwrap();
    let stuck = queue.enqueue(note("stuck")).unwrap().id;
    claim(store, 1);
    let again = queue.enqueue(keyed("again")).unwrap().id;
    bench.insert_plain(&[["plain", "note", r#"{"text": "plain"}"#]]);
    let conn = raw(&bench.db);
    // Silent for longer than five minutes; ended after exactly 250 ms.
    conn.execute("UPDATE jobs SET heartbeat_at = heartbeat_at - 300001 WHERE id = ?1", [&stuck]).unwrap();
    conn.execute("UPDATE jobs SET completed_at = claimed_at + 250 WHERE status IN ('completed', 'failed')", [])
        .unwrap();

    let outstanding = rows(&conn, "SELECT type, status, gate, jobs FROM jobq_outstanding ORDER BY status, gate");
    assert_eq!(
        outstanding,
        [["note", "claimed", "NULL", "1"], ["note", "pending", "new", "1"], ["note", "pending", "ready", "1"]]
    );
    for oldest in rows(&conn, "SELECT oldest FROM jobq_outstanding") {
        assert!(is_now(&oldest[0]), "{oldest:?}");
    }

    let failures = rows(&conn, "SELECT id, type, attempts, last_error, failed_at FROM jobq_failed");
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0][..4], [failed.as_str(), "note", "1", "broken: on purpose"]);
    assert!(is_now(&failures[0][4]), "{failures:?}");

    assert_eq!(
        rows(&conn, "SELECT id, type, locked_by, attempts FROM jobq_stuck"),
        [[stuck.as_str(), "note", "worker", "1"]]
    );
    assert_eq!(rows(&conn, "SELECT * FROM jobq_durations"), [["note", "1", "250", "250", "250"]]);
    assert_eq!(rows(&conn, "SELECT * FROM jobq_duplicates"), [["note", "k", "2", "1"]]);

    let recent = rows(&conn, "SELECT id, status, took_ms, last_error FROM jobq_last_hour ORDER BY id");
    assert_eq!(
        recent,
        [[done.as_str(), "completed", "250", "NULL"], [failed.as_str(), "failed", "250", "broken: on purpose"]]
    );
    conn.execute("UPDATE jobs SET completed_at = completed_at - 3601000 WHERE id = ?1", [&done]).unwrap();
    assert_eq!(rows(&conn, "SELECT id FROM jobq_last_hour"), [[failed.as_str()]]);

    // The library's answers are the same ones.
    let stats = queue.stats().unwrap();
    assert_eq!(stats.outstanding.iter().map(|group| group.jobs).sum::<i64>(), 3);
    assert_eq!(stats.stuck.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), [stuck.as_str()]);
    assert_eq!(stats.duplicates, 0, "two jobs had the key, one after the other: {again} is the unfinished one");
}

/// There cannot be any, by an index. Should one ever get past it (a damaged index), the number says so.
#[test]
fn duplicates_that_should_not_be_there_are_counted() {
    let Some(bench) = Bench::set_up() else { return };
    let keyed = |text: &str| NewJob::of(&note(text)).key(text);
    let ids = ["one", "two", "three"].map(|text| bench.queue.enqueue(keyed(text)).unwrap().id);
    assert_eq!(bench.queue.stats().unwrap().duplicates, 0);
    let conn = raw(&bench.db);
    conn.execute_batch(
        "DROP TRIGGER jobs_key_taken; DROP INDEX jobs_active_key;
         CREATE INDEX jobs_active_key ON jobs (type, idempotency_key)
          WHERE idempotency_key IS NOT NULL AND idempotency_key <> '' AND completed_at IS NULL",
    )
    .unwrap();
    conn.execute("UPDATE jobs SET idempotency_key = 'one' WHERE id = ?1", [&ids[1]]).unwrap();
    assert_eq!(bench.queue.stats().unwrap().duplicates, 1, "keys, not jobs");
    assert_eq!(rows(&conn, "SELECT idempotency_key, jobs FROM jobq_duplicates"), [["one", "2"]]);
}
