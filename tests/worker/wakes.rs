//! Workers that nobody tells of new work but the disk.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use super::child::Setup;
use super::harness::{Process, World, until};

const JOBS: usize = 200;

/// Another program, with SQLite and nothing of ours. Says when each COMMIT has
/// returned, then waits until the job has been taken.
const INSERTER: &str = r#"
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
for n in range(int(sys.argv[2])):
    name = "sql-%d" % n
    db.execute("INSERT INTO jobs (id, type, payload) VALUES (?, 'act', '{\"deeds\":[]}')", (name,))
    print(name, time.time_ns() // 1000000, flush=True)
    # Not always in the same state of the worker: right after it, or when it has long gone to sleep.
    time.sleep((n % 5) * 0.008)
"#;

#[test]
fn plain_sql_of_another_program_wakes_a_worker_without_a_poll() {
    let world = World::new();
    // So long between polls that they cannot help.
    let mut worker = Process::start(&Setup { poll_ms: 600_000, concurrency: 2, ..world.setup("worker") });
    worker.hear("started");
    let mut inserter = Command::new("python3")
        .args(["-c", INSERTER])
        .arg(world.root().join(".jobq/jobq.db"))
        .arg(JOBS.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(inserter.stdout.take().unwrap()).lines();
    let rows: Vec<(String, i64)> = lines
        .map(|line| {
            let line = line.unwrap();
            let (id, at) = line.split_once(' ').unwrap();
            (id.to_owned(), at.parse().unwrap())
        })
        .collect();
    assert!(inserter.wait().unwrap().success());
    assert_eq!(rows.len(), JOBS);
    let mut waits: Vec<i64> = rows
        .iter()
        .map(|(id, at)| {
            until("it has been taken", || world.queue.get(id).unwrap().claimed_at.is_some());
            world.queue.get(id).unwrap().claimed_at.unwrap() - at
        })
        .collect();
    waits.sort_unstable();
    // How fast is the benchmark's question, which has the machine to itself.
    println!("taken after {} ms in the middle, {} ms at most", waits[JOBS / 2], waits[JOBS - 1]);
    for (id, _) in &rows {
        world.completed(id);
    }
    worker.stop();
}

#[test]
fn the_api_of_another_process_wakes_a_worker_without_a_poll() {
    let world = World::new();
    let mut worker = Process::start(&Setup { poll_ms: 600_000, ..world.setup("worker") });
    worker.hear("started");
    for _ in 0..50 {
        let id = world.enqueue(super::act::act([]));
        worker.hear(&format!("completed {id} 1"));
    }
    worker.stop();
}
