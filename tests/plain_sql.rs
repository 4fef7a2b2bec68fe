//! Jobs that other programs queue with plain SQL, and what their rows may do
//! to others: nothing.

#[path = "support/skipped.rs"]
mod skipped;

#[path = "plain_sql/admission.rs"]
mod admission;
#[path = "plain_sql/damage.rs"]
mod damage;
mod support;
#[path = "plain_sql/views.rs"]
mod views;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jobq::Queue;
use support::queue_at;

/// A queue, and Python beside it.
struct Bench {
    queue: Queue,
    db: PathBuf,
    _folder: tempfile::TempDir,
}

impl Bench {
    /// `None`, and a loud word, where there is no Python.
    fn set_up() -> Option<Self> {
        if Command::new("python3").args(["-c", "import sqlite3"]).stderr(Stdio::null()).status().is_err() {
            skipped::skipped("plain SQL", "python3 is not installed");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("jobq.db");
        Some(Self { queue: queue_at(&db), db, _folder: folder })
    }

    /// Queues rows as another program does: one process, one transaction.
    fn insert(&self, columns: &str, rows: &[&[&str]]) {
        let output = python_insert(&self.db, columns, rows);
        assert_eq!(output, Ok(()));
    }

    /// Rows of id, type and payload.
    fn insert_plain(&self, rows: &[[&str; 3]]) {
        let rows: Vec<&[&str]> = rows.iter().map(<[&str; 3]>::as_slice).collect();
        self.insert("id, type, payload", &rows);
    }

    fn gate(&self, id: &str) -> Option<&'static str> {
        self.queue.get(id).unwrap().gate.map(jobq::Gate::as_str)
    }

    fn last_error(&self, id: &str) -> String {
        self.queue.get(id).unwrap().last_error.unwrap_or_default()
    }
}

/// The error is Python's own words.
fn python_insert(db: &Path, columns: &str, rows: &[&[&str]]) -> Result<(), String> {
    const SCRIPT: &str = "
import json, sqlite3, sys
db, columns = sys.argv[1:3]
rows = json.load(sys.stdin)
conn = sqlite3.connect(db, timeout=30)
try:
    with conn:
        for row in rows:
            marks = ', '.join('?' for _ in row)
            conn.execute(f'INSERT INTO jobs ({columns}) VALUES ({marks})', row)
except sqlite3.Error as error:
    sys.exit(f'{type(error).__name__}: {error}')
finally:
    conn.close()
";
    let mut child = Command::new("python3")
        .args(["-c", SCRIPT, db.to_str().unwrap(), columns])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(serde_json::to_string(rows).unwrap().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}
