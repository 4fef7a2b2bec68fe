//! Rows whose bytes are not what they should be.

use jobq::store::Store as _;
use jobq::{Status, handlers::CreateFile};
use rusqlite::Connection;

use super::Bench;
use super::support::{claim, complete, event_types, note, raw, rows, run_order};

/// Changes stored bytes as a bad disk or a bad hand would: past the trigger.
fn damage(conn: &Connection, id: &str, payload: &str) {
    let trigger = rows(conn, "SELECT sql FROM sqlite_schema WHERE name = 'jobs_fixed'").remove(0).remove(0);
    conn.execute_batch("DROP TRIGGER jobs_fixed").unwrap();
    assert_eq!(conn.execute(&format!("UPDATE jobs SET payload = {payload} WHERE id = ?1"), [id]), Ok(1));
    conn.execute_batch(&trigger).unwrap();
}

fn assert_damaged_alone(bench: &Bench, damaged: &str, neighbours: &[&str]) {
    assert_eq!(run_order(bench.queue.store()), neighbours);
    let [status, attempts, error] =
        rows(&raw(&bench.db), &format!("SELECT status, attempts, last_error FROM jobs WHERE id = '{damaged}'"))
            .remove(0)
            .try_into()
            .unwrap();
    assert_eq!((status.as_str(), attempts.as_str()), ("failed", "1"));
    assert!(error.starts_with("payload_damaged: "), "{error}");
    assert_eq!(event_types(&bench.queue, damaged), ["queued", "claimed", "failed"]);
    assert_eq!(rows(&raw(&bench.db), "SELECT * FROM job_holds"), Vec::<Vec<String>>::new());
}

