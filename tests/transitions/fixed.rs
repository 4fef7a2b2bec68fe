//! What never changes and never goes, whoever asks.

use jobq::state::{State, Status};
use rusqlite::Connection;

use super::support::{contents, rows};
use super::{database, put};

const EVERY_STATE: [(&str, State); 6] = [
    ("pending", State { status: Status::Pending, decided: false }),
    ("claimed", State { status: Status::Claimed, decided: false }),
    ("decided", State { status: Status::Claimed, decided: true }),
    ("completed", State { status: Status::Completed, decided: false }),
    ("failed", State { status: Status::Failed, decided: false }),
    ("cancelled", State { status: Status::Cancelled, decided: false }),
];

fn one_job_in_every_state() -> Connection {
    let conn = database();
    for (id, state) in EVERY_STATE {
        assert!(put(&conn, id, state), "{id}");
    }
    conn
}

/// The statement is refused by one of our triggers, and nothing has changed.
fn assert_refused(conn: &Connection, sql: &str, because: &str) {
    let before = contents(conn);
    let error = conn.execute(sql, []).expect_err(sql).to_string();
    assert!(error.contains(because), "{sql}: {error}");
    assert_eq!(contents(conn), before, "{sql}");
}

#[test]
fn a_job_is_inserted_as_pending_untried_and_unowned() {
    let conn = one_job_in_every_state();
    for (columns, values) in [
        ("status, gate, locked_by, payload_hash", "'claimed', NULL, 'w', 'h'"),
        ("status, gate, completed_at, payload_hash", "'completed', NULL, 1, 'h'"),
        ("status, gate, completed_at, payload_hash", "'failed', NULL, 1, 'h'"),
        ("status, gate, completed_at, payload_hash", "'cancelled', NULL, 1, 'h'"),
        ("attempts", "1"),
        ("token", "1"),
        ("locked_by", "'w'"),
        ("outcome", "'{}'"),
        ("event_seq", "2"),
        ("cancel_requested", "1"),
    ] {
        let sql = format!("INSERT INTO jobs (id, type, payload, {columns}) VALUES ('new', 'note', '{{}}', {values})");
        assert_refused(&conn, &sql, "jobq: a job is inserted as pending");
    }
    for (columns, values) in [("priority", "2147483648"), ("max_attempts", "0")] {
        let sql = format!("INSERT INTO jobs (id, type, payload, {columns}) VALUES ('new', 'note', '{{}}', {values})");
        assert_refused(&conn, &sql, "CHECK constraint failed");
    }
    assert_refused(&conn, "INSERT INTO jobs (id, type, payload) VALUES ('', 'note', '{}')", "CHECK constraint failed");
    assert_refused(&conn, "INSERT INTO jobs (id, type, payload) VALUES ('new', '', '{}')", "CHECK constraint failed");
    assert_refused(&conn, "INSERT INTO jobs (id, type, payload) VALUES ('new', 'note', x'7b7d')", "cannot store BLOB");
}

#[test]
fn an_insert_claims_nothing_that_a_run_or_admission_gives() {
    let conn = one_job_in_every_state();
    let run = "last_error, progress, checkpoint and result come from a run";
    let times = "heartbeat, locked_at, heartbeat_at, claimed_at and completed_at come from a run";
    let gate = "gate is new until jobq has admitted the job";
    for (columns, values, because) in [
        ("checkpoint", "'{}'", run),
        ("progress", "'{}'", run),
        ("result", "'{}'", run),
        ("last_error", "''", run),
        ("heartbeat", "1", times),
        ("locked_at", "0", times),
        ("heartbeat_at", "0", times),
        ("claimed_at", "0", times),
        ("completed_at", "0", times),
        ("gate", "'ready'", gate),
        ("gate, payload_hash", "'ready', 'h'", gate),
        ("gate, payload_hash", "'held', 'h'", gate),
        ("gate, payload_hash", "'backoff', 'h'", gate),
        ("gate, timeout, backoff_base, backoff_max", "'ready', 1, 1, 1", gate),
        ("gate, payload_hash, backoff_base, backoff_max", "'ready', 'h', 1, 1", gate),
        ("gate, payload_hash, timeout, backoff_max", "'ready', 'h', 1, 1", gate),
        ("gate, payload_hash, timeout, backoff_base", "'ready', 'h', 1, 1", gate),
    ] {
        let sql = format!("INSERT INTO jobs (id, type, payload, {columns}) VALUES ('new', 'note', '{{}}', {values})");
        assert_refused(&conn, &sql, because);
    }
}

