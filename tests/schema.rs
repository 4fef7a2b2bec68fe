//! The schema's life: made fresh, brought forward from version 1, refused when
//! it is newer than this build.

#[path = "schema/evolution.rs"]
mod evolution;
#[path = "schema/refusal.rs"]
mod refusal;
mod support;

use std::path::{Path, PathBuf};

use jobq::store::sqlite::SCHEMA_VERSION;
use rusqlite::Connection;

/// A database that version 1 of the schema wrote, in a folder of its own.
fn version_1() -> (tempfile::TempDir, PathBuf) {
    written_by(1)
}

/// A database as a version of the schema wrote it, in a folder of its own.
fn written_by(version: i64) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("jobq.db");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    std::fs::copy(fixtures.join(format!("version_{version}.db")), &db).unwrap();
    (folder, db)
}

fn stored_version(conn: &Connection) -> String {
    conn.query_row("SELECT value FROM jobq_meta WHERE key = 'schema_version'", [], |row| row.get(0)).unwrap()
}

#[test]
fn the_version_in_the_code_is_the_one_schema_sql_inserts() {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch(include_str!("../schema.sql")).unwrap();
    assert_eq!(stored_version(&conn), SCHEMA_VERSION.to_string());
    let heading = include_str!("../schema.sql").lines().next().unwrap();
    assert_eq!(heading, format!("-- jobq schema, version {SCHEMA_VERSION}."));
}
