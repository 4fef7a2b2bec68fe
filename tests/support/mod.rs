//! What the test programs share.
#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::path::Path;
use std::time::Duration;

use jobq::store::sqlite::{SqliteOptions, SqliteStore};
use jobq::store::{ClaimRequest, ClaimedJob, Completion, Ending, Owner, Store};
use jobq::{EventQuery, JobTypes, Payload, Queue, QueueOptions};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

/// A job type without holds: two with the same text are the same job.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    pub text: String,
}

impl Payload for Note {
    const TYPE: &'static str = "note";
    type Output = ();
}

pub fn note(text: &str) -> Note {
    Note { text: text.to_owned() }
}

/// The built-in types and `note`.
pub fn types() -> JobTypes {
    JobTypes::builtin().with::<Note>()
}

/// Made if it is not there.
pub fn queue_at(db: &Path) -> Queue {
    QueueOptions::at(db).create(true).types(types()).open().unwrap()
}

pub fn options_for(db: &Path, create: bool) -> SqliteOptions {
    SqliteOptions { create, types: types(), busy_timeout: Duration::from_secs(30), ..SqliteOptions::new(db) }
}

/// A connection as any other program would have it.
pub fn raw(db: &Path) -> Connection {
    let conn = Connection::open(db).unwrap();
    conn.busy_timeout(Duration::from_secs(30)).unwrap();
    conn
}

pub fn owner(name: &str) -> Owner {
    Owner {
        locked_by: name.to_owned(),
        machine_id: "machine".to_owned(),
        boot_id: "boot".to_owned(),
        pid: 1,
        lock_file: format!("{name}.lock"),
    }
}

/// Up to `limit` jobs of the types that [`types`] knows.
pub fn claim(store: &SqliteStore, limit: u32) -> Vec<ClaimedJob> {
    store.claim(claim_request(limit)).unwrap()
}

pub fn claim_request(limit: u32) -> ClaimRequest {
    ClaimRequest { owner: owner("worker"), types: types().names(), limit, limits: jobq::store::Limits::new() }
}

pub fn complete(store: &SqliteStore, job: &ClaimedJob) {
    let completion = Completion { lease: job.lease.clone(), result: None, follow_ups: Vec::new() };
    let answers = store.complete(vec![completion]).unwrap();
    assert!(matches!(answers.as_slice(), [Ok(Ending::Done)]), "{answers:?}");
}

/// Claims and completes one job at a time until nothing is claimable.
pub fn run_order(store: &SqliteStore) -> Vec<String> {
    let mut order = Vec::new();
    // One empty answer is not the end: a damaged row may be all that claim found.
    while let Some(job) = claim(store, 1).pop().or_else(|| claim(store, 1).pop()) {
        complete(store, &job);
        order.push(job.job.id);
    }
    order
}

/// The types of a job's events, oldest first.
pub fn event_types(queue: &Queue, id: &str) -> Vec<String> {
    let query = EventQuery { job_id: Some(id.to_owned()), after: 0, limit: 1_000 };
    queue.events(&query).unwrap().into_iter().map(|event| event.event_type).collect()
}

/// Every row of a query, each value as SQL would write it.
pub fn rows(conn: &Connection, sql: &str) -> Vec<Vec<String>> {
    let mut statement = conn.prepare(sql).unwrap();
    let width = statement.column_count();
    let rows = statement.query_map([], |row| (0..width).map(|column| Ok(literal(row.get_ref(column)?))).collect());
    rows.unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

fn literal(value: rusqlite::types::ValueRef<'_>) -> String {
    use rusqlite::types::ValueRef;
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ValueRef::Blob(bytes) => format!("{bytes:?}"),
    }
}

/// One number.
pub fn count(conn: &Connection, sql: &str) -> i64 {
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Everything jobq keeps, to be compared before and after.
pub fn contents(conn: &Connection) -> Vec<(String, Vec<Vec<String>>)> {
    let tables = rows(conn, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
    tables
        .into_iter()
        .map(|mut row| {
            let table = row.remove(0);
            let mut content = rows(conn, &format!("SELECT * FROM \"{table}\""));
            content.sort();
            (table, content)
        })
        .collect()
}
