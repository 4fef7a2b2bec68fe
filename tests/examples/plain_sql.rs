//! `plain_sql`: the application's rows and its jobs in one transaction of its
//! own, in one database.

use std::fs::read_to_string;
use std::path::Path;
use std::process::Command;

use rusqlite::Connection;
use serde_json::Value;

use super::programs::{Example, JOBQ, ended, node_with_sqlite, python};

#[test]
fn in_python() {
    tells_the_same(python("plain_sql.py"));
}

#[test]
fn in_node() {
    tells_the_same(node_with_sqlite("plain_sql.mjs"));
}

fn tells_the_same(example: Option<Example>) {
    let Some(example) = example else { return };
    let folder = tempfile::tempdir().unwrap();
    let story = example.run(folder.path());
    assert!(story.contains("rolled back: CHECK constraint failed"), "{story}");
    assert!(story.contains("; jobs before: 4, after: 4\n"), "{story}");
    let jobs = list(folder.path());
    let states: Vec<_> = jobs.iter().map(|job| [&job["type"], &job["status"], &job["gate"]].map(text)).collect();
    // Admitted: they have their places on the path that they share.
    let expected = [
        ["create_file", "completed", "-"],
        ["claude_extraction", "pending", "ready"],
        ["create_file", "completed", "-"],
        ["claude_extraction", "pending", "held"],
    ];
    assert_eq!(states, expected);
    for job in &jobs {
        assert!(story.contains(&format!("  {}  ", text(&job["id"]))), "{story}");
        assert!(job["payload_hash"].is_string() && job["payload"].to_string().contains("REQ-1"), "{job}");
    }
    assert_eq!(rows(folder.path()), [("REQ-1".to_owned(), 2)]);
    let companion = read_to_string(folder.path().join("out/REQ-1.md")).unwrap();
    assert_eq!(companion, "# Invoices are numbered\n\nNumbers have no gaps – ever.\n");
    example.leaves_nothing_behind();
}

/// The writers take turns, and each row has what it queued.
#[test]
fn two_at_once_wait_for_each_other() {
    let Some(python) = python("plain_sql.py") else { return };
    let other = node_with_sqlite("plain_sql.mjs").unwrap_or_else(|| python.clone());
    let folder = tempfile::tempdir().unwrap();
    let children = [python.start(folder.path()), other.start(folder.path())];
    for child in children {
        ended(child);
    }
    assert_eq!(rows(folder.path()), [("REQ-1".to_owned(), 4)]);
    let jobs = list(folder.path());
    assert_eq!(jobs.len(), 8);
    for job in jobs {
        match (text(&job["type"]), text(&job["status"])) {
            ("create_file", "completed") | ("claude_extraction", "pending") => {}
            // Both say the same, so one of them may be a duplicate.
            (_, "cancelled") => assert!(text(&job["last_error"]).starts_with("duplicate of "), "{job}"),
            _ => panic!("{job}"),
        }
    }
    assert!(read_to_string(folder.path().join("out/REQ-1.md")).unwrap().ends_with("no gaps – ever.\n"));
}

/// The application's own table.
fn rows(folder: &Path) -> Vec<(String, i64)> {
    let conn = Connection::open(folder.join("app.db")).unwrap();
    let mut query = conn.prepare("SELECT id, revision FROM requirements").unwrap();
    query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

/// `jobq list`, oldest first.
fn list(folder: &Path) -> Vec<Value> {
    let output = Command::new(JOBQ).arg("--db").arg(folder.join("app.db")).args(["list", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().rev().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}
