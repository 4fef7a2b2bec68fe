//! Speed and memory of the worker beside floors measured in the same run.
//! Ratios are what counts; absolute figures depend on the machine.
//!
//! ```text
//! cargo bench --bench worker             # the whole table, some minutes
//! cargo bench --bench worker -- --short  # small numbers, to see that it runs
//! cargo bench --bench worker -- noop     # one part: noop, files, programs, pickup, idle, memory
//! ```

#[path = "../core/bare_files.rs"]
mod bare_files;
mod child;
mod files;
#[path = "../core/floor.rs"]
mod floor;
mod process;
mod programs;
#[path = "../core/table.rs"]
mod table;

use std::path::Path;
use std::sync::Arc;

use jobq::{
    Context, Handler, HandlerError, NewJob, Outcome, Payload, Queue, QueueOptions, Registry, Shutdown, Worker,
    WorkerOptions,
};
use serde::{Deserialize, Serialize};

use floor::Floor;
use table::{line, per_second};

/// How much of everything.
pub(crate) struct Sizes {
    rounds: usize,
    noops: usize,
    files: usize,
    programs: usize,
    pickups: usize,
    idle_seconds: u64,
    many: usize,
}

const WHOLE: Sizes =
    Sizes { rounds: 5, noops: 40_000, files: 3_000, programs: 200, pickups: 500, idle_seconds: 20, many: 1_000_000 };
const SHORT: Sizes =
    Sizes { rounds: 1, noops: 1_000, files: 100, programs: 20, pickups: 20, idle_seconds: 1, many: 5_000 };

#[derive(Serialize, Deserialize)]
pub(crate) struct Noop {
    pub n: usize,
}

impl Payload for Noop {
    const TYPE: &'static str = "noop";
    type Output = ();
}

pub(crate) struct DoNothing;

impl Handler for DoNothing {
    type Payload = Noop;

    fn run(&self, _: &Context, _: Noop) -> Result<Outcome, HandlerError> {
        Ok(Outcome::done())
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if args.first().is_some_and(|a| a == "child") {
        return child::run(&args[1..]);
    }
    let sizes = if args.iter().any(|a| a == "--short") { SHORT } else { WHOLE };
    let wanted = |part: &str| {
        let mut parts = args.iter().filter(|a| !a.starts_with("--")).peekable();
        parts.peek().is_none() || parts.any(|p| p == part)
    };
    if sizes.rounds == 1 {
        println!("Short form: it shows that the benchmark runs; its figures and verdicts mean nothing.");
    }
    println!("SQLite {}, FULL durability, median of {} rounds\n", rusqlite::version(), sizes.rounds);
    println!("{:<44} {:>12} {:>12} {:>7} {:>7}", "", "jobq", "floor", "ratio", "goal");
    if wanted("noop") {
        noop(&sizes);
    }
    if wanted("files") {
        files::run(&sizes);
    }
    if wanted("programs") {
        programs::run(&sizes);
    }
    if wanted("pickup") {
        process::pickup(&sizes);
        process::plain_sql(&sizes);
    }
    if wanted("idle") {
        process::idle(&sizes);
    }
    if wanted("memory") {
        process::memory(&sizes);
    }
}

fn noop(sizes: &Sizes) {
    let (mut floor_rate, mut one, mut eight) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        let folder = tempfile::tempdir().unwrap();
        let floor = Floor::open(folder.path());
        let ids: Vec<String> = (0..sizes.noops).map(|n| format!("{n:026}")).collect();
        floor.insert(&ids, 1_000);
        floor_rate.push(per_second(sizes.noops, || assert_eq!(floor.drain(50), sizes.noops)));
        for (concurrency, rates) in [(1, &mut one), (8, &mut eight)] {
            let queue = open(&folder.path().join(concurrency.to_string()));
            fill(&queue, sizes.noops);
            rates.push(per_second(sizes.noops, || assert_eq!(drain(&queue, concurrency), sizes.noops as u64)));
        }
    }
    line("no-op drain, concurrency 1 (jobs/s)", &one, &floor_rate, 0.3);
    line("no-op drain, concurrency 8 (jobs/s)", &eight, &floor_rate, 0.5);
}

pub(crate) fn open(folder: &Path) -> Arc<Queue> {
    let types = registry().types();
    Arc::new(QueueOptions::in_folder(folder).create(true).types(types).open().unwrap())
}

pub(crate) fn registry() -> Registry {
    Registry::builtin().with(DoNothing)
}

pub(crate) fn fill(queue: &Queue, count: usize) {
    for start in (0..count).step_by(10_000) {
        let numbers = start..count.min(start + 10_000);
        queue.enqueue_many(numbers.map(|n| NewJob::of(&Noop { n }))).unwrap();
    }
}

/// Runs everything there is; returns how many completed.
pub(crate) fn drain(queue: &Arc<Queue>, concurrency: usize) -> u64 {
    let options = WorkerOptions { concurrency, drain: true, ..WorkerOptions::default() };
    Worker::new(Arc::clone(queue), registry(), options).unwrap().run(&Shutdown::new()).unwrap().completed
}
