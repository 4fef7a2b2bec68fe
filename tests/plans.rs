//! What the hot statements cost: by their plans, whatever lies in the tables
//! and whatever the statistics say, and by the steps a claim really takes.

#[path = "plans/steps.rs"]
mod steps;
mod support;

use std::fmt::Write as _;

use rusqlite::{Connection, params_from_iter};
use support::count;

/// One kind of row that a claim must not have to walk past.
#[derive(Clone, Copy)]
struct Pile {
    name: &'static str,
    columns: &'static str,
    values: &'static str,
}

const PILES: [Pile; 10] = [
    Pile { name: "finished", columns: "status, gate, completed_at", values: "'completed', NULL, i" },
    Pile { name: "failed", columns: "status, gate, completed_at", values: "'failed', NULL, i" },
    Pile { name: "delayed", columns: "gate, run_at", values: "'delayed', 9000000000000 + i" },
    Pile {
        name: "backoff",
        columns: "gate, run_at, backoff_max",
        values: "'backoff', 9000000000000 + i, 9000000000000",
    },
    Pile { name: "waiting", columns: "gate, waiting_on", values: "'waiting', 'parent'" },
    Pile { name: "held", columns: "gate, holds", values: "'held', '[\"lane:x\"]'" },
    Pile { name: "ready, of a type nobody handles", columns: "gate, type", values: "'ready', 'foreign'" },
    // The type is left out of the claim.
    Pile { name: "ready, of a paused type", columns: "gate, type", values: "'ready', 'paused'" },
    // Some are looked at, and what runs of them is counted.
    Pile {
        name: "ready, of a type at its limit",
        columns: "gate, type, priority",
        values: "'ready', 'limited', i % 3",
    },
    Pile { name: "not admitted", columns: "gate, type", values: "'new', 'foreign'" },
];

fn database() -> Connection {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch(include_str!("../schema.sql")).unwrap();
    conn
}

/// Adds `rows` rows of one kind, past the triggers, since finished ones cannot be inserted.
fn pile_up(conn: &Connection, pile: Pile, rows: u32) {
    let triggers =
        support::rows(conn, "SELECT name, sql FROM sqlite_schema WHERE name IN ('jobs_insert', 'jobs_queued')");
    let mut sql = "BEGIN; DROP TRIGGER jobs_insert; DROP TRIGGER jobs_queued;".to_owned();
    let Pile { name, columns, values } = pile;
    let (type_column, type_value) = if columns.contains("type") { ("", "") } else { (", type", ", 'note'") };
    write!(
        sql,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO jobs (id, payload, payload_hash, {columns}{type_column})
         SELECT '{name} ' || i, '{{}}', 'hash', {values}{type_value} FROM n;"
    )
    .unwrap();
    for trigger in triggers {
        write!(sql, "{};", trigger[1]).unwrap();
    }
    conn.execute_batch(&(sql + "COMMIT")).unwrap();
}

const READY: Pile = Pile { name: "ready", columns: "gate, priority", values: "'ready', i % 3" };

#[derive(Debug)]
struct Step {
    parent: i64,
    detail: String,
}

