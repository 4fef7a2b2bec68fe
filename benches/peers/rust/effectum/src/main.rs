//! effectum: one thread writes for all tasks of the process and puts what waits, up to 50 calls, into one transaction.
//! It has no workers in other processes, so there is nothing to pick up across them.

mod connection;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use effectum::{Job, JobRunner, Queue, RunningJob, Worker};
use peers_common::{Args, Pragmas, give_up};
use rusqlite::Connection;

// It ships with NORMAL and the rollback journal: it asks for WAL by a pragma that does not exist ("journal"), which
// SQLite ignores. "shipped-wal" is what it means to be, and "full" is that at FULL. WAL is a property of the file, so it
// needs no more than a file that exists when effectum opens it.
const SETTINGS: [&str; 3] = ["shipped", "shipped-wal", "full"];

fn main() {
    let args = Args::parse(&SETTINGS);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|e| give_up(&e.to_string()));
    runtime.block_on(async {
        match args.operation.as_str() {
            "enqueue" => enqueue(&args).await,
            "drain" => drain(&args).await,
            _ => give_up("the operation is enqueue or drain"),
        }
    });
    // Not dropped: the queue would close itself in a task of a runtime that ends.
    std::process::exit(0);
}

fn file(args: &Args) -> PathBuf {
    args.folder.join("effectum.db")
}

async fn open(args: &Args) -> Arc<Queue> {
    if args.setting != "shipped" {
        let db = Connection::open(file(args)).unwrap_or_else(|e| give_up(&e.to_string()));
        let mode: Result<String, _> = db.query_row("PRAGMA journal_mode = wal", [], |row| row.get(0));
        mode.unwrap_or_else(|e| give_up(&e.to_string()));
    }
    connection::remember_the_next();
    let queue = Queue::new(&file(args)).await.unwrap_or_else(|e| give_up(&e.to_string()));
    if args.setting == "full" {
        // Its writer waits for a first call.
        connection::with(|writer| writer.pragma_update(None, "synchronous", "full"));
    }
    Arc::new(queue)
}

/// After the last call, when the writer waits again.
fn pragmas() -> Pragmas {
    let ask = |name: &'static str| connection::with(|writer| writer.pragma_query_value(None, name, |row| row.get(0)));
    let level = connection::with(|writer| writer.pragma_query_value(None, "synchronous", |row| row.get(0)));
    Pragmas { synchronous: peers_common::level(level).to_owned(), journal_mode: ask("journal_mode") }
}

fn stored(args: &Args, condition: &str) -> usize {
    let db = Connection::open(file(args)).unwrap_or_else(|e| give_up(&e.to_string()));
    let sql = format!("SELECT count(*) FROM jobs WHERE {condition}");
    db.query_row(&sql, [], |row| row.get(0)).unwrap_or_else(|e| give_up(&e.to_string()))
}

async fn from_tasks(args: &Args, queue: &Arc<Queue>, count: usize) -> f64 {
    let start = Instant::now();
    let tasks: Vec<_> = (0..args.threads)
        .map(|index| {
            let (queue, share) = (Arc::clone(queue), args.share(count, index));
            tokio::spawn(async move {
                for _ in 0..share {
                    let job = Job::builder("noop").payload(b"{\"n\":1}".to_vec());
                    job.add_to(&queue).await.unwrap_or_else(|e| give_up(&e.to_string()));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap_or_else(|e| give_up(&e.to_string()));
    }
    start.elapsed().as_secs_f64()
}

async fn enqueue(args: &Args) {
    let queue = open(args).await;
    from_tasks(args, &queue, args.count / 4).await;
    let seconds = from_tasks(args, &queue, args.count).await;
    let found = stored(args, "true");
    if found != args.count + args.count / 4 {
        give_up(&format!("{found} jobs are stored"));
    }
    args.report_seconds(seconds, &pragmas());
    std::mem::forget(queue);
}

async fn noop(_: RunningJob, (): ()) -> Result<(), String> {
    Ok(())
}

async fn drain(args: &Args) {
    let queue = open(args).await;
    let jobs = (0..args.count).map(|n| Job::builder("noop").payload(format!("{{\"n\":{n}}}").into_bytes()).build());
    queue.add_jobs(jobs.collect()).await.unwrap_or_else(|e| give_up(&e.to_string()));
    let concurrency = u16::try_from(args.concurrency).unwrap_or(u16::MAX);
    let start = Instant::now();
    let worker =
        Worker::builder(&queue, ()).max_concurrency(concurrency).jobs([JobRunner::builder("noop", noop).build()]);
    let worker = worker.build().await.unwrap_or_else(|e| give_up(&e.to_string()));
    // A job counts as finished when its end is stored.
    while worker.counts().finished < args.count as u64 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let seconds = start.elapsed().as_secs_f64();
    let found = stored(args, "status = 'succeeded'");
    if found != args.count {
        give_up(&format!("{found} jobs are stored as done"));
    }
    args.report_seconds(seconds, &pragmas());
    std::mem::forget((worker, queue));
}
