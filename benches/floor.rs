//! The floor: what SQLite itself does on this disk with the same settings, a
//! plain table with the spec's 13 columns, one index, no events.

use std::path::Path;

use rusqlite::{Connection, params};

pub struct Floor(Connection);

impl Floor {
    pub fn open(folder: &Path) -> Self {
        let conn = Connection::open(folder.join("floor.db")).unwrap();
        conn.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16000;
             PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 8000;
             CREATE TABLE jobs (
                 id TEXT PRIMARY KEY, type TEXT NOT NULL, payload TEXT NOT NULL,
                 status TEXT NOT NULL DEFAULT 'pending', priority INTEGER DEFAULT 0,
                 attempts INTEGER DEFAULT 0, max_attempts INTEGER DEFAULT 3, last_error TEXT,
                 locked_by TEXT, locked_at INTEGER, created_at INTEGER NOT NULL, claimed_at INTEGER,
                 completed_at INTEGER);
             CREATE INDEX jobs_claim ON jobs (status, priority DESC, created_at);",
        )
        .unwrap();
        conn.set_prepared_statement_cache_capacity(64);
        Self(conn)
    }

    /// Rows in transactions of `per_transaction`.
    pub fn insert(&self, ids: &[String], per_transaction: usize) {
        for chunk in ids.chunks(per_transaction) {
            self.run("BEGIN IMMEDIATE");
            for (i, id) in (0_i64..).zip(chunk) {
                self.0
                    .prepare_cached("INSERT INTO jobs (id, type, payload, created_at) VALUES (?1, 'noop', ?2, ?3)")
                    .unwrap()
                    .execute(params![id, format!("{{\"n\":\"{id}\"}}"), i])
                    .unwrap();
            }
            self.run("COMMIT");
        }
    }

    /// Claims and completes everything, `batch` at a time, a transaction each.
    /// The + keeps the planner from walking all pending rows for every claim.
    pub fn drain(&self, batch: u32) -> usize {
        let mut done = 0;
        loop {
            self.run("BEGIN IMMEDIATE");
            let ids: Vec<String> = self
                .0
                .prepare_cached(
                    "UPDATE jobs SET status = 'claimed', locked_by = 'w', locked_at = 1, claimed_at = 1,
                            attempts = attempts + 1
                      WHERE id IN (SELECT id FROM jobs WHERE status = 'pending'
                                    ORDER BY priority DESC, created_at LIMIT ?1)
                        AND +status = 'pending'
                    RETURNING id",
                )
                .unwrap()
                .query_map([batch], |row| row.get(0))
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            self.run("COMMIT");
            if ids.is_empty() {
                return done;
            }
            self.run("BEGIN IMMEDIATE");
            for id in &ids {
                self.0
                    .prepare_cached(
                        "UPDATE jobs SET status = 'completed', completed_at = 2, locked_by = NULL, locked_at = NULL
                          WHERE id = ?1 AND status = 'claimed'",
                    )
                    .unwrap()
                    .execute([id])
                    .unwrap();
            }
            self.run("COMMIT");
            done += ids.len();
        }
    }

    fn run(&self, sql: &str) {
        self.0.prepare_cached(sql).unwrap().execute([]).unwrap();
    }
}