fn explain(conn: &Connection, sql: &str) -> Vec<Step> {
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let values = vec![1; statement.parameter_count()];
    let steps =
        statement.query_map(params_from_iter(values), |row| Ok(Step { parent: row.get(1)?, detail: row.get(3)? }));
    steps.unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

/// By the row's number: one row, whatever else there is.
const BY_ROWID: &str = "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)";

/// How the ways into tables that a statement takes begin. `BY_ROWID` is always allowed.
fn expected(name: &str) -> &'static [&'static str] {
    match name {
        "claim" | "claim, three types" => &["SEARCH jobs USING COVERING INDEX jobs_ready (type=?)"],
        "claim one row" => &[],
        // A row per type at most.
        // Once through what was given.
        "completed ones" => &["SCAN given VIRTUAL TABLE"],
        "paused types" => &["SCAN type_pauses"],
        // Only what workers have in hand is in this stretch.
        "running of a type" => &["SEARCH jobs USING INDEX jobs_by_status (status=?)"],
        // Only rows that anyone may take are in this index.
        "take over" => &["SCAN jobs USING INDEX jobs_unowned"],
        "apply" => &["SEARCH effects USING INDEX effects_job (job_id=?)"],
        "reclaim" => &["SEARCH jobs USING INDEX jobs_by_status (status=?)"],
        "promote due" => &["SEARCH jobs USING INDEX jobs_due (run_at<?)"],
        "promote early" => &["SEARCH jobs USING INDEX jobs_backoff_cap (<expr>>?)"],
        "prune" => &[
            "SEARCH jobs USING INDEX jobs_finished (type=? AND status=? AND completed_at<?)",
            "SEARCH w USING COVERING INDEX jobs_waiting_on (waiting_on=?)",
        ],
        "stats: types" => &["SEARCH jobs USING COVERING INDEX jobs_by_type (type>?)"],
        "stats: outstanding" | "stats: stuck" => &["SEARCH jobs USING INDEX jobs_by_status (status=?)"],
        "stats: times" => &[
            "SEARCH jobs USING INDEX jobs_finished (type=? AND status=? AND completed_at>?)",
            "SEARCH c USING INDEX job_events_job (job_id=? AND seq<?)",
            "SEARCH d USING INDEX job_events_job (job_id=?)",
            "SEARCH r USING INDEX job_events_job (job_id=?)",
        ],
        "stats: newest failed" | "stats: costs" => {
            &["SEARCH jobs USING INDEX jobs_finished (type=? AND status=? AND completed_at>?)"]
        }
        "stats: count" | "recent: failures" => {
            &["SEARCH jobs USING COVERING INDEX jobs_finished (type=? AND status=? AND completed_at>?)"]
        }
        // Only rows that wait, or were called off while they did, are in this index.
        "stats: blocked" => &[
            "SEARCH jobs USING INDEX jobs_waiting_on (waiting_on>?)",
            "SEARCH jobs USING INDEX sqlite_autoindex_jobs_1 (id=?)",
        ],
        // Only unfinished jobs are in this one.
        "stats: duplicates" => &["SCAN jobs USING INDEX jobs_active_key"],
        "prune events" => {
            &["SEARCH jobs USING INDEX jobs_finished (type=? AND status=? AND completed_at>? AND completed_at<?)"]
        }
        // The holds of one job are looked through.
        "completed" => {
            &["SEARCH jobs USING INDEX jobs_by_type (type=? AND rowid>? AND rowid<?)", "SCAN json_each VIRTUAL TABLE"]
        }
        "list" => &["SEARCH jobs USING INTEGER PRIMARY KEY (rowid<?)"],
        "list by status" => &["SEARCH jobs USING COVERING INDEX jobs_by_status (status=?"],
        "list by type" => &["SEARCH jobs USING COVERING INDEX jobs_by_type (type=? AND rowid<?)"],
        "list by status and type" => &["SEARCH jobs USING INDEX jobs_by_status (status=? AND rowid<?)"],
        "list completed by type" => &["SEARCH jobs USING INDEX jobs_by_type (type=? AND rowid<?)"],
        _ => panic!("a new hot statement, {name}: say here how it may run"),
    }
}

fn is_way_into_a_table(step: &Step) -> bool {
    (step.detail.starts_with("SCAN ") || step.detail.starts_with("SEARCH ")) && !step.detail.starts_with("SCAN (")
}

/// What is wrong with the plans of all hot statements on this database.
fn faults(conn: &Connection) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, sql) in jobq::store::sqlite::hot_statements() {
        let plan = explain(conn, &sql);
        let ways: Vec<&str> = plan.iter().filter(|s| is_way_into_a_table(s)).map(|s| s.detail.as_str()).collect();
        for way in ways.iter().filter(|&&way| way != BY_ROWID && !expected(name).iter().any(|e| way.starts_with(e))) {
            faults.push(format!("{name}: {way}"));
        }
        for way in expected(name).iter().filter(|&e| !ways.iter().any(|way| way.starts_with(e))) {
            faults.push(format!("{name}: lacks {way}"));
        }
        // A sort beside the search of a table sorts all it finds; one above a
        // subquery with a LIMIT sorts a page.
        for sort in plan.iter().filter(|s| s.detail.starts_with("USE TEMP B-TREE")) {
            let sorts_a_table = plan.iter().any(|s| s.parent == sort.parent && is_way_into_a_table(s));
            // Here it is a group per type, status and gate, of what is unfinished.
            if sorts_a_table && name != "stats: outstanding" {
                faults.push(format!("{name}: {} over all rows found", sort.detail));
            }
        }
    }
    faults
}

fn assert_no_faults(conn: &Connection) {
    let faults = faults(conn);
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Statistics are taken, and read as a connection that opens later reads them.
fn analyze(conn: &Connection) {
    conn.execute_batch("ANALYZE; ANALYZE sqlite_schema").unwrap();
    assert!(count(conn, "SELECT count(*) FROM sqlite_stat1 WHERE tbl = 'jobs'") > 3, "statistics are there");
}

fn filled() -> Connection {
    const ROWS: u32 = 3_000;
    let conn = database();
    for pile in PILES.into_iter().chain([READY]) {
        pile_up(&conn, pile, ROWS);
    }
    assert_eq!(count(&conn, "SELECT count(*) FROM jobs"), 11 * i64::from(ROWS));
    conn
}

#[test]
fn plans_on_an_empty_database() {
    assert_no_faults(&database());
}

#[test]
fn plans_on_a_full_database() {
    assert_no_faults(&filled());
}

#[test]
fn plans_on_a_full_database_with_statistics() {
    let conn = filled();
    analyze(&conn);
    assert_no_faults(&conn);
}

/// An application that shares the database may have it analysed at any time,
/// most likely when there is not much in it yet.
#[test]
fn plans_with_statistics_from_before_the_rows_came() {
    let conn = database();
    pile_up(&conn, READY, 5);
    analyze(&conn);
    assert_no_faults(&conn);
}
