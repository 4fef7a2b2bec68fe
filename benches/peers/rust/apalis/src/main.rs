//! apalis with its SQLite storage: a pool of connections; jobs are fetched ten at a time and acknowledged together with
//! whatever else has ended by then.

mod pool;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use apalis::prelude::*;
use apalis_sqlite::{SqlitePool, SqliteStorage};
use peers_common::{Args, give_up};

const SETTINGS: [&str; 2] = ["shipped", "full"];

/// It does not poll at all unless told: a worker that found nothing looks again at its next heartbeat, after 30 s, or
/// when a job comes from its own process. This is the interval of its example of a configured worker.
const POLL: Duration = Duration::from_millis(100);

fn main() {
    let args = Args::parse(&SETTINGS);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|e| give_up(&e.to_string()));
    let pool = runtime.block_on(pool::open(&args));
    match args.operation.as_str() {
        "enqueue" => runtime.block_on(enqueue(&args, &pool)),
        "drain" => runtime.block_on(drain(&args, &pool)),
        "pickup" => {
            let mut storage = SqliteStorage::<u32>::new(&pool);
            let pragmas = runtime.block_on(pool::pragmas(&pool));
            peers_common::pickup(&args, &pragmas, || push(runtime.block_on(storage.push(1))));
        }
        "idle" => {
            let pragmas = runtime.block_on(pool::pragmas(&pool));
            peers_common::idle(&args, &pragmas);
        }
        "worker" => runtime.block_on(wait_for_work(&pool)),
        _ => give_up("the operation is enqueue, drain, pickup or idle"),
    }
    std::process::exit(0);
}

fn push<E: std::fmt::Debug>(result: Result<(), E>) {
    result.unwrap_or_else(|e| give_up(&format!("a job was not stored: {e:?}")));
}

async fn from_tasks(args: &Args, pool: &SqlitePool, count: usize) -> f64 {
    let start = Instant::now();
    let tasks: Vec<_> = (0..args.threads)
        .map(|index| {
            let (mut storage, share) = (SqliteStorage::<u32>::new(pool), args.share(count, index));
            tokio::spawn(async move {
                for _ in 0..share {
                    let mut result = storage.push(1).await;
                    // Kept out by the others for the 5 s it waits: made again, as a caller would have to.
                    while result.as_ref().is_err_and(|e| format!("{e:?}").contains("database is locked")) {
                        result = storage.push(1).await;
                    }
                    push(result);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap_or_else(|e| give_up(&e.to_string()));
    }
    start.elapsed().as_secs_f64()
}

async fn enqueue(args: &Args, pool: &SqlitePool) {
    from_tasks(args, pool, args.count / 4).await;
    let seconds = from_tasks(args, pool, args.count).await;
    let stored = pool::count(pool, "SELECT count(*) FROM Jobs").await;
    if stored != args.count + args.count / 4 {
        give_up(&format!("{stored} jobs are stored"));
    }
    args.report_seconds(seconds, &pool::pragmas(pool).await);
}

async fn drain(args: &Args, pool: &SqlitePool) {
    let mut storage = SqliteStorage::<u32>::new(pool);
    push(storage.push_bulk(vec![1; args.count]).await);
    let left = Arc::new(AtomicUsize::new(args.count));
    let noop = move |_: u32, worker: WorkerContext| {
        let left = Arc::clone(&left);
        async move {
            // A worker that is told to stop stores the ends it still has; then `run` returns.
            if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                worker.stop()?;
            }
            Ok::<(), BoxDynError>(())
        }
    };
    let start = Instant::now();
    let worker = WorkerBuilder::new("worker").backend(storage).concurrency(args.concurrency).build(noop);
    worker.run().await.unwrap_or_else(|e| give_up(&format!("the worker failed: {e}")));
    let seconds = start.elapsed().as_secs_f64();
    let done = pool::count(pool, "SELECT count(*) FROM Jobs WHERE status = 'Done'").await;
    if done != args.count {
        give_up(&format!("{done} jobs are stored as done"));
    }
    args.report_seconds(seconds, &pool::pragmas(pool).await);
}

async fn wait_for_work(pool: &SqlitePool) {
    let storage = SqliteStorage::<u32>::new(pool).poll_with_interval(POLL);
    let handler = |_: u32| async {
        peers_common::handler_starts();
        Ok::<(), BoxDynError>(())
    };
    let worker = WorkerBuilder::new("worker").backend(storage).build(handler);
    peers_common::worker_is_ready();
    worker.run().await.unwrap_or_else(|e| give_up(&format!("the worker failed: {e}")));
}
