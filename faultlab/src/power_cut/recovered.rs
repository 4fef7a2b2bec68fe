//! What the database says, looked at in a copy: nobody's recovery finds anything
//! done already.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use rusqlite::{Connection, Result as Sql};

#[derive(Default)]
pub struct Recovered {
    pub jobs: HashMap<String, FoundJob>,
    /// What each path was left with by the last job that is done.
    pub applied: BTreeMap<String, Option<String>>,
    /// What it may hold because of jobs that are decided and not done.
    pub planned: BTreeMap<String, HashSet<Option<String>>>,
    /// Jobs that were decided or completed more than once.
    pub repeated: Vec<String>,
    /// What SQLite has against the file.
    pub unsound: Option<String>,
}

pub struct FoundJob {
    pub status: String,
    pub decided: bool,
    pub last_error: String,
}

impl Recovered {
    /// `folder` is a place for the copy.
    pub fn read(root: &Path, folder: &Path) -> Result<Self, String> {
        let copy = tempfile::tempdir_in(folder).map_err(|e| e.to_string())?;
        let database = root.join(".jobq/jobq.db");
        std::fs::copy(&database, copy.path().join("db")).map_err(|e| format!("{}: {e}", database.display()))?;
        let log = root.join(".jobq/jobq.db-wal");
        if log.exists() {
            std::fs::copy(&log, copy.path().join("db-wal")).map_err(|e| format!("{}: {e}", log.display()))?;
        }
        Self::of(&copy.path().join("db")).map_err(|e| format!("{}: {e}", database.display()))
    }

    fn of(database: &Path) -> Sql<Self> {
        let conn = Connection::open(database)?;
        let mut jobs = conn.prepare("SELECT id, status, outcome IS NOT NULL, coalesce(last_error, '') FROM jobs")?;
        let job = |row: &rusqlite::Row<'_>| {
            let job = FoundJob { status: row.get(1)?, decided: row.get(2)?, last_error: row.get(3)? };
            Ok((row.get(0)?, job))
        };
        let jobs = jobs.query_map([], job)?.collect::<Sql<_>>()?;
        let mut effects = conn.prepare("SELECT path, sha256, state FROM effects ORDER BY applied_in")?;
        let (mut applied, mut planned): (_, BTreeMap<String, HashSet<_>>) = (BTreeMap::new(), BTreeMap::new());
        let mut rows = effects.query([])?;
        while let Some(row) = rows.next()? {
            let (path, sha256, state): (String, Option<String>, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            if state == "applied" {
                applied.insert(path, sha256);
            } else {
                planned.entry(path).or_default().insert(sha256);
            }
        }
        let mut repeated = conn.prepare(
            "SELECT job_id || ' was ' || type || ' ' || count(*) || ' times' FROM job_events
              WHERE type IN ('decided', 'completed') GROUP BY job_id, type HAVING count(*) > 1",
        )?;
        let repeated = repeated.query_map([], |row| row.get(0))?.collect::<Sql<_>>()?;
        let said: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        Ok(Self { jobs, applied, planned, repeated, unsound: (said != "ok").then_some(said) })
    }
}