#[test]
fn a_damaged_payload_ends_failed_and_alone() {
    let Some(bench) = Bench::set_up() else { return };
    let [before, damaged, behind] =
        ["1", "2", "3"].map(|text| bench.queue.enqueue(CreateFile::text("a.txt", text)).unwrap().id);
    let after = bench.queue.enqueue(note("after")).unwrap().id;
    damage(&raw(&bench.db), &damaged, r#"'{"path":"a.txt","content":"?","overwrite":false}'"#);
    assert_damaged_alone(&bench, &damaged, &[&before, &behind, &after]);
}

#[test]
fn a_payload_damaged_beyond_text_ends_failed_and_alone() {
    let Some(bench) = Bench::set_up() else { return };
    let [before, damaged, after] = ["1", "2", "3"].map(|text| bench.queue.enqueue(note(text)).unwrap().id);
    damage(&raw(&bench.db), &damaged, "CAST(x'7b2274ff' AS TEXT)");
    assert_damaged_alone(&bench, &damaged, &[&before, &after]);
}

/// What is damaged can still be looked at: that is when people look.
#[test]
fn a_payload_damaged_beyond_text_does_not_hide_the_other_jobs() {
    let Some(bench) = Bench::set_up() else { return };
    let [damaged, sound] = ["1", "2"].map(|text| bench.queue.enqueue(note(text)).unwrap().id);
    damage(&raw(&bench.db), &damaged, "CAST(x'7b2274ff' AS TEXT)");
    let listed: Vec<_> = bench.queue.list(&jobq::Filter::default()).unwrap().into_iter().map(|job| job.id).collect();
    assert_eq!(listed, [sound, damaged]);
}

#[test]
fn a_plain_row_that_is_not_text_fails_and_stops_nobody() {
    let Some(bench) = Bench::set_up() else { return };
    raw(&bench.db)
        .execute_batch(
            "INSERT INTO jobs (id, type, payload) VALUES ('bytes', 'note', CAST(x'7b2274ff' AS TEXT));
             INSERT INTO jobs (id, type, payload, holds) VALUES ('holds', 'note', '{\"text\":\"h\"}', CAST(x'ff' AS TEXT));
             INSERT INTO jobs (id, type, payload, idempotency_key)
                    VALUES ('key', 'note', '{\"text\":\"k\"}', CAST(x'ff' AS TEXT));
             INSERT INTO jobs (id, type, payload) VALUES (CAST(x'78ff' AS TEXT), 'note', '{\"text\":\"name\"}');
             INSERT INTO jobs (id, type, payload) VALUES ('kind', CAST(x'78ff' AS TEXT), '{\"text\":\"kind\"}');
             INSERT INTO jobs (id, type, payload) VALUES ('good', 'note', '{\"text\":\"good\"}');
             INSERT INTO jobs (id, type, payload, waiting_on, holds)
                    VALUES (CAST(x'79ff' AS TEXT), 'unknown', '{}', 'good', CAST(x'ff' AS TEXT));",
        )
        .unwrap();
    let queued = bench.queue.enqueue(note("by the library")).expect("a bad row stops nobody").id;
    assert_eq!(run_order(bench.queue.store()), ["good", &queued]);
    for id in ["bytes", "holds", "key"] {
        let status = rows(&raw(&bench.db), &format!("SELECT status FROM jobs WHERE id = '{id}'"));
        assert_eq!(status, [[Status::Failed.as_str()]], "{id}");
    }
    assert_eq!(bench.queue.store().admit().unwrap(), 0, "they are not looked at again");
    let states = rows(&raw(&bench.db), "SELECT status, waiting_on IS NULL FROM jobs WHERE id > 'x' ORDER BY seq");
    assert_eq!(states, [["failed", "1"], ["pending", "1"]], "a bad name fails; a bad waiter lets its parent end");
    bench.queue.stats().expect("and the six questions are answered");
}

/// A number that is behind the job's events costs nobody anything: it is set right by whoever writes the next event.
#[test]
fn a_damaged_number_of_events_stops_nobody() {
    for number in [0, -1, -5, i64::MIN, i64::MAX, i64::MAX - 1, i64::MAX / 2 + 1] {
        assert_set_right(number);
    }
}

fn assert_set_right(number: i64) {
    let Some(bench) = Bench::set_up() else { return };
    let forget = |id: &str| {
        let forgotten = raw(&bench.db).execute("UPDATE jobs SET event_seq = ?2 WHERE id = ?1", (id, number));
        assert_eq!(forgotten, Ok(1));
    };
    let [before, damaged, after] = ["1", "2", "3"].map(|text| bench.queue.enqueue(note(text)).unwrap().id);
    forget(&damaged);
    let store = bench.queue.store();
    let claimed = claim(store, 10);
    let ids: Vec<_> = claimed.iter().map(|claim| claim.job.id.as_str()).collect();
    assert_eq!(ids, [&*before, &*damaged, &*after]);
    forget(&damaged);
    for job in &claimed {
        complete(store, job);
    }
    for id in [&before, &damaged, &after] {
        assert_eq!(event_types(&bench.queue, id), ["queued", "claimed", "completed"], "{id}");
    }
    let cancelled = bench.queue.enqueue(note("4")).unwrap().id;
    forget(&cancelled);
    bench.queue.cancel(&cancelled).unwrap();
    assert_eq!(event_types(&bench.queue, &cancelled), ["queued", "cancelled"]);
    let numbers = "SELECT event_seq - (SELECT max(seq) FROM job_events WHERE job_id = jobs.id) FROM jobs";
    assert_eq!(rows(&raw(&bench.db), numbers), [["0"]; 4], "and is right from then on");
    let disorder =
        "SELECT count(*) FROM job_events a JOIN job_events b USING (job_id) WHERE a.id < b.id AND a.seq >= b.seq";
    assert_eq!(rows(&raw(&bench.db), disorder), [["0"]], "{number}: numbers follow the order of what happened");
}

/// A hold is found by its key, so one whose key is damaged is nobody's, and whoever stands behind it
/// would wait for ever.
#[test]
fn a_damaged_hold_goes_with_its_job() {
    let Some(bench) = Bench::set_up() else { return };
    let [first, other] = ["a.txt", "c.txt"].map(|path| bench.queue.enqueue(CreateFile::text(path, "1")).unwrap().id);
    let conn = raw(&bench.db);
    let (hold, of_job) = ("UPDATE job_holds SET key = 'path:b.txt' WHERE job_id = ?1", [&first]);
    assert_eq!(conn.execute(hold, of_job), Ok(1));
    let behind = bench.queue.enqueue(CreateFile::text("b.txt", "2")).unwrap().id;
    assert_eq!(rows(&conn, &format!("SELECT gate FROM jobs WHERE id = '{behind}'")), [["held"]]);
    assert_eq!(run_order(bench.queue.store()), [first, other, behind]);
    assert_eq!(rows(&conn, "SELECT * FROM job_holds"), Vec::<Vec<String>>::new());
}

/// As far as a number goes: it cannot grow. The job lives on if it can, and its neighbours in any case.
#[test]
fn a_number_at_its_end_stops_nobody() {
    for (column, number, status) in [
        ("attempts", i64::MAX, Status::Completed),
        ("attempts", i64::from(u32::MAX), Status::Completed),
        ("token", i64::MAX - 1, Status::Completed),
        ("token", i64::MAX, Status::Cancelled),
        ("heartbeat", i64::MAX, Status::Completed),
    ] {
        let Some(bench) = Bench::set_up() else { return };
        let [before, damaged, after] = ["1", "2", "3"].map(|text| bench.queue.enqueue(note(text)).unwrap().id);
        let conn = raw(&bench.db);
        let trigger = rows(&conn, "SELECT sql FROM sqlite_schema WHERE name = 'jobs_transition'").remove(0).remove(0);
        conn.execute_batch("DROP TRIGGER jobs_transition").unwrap();
        conn.execute(&format!("UPDATE jobs SET {column} = {number} WHERE id = ?1"), [&damaged]).unwrap();
        conn.execute_batch(&trigger).unwrap();
        let ran = run_order(bench.queue.store());
        assert!(ran.contains(&before) && ran.contains(&after), "{column}: {ran:?}");
        let job = bench.queue.get(&damaged).unwrap();
        assert_eq!(job.status, status, "{column} {number}: {:?}", job.last_error);
        let told = job.last_error.is_some_and(|error| error.starts_with("token_damaged: "));
        assert_eq!(told, status == Status::Cancelled);
    }
}

/// The sign of life is a number that must not stand still.
#[test]
fn a_sign_of_life_at_its_end_begins_anew() {
    let Some(bench) = Bench::set_up() else { return };
    let id = bench.queue.enqueue(note("1")).unwrap().id;
    let lease = claim(bench.queue.store(), 1).remove(0).lease;
    raw(&bench.db).execute("UPDATE jobs SET heartbeat = 9223372036854775807, attempts = 9e15", []).unwrap();
    let beat = || jobq::store::Beat { lease: lease.clone(), progress: None, checkpoint: None };
    for heartbeat in [0, 1] {
        assert_eq!(bench.queue.store().heartbeat(vec![beat()]).unwrap(), [jobq::store::Pulse::Alive]);
        assert_eq!(bench.queue.get(&id).unwrap().heartbeat, heartbeat);
    }
}

/// Also one that is damaged while its job runs, and stands in the index of active ones under its old key.
#[test]
fn a_hold_that_is_damaged_while_its_job_runs_goes_with_it() {
    let Some(bench) = Bench::set_up() else { return };
    let [first, behind] = ["1", "2"].map(|text| bench.queue.enqueue(CreateFile::text("a.txt", text)).unwrap().id);
    let other = bench.queue.enqueue(CreateFile::text("c.txt", "1")).unwrap().id;
    let claimed = claim(bench.queue.store(), 10);
    assert_eq!(claimed.iter().map(|claim| claim.job.id.clone()).collect::<Vec<_>>(), [first, other.clone()]);
    let conn = raw(&bench.db);
    // Past the index: as if it were not there.
    let (page, sql): (i64, String) = conn
        .query_row("SELECT rootpage, sql FROM sqlite_schema WHERE name = 'job_holds_active'", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    conn.execute_batch("PRAGMA writable_schema = 1; DELETE FROM sqlite_schema WHERE name = 'job_holds_active'")
        .unwrap();
    drop(conn);
    let conn = raw(&bench.db);
    assert_eq!(conn.execute("UPDATE job_holds SET key = 'path:b.txt' WHERE seq = 1", []), Ok(1));
    conn.execute_batch("PRAGMA writable_schema = 1").unwrap();
    conn.execute(
        "INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql)
         VALUES ('index', 'job_holds_active', 'job_holds', ?1, ?2)",
        (page, sql),
    )
    .unwrap();
    let version: i64 = conn.query_row("PRAGMA schema_version", [], |row| row.get(0)).unwrap();
    conn.execute_batch(&format!("PRAGMA schema_version = {}", version + 1)).unwrap();
    drop(conn);
    let conn = raw(&bench.db);
    assert_ne!(rows(&conn, "PRAGMA integrity_check"), [["ok"]]);
    complete(bench.queue.store(), &claimed[0]);
    assert_eq!(rows(&conn, "PRAGMA integrity_check"), [["ok"]]);
    let active = "SELECT job_id, active FROM job_holds INDEXED BY job_holds_active WHERE active = 1";
    assert_eq!(rows(&conn, active), [[other.as_str(), "1"]], "the others hold what they held");
    assert_eq!(run_order(bench.queue.store()), [behind]);
}