/// As an ORM sends them: every column of the table, those that were left alone with their default.
#[test]
fn an_insert_may_name_any_column_with_its_default() {
    let conn = database();
    let columns = rows(&conn, "SELECT name, dflt_value FROM pragma_table_info('jobs')");
    let given = ["id", "type", "payload"];
    let others: Vec<_> = columns.into_iter().filter(|row| !given.contains(&row[0].as_str())).collect();
    assert!(others.len() > 25, "{others:?}");
    for row in &others {
        let [column, default] = row.as_slice() else { panic!("{row:?}") };
        let sql =
            format!("INSERT INTO jobs (id, type, payload, {column}) VALUES ('{column}', 'note', '{{}}', {default})");
        assert_eq!(conn.execute(&sql, []), Ok(1), "{sql}");
    }
    let [names, defaults] = [0, 1].map(|at| others.iter().map(|row| row[at].as_str()).collect::<Vec<_>>().join(", "));
    let all = format!("INSERT INTO jobs (id, type, payload, {names}) VALUES ('all', 'note', '{{}}', {defaults})");
    assert_eq!(conn.execute(&all, []), Ok(1), "{all}");
    let dated = "INSERT INTO jobs (id, type, payload, created_at) VALUES ('dated', 'note', '{}', 1700000000000)";
    assert_eq!(conn.execute(dated, []), Ok(1));
}

#[test]
fn a_plain_insert_is_accepted_and_told_by_an_event() {
    let conn = database();
    conn.execute("INSERT INTO jobs (id, type, payload) VALUES ('new', 'note', '{}')", []).unwrap();
    assert_eq!(rows(&conn, "SELECT status, gate, attempts, token FROM jobs"), [["pending", "new", "0", "0"]]);
    assert_eq!(rows(&conn, "SELECT job_id, seq, attempt, type FROM job_events"), [["new", "1", "0", "queued"]]);
}

#[test]
fn an_unfinished_job_cannot_be_deleted() {
    let conn = one_job_in_every_state();
    for id in ["pending", "claimed", "decided"] {
        assert_refused(&conn, &format!("DELETE FROM jobs WHERE id = '{id}'"), "cancel it first");
    }
    for id in ["completed", "failed", "cancelled"] {
        assert_eq!(conn.execute("DELETE FROM jobs WHERE id = ?1", [id]), Ok(1), "{id}");
    }
}

#[test]
fn a_job_that_another_waits_on_cannot_be_deleted() {
    let conn = one_job_in_every_state();
    conn.execute("INSERT INTO jobs (id, type, payload, waiting_on) VALUES ('child', 'note', '{}', 'failed')", [])
        .unwrap();
    assert_refused(&conn, "DELETE FROM jobs WHERE id = 'failed'", "another job waits on");
}

/// `INSERT OR REPLACE` deletes what is in its way without asking a DELETE
/// trigger, and is what many programs write by habit.
#[test]
fn a_job_cannot_be_replaced_by_an_insert() {
    let conn = one_job_in_every_state();
    for (id, _) in EVERY_STATE {
        let replace = format!("REPLACE INTO jobs (id, type, payload) VALUES ('{id}', 'note', '{{\"new\":1}}')");
        assert_refused(&conn, &replace, "jobq: ");
        // Whatever gate the row claims to stand at.
        let ready = format!(
            "REPLACE INTO jobs (id, type, payload, gate, payload_hash) VALUES ('{id}', 'note', '{{}}', 'ready', 'h')"
        );
        assert_refused(&conn, &ready, "jobq: ");
    }
}

#[test]
fn a_place_in_order_cannot_be_chosen() {
    let conn = one_job_in_every_state();
    for seq in ["99", "9223372036854775807", "0", "-5"] {
        let insert = format!("INSERT INTO jobs (seq, id, type, payload) VALUES ({seq}, 'new', 'note', '{{}}')");
        assert_refused(&conn, &insert, "jobq: ");
    }
    let sly = "INSERT INTO jobs (seq, id, type, payload) VALUES (-1, 'new', 'note', '{}')";
    assert_refused(&conn, sly, "CHECK constraint failed");
    let many = "INSERT INTO jobs (id, type, payload, max_attempts) VALUES ('new', 'note', '{}', 5000000000)";
    assert_refused(&conn, many, "CHECK constraint failed");
}

