//! The six questions on a table full of finished jobs, beside `SELECT count(*)`
//! on the same table. Both on connections that were just opened, as the command
//! does it: what SQLite has in its own cache would say nothing.

use std::path::Path;
use std::time::Instant;

use jobq::QueueOptions;
use rusqlite::{Connection, OpenFlags};

use crate::Sizes;
use crate::ours::Ours;
use crate::table::{Goal, Table};

/// More than this many times a count would be felt.
const GOAL: f64 = 10.0;
/// Costs are in the rows and not in an index, and 100,000 rows are read for them.
const GOAL_WITH_COSTS: f64 = 25.0;

pub(crate) fn run(sizes: &Sizes, table: &mut Table) {
    for (name, spread, costs) in
        [("over two weeks", true, false), ("in the last hour", false, false), ("that tell their costs", true, true)]
    {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join(".jobq/jobq.db");
        drop(Ours::open(folder.path()));
        fill(&db, sizes.finished, spread, costs);
        let (mut ours, mut floor) = (Vec::new(), Vec::new());
        for _ in 0..sizes.rounds.max(5) {
            floor.push(count(&db, sizes.finished));
            ours.push(stats(&db, costs));
        }
        let name = format!("stats, {} jobs {name}; count(*)", sizes.finished);
        table.ratio(&name, "ms", &ours, &floor, Goal::AtMost(if costs { GOAL_WITH_COSTS } else { GOAL }));
    }
}

fn count(db: &Path, expected: usize) -> f64 {
    let conn = Connection::open_with_flags(db, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    conn.execute_batch("PRAGMA cache_size = -16000; SELECT 1 FROM jobs LIMIT 1").unwrap();
    let start = Instant::now();
    let rows: i64 = conn.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).unwrap();
    let took = start.elapsed().as_secs_f64();
    assert_eq!(usize::try_from(rows).unwrap(), expected);
    took * 1e3
}

fn stats(db: &Path, costs: bool) -> f64 {
    let queue = QueueOptions::at(db).recover(false).open().unwrap();
    // Opens the reader, whose cache is then empty but for the schema.
    let _ = queue.get("none");
    let start = Instant::now();
    let stats = queue.stats().unwrap();
    let took = start.elapsed().as_secs_f64();
    assert_eq!((stats.durations.len(), stats.latencies.len(), stats.failed.len()), (4, 4, 4));
    assert_eq!(stats.costs.len(), if costs { 4 } else { 0 });
    took * 1e3
}

/// Finished jobs of four types, one in a hundred failed and one cancelled, past
/// the triggers, which would have each of them queued and claimed.
fn fill(db: &Path, rows: usize, spread: bool, costs: bool) {
    let conn = Connection::open(db).unwrap();
    let triggers: Vec<(String, String)> = conn
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'jobs'")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -64000; BEGIN").unwrap();
    for (name, _) in &triggers {
        conn.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    let window = if spread { 14 * 86_400_000_i64 } else { 3_000_000 };
    conn.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1),
              at(i, done) AS (SELECT i, CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER)
                                        - ?2 + ?2 * i / ?1 FROM n)
         INSERT INTO jobs (id, type, status, gate, attempts, token, created_at, claimed_at, completed_at, timeout,
                           backoff_base, backoff_max, idempotency_key, payload_hash, last_error, result, payload)
         SELECT printf('01J%023d', i), 'type ' || (i % 4),
                CASE WHEN i / 4 % 100 = 0 THEN 'failed' WHEN i / 4 % 100 = 1 THEN 'cancelled' ELSE 'completed' END,
                NULL, 1, 1, done - 500 - i % 97, done - i % 89, done, 300000, 1000, 30000,
                printf('payload:%064d', i), printf('%064d', i),
                CASE WHEN i / 4 % 100 = 0 THEN 'handler_error: it broke' END,
                CASE WHEN ?3 THEN printf('{\"session_id\":\"%036d\",\"usage\":{\"output_tokens\":%d},\"total_cost_usd\":0.0%d}', i, i, i) END,
                printf('{\"n\":\"%026d\"}', i)
           FROM at",
        (i64::try_from(rows).unwrap(), window, costs),
    )
    .unwrap();
    conn.execute_batch(
        "INSERT INTO job_events (job_id, seq, attempt, type, at)
         SELECT id, 1, 0, 'queued', created_at FROM jobs UNION ALL
         SELECT id, 2, 1, 'claimed', claimed_at FROM jobs UNION ALL
         SELECT id, 3, 1, status, completed_at FROM jobs",
    )
    .unwrap();
    for (_, sql) in &triggers {
        conn.execute_batch(sql).unwrap();
    }
    conn.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
}