#[test]
fn a_job_cannot_be_replaced_by_an_update_of_a_key_or_a_status() {
    let conn = database();
    for (id, key) in [("first", "k1"), ("second", "k2")] {
        let sql = "INSERT INTO jobs (id, type, payload, idempotency_key) VALUES (?1, 'note', '{}', ?2)";
        conn.execute(sql, [id, key]).unwrap();
    }
    assert_refused(&conn, "UPDATE OR REPLACE jobs SET idempotency_key = 'k1' WHERE id = 'second'", "jobq: ");
    conn.execute("UPDATE jobs SET status = 'cancelled', gate = NULL, completed_at = 1 WHERE id = 'second'", [])
        .unwrap();
    conn.execute("UPDATE jobs SET idempotency_key = 'k1' WHERE id = 'second'", []).unwrap();
    let back = "UPDATE OR REPLACE jobs SET status = 'pending', gate = 'new', completed_at = NULL WHERE id = 'second'";
    assert_refused(&conn, back, "jobq: ");
}

#[test]
fn events_are_only_ever_added() {
    let conn = one_job_in_every_state();
    assert_refused(&conn, "UPDATE job_events SET type = 'failed' WHERE job_id = 'pending'", "only ever added");
    assert_refused(&conn, "DELETE FROM job_events WHERE job_id = 'claimed'", "unfinished");
}

#[test]
fn a_job_cannot_be_replaced_by_way_of_its_place_in_order() {
    let conn = one_job_in_every_state();
    for seq in 1..=6 {
        let replace = format!("REPLACE INTO jobs (seq, id, type, payload) VALUES ({seq}, 'new', 'note', '{{}}')");
        assert_refused(&conn, &replace, "jobq: ");
    }
}

#[test]
fn a_job_cannot_be_replaced_by_way_of_its_key() {
    let conn = database();
    conn.execute("INSERT INTO jobs (id, type, payload, idempotency_key) VALUES ('first', 'note', '{}', 'k')", [])
        .unwrap();
    let replace =
        "INSERT OR REPLACE INTO jobs (id, type, payload, idempotency_key) VALUES ('second', 'note', '{}', 'k')";
    assert_refused(&conn, replace, "jobq: ");
}

#[test]
fn what_a_job_is_never_changes() {
    let conn = one_job_in_every_state();
    for (id, _) in EVERY_STATE {
        for set in ["id = 'x'", "seq = 99", "type = 'x'", "payload = '{\"x\":1}'", "created_at = 1"] {
            assert_refused(&conn, &format!("UPDATE jobs SET {set} WHERE id = '{id}'"), "never change");
        }
    }
}

#[test]
fn a_token_never_goes_back_and_a_lease_changes_hands_only_once_it_is_decided() {
    let conn = one_job_in_every_state();
    for (id, _) in EVERY_STATE {
        let sql = format!("UPDATE jobs SET token = token - 1 WHERE id = '{id}'");
        assert_refused(&conn, &sql, "illegal transition");
    }
    for set in ["locked_by = 'thief'", "locked_by = 'thief', token = token + 1", "locked_by = NULL"] {
        assert_refused(&conn, &format!("UPDATE jobs SET {set} WHERE id = 'claimed'"), "illegal transition");
    }
    for set in ["locked_by = 'thief'", "outcome = NULL", "outcome = '{\"other\":1}'"] {
        assert_refused(&conn, &format!("UPDATE jobs SET {set} WHERE id = 'decided'"), "illegal transition");
    }
    let taken_over = "UPDATE jobs SET locked_by = 'next', token = token + 1 WHERE id = 'decided'";
    assert_eq!(conn.execute(taken_over, []), Ok(1));
    assert_eq!(conn.execute("UPDATE jobs SET locked_by = NULL WHERE id = 'decided'", []), Ok(1));
}

/// Whatever the code does, or another program: two cannot run on one key.
#[test]
fn a_key_has_one_active_holder() {
    let conn = one_job_in_every_state();
    let hold = |id: &str, active: u8| {
        format!(
            "INSERT INTO job_holds (key, seq, job_id, active) SELECT 'lane:x', seq, id, {active} FROM jobs WHERE id = '{id}'"
        )
    };
    for (id, active) in [("pending", 0), ("claimed", 1)] {
        assert_eq!(conn.execute(&hold(id, active), []), Ok(1));
    }
    assert_refused(&conn, &hold("decided", 1), "UNIQUE constraint failed: job_holds.key");
    assert_refused(&conn, "UPDATE job_holds SET active = 1", "UNIQUE constraint failed: job_holds.key");
}
