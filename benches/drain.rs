//! No-op jobs: claimed and completed by the store's verbs, and by a whole worker.

use std::path::Path;
use std::sync::Arc;

use jobq::{
    Context, Handler, HandlerError, NewJob, Outcome, Payload, Queue, QueueOptions, Registry, Shutdown, Worker,
    WorkerOptions,
};
use serde::{Deserialize, Serialize};

use crate::Sizes;
use crate::floor::Floor;
use crate::ours::{self, Ours};
use crate::table::{Goal, Table, per_second};

#[derive(Serialize, Deserialize)]
pub(crate) struct Noop {
    pub n: usize,
}

impl Payload for Noop {
    const TYPE: &'static str = "noop";
    type Output = ();
}

struct DoNothing;

impl Handler for DoNothing {
    type Payload = Noop;

    fn run(&self, _: &Context, _: Noop) -> Result<Outcome, HandlerError> {
        Ok(Outcome::done())
    }
}

pub(crate) fn claim(sizes: &Sizes, table: &mut Table) {
    let (mut floor_rate, mut rate) = (Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        let folder = tempfile::tempdir().unwrap();
        let floor = Floor::open(folder.path());
        let ours = Ours::open(folder.path());
        floor.insert(&ours::ids(sizes.drain), 1_000);
        ours.enqueue_many(sizes.drain);
        floor_rate.push(per_second(sizes.drain, || assert_eq!(floor.drain(50), sizes.drain)));
        rate.push(per_second(sizes.drain, || assert_eq!(ours.drain(50), sizes.drain)));
    }
    table.ratio("claim + complete, 50; raw, 50", "jobs/s", &rate, &floor_rate, Goal::AtLeast(0.5));
}

pub(crate) fn run(sizes: &Sizes, table: &mut Table) {
    let mut floor_rate = Vec::new();
    let mut ours_rate = [(1, 0.3), (4, 0.6), (8, 0.6)].map(|(concurrency, goal)| (concurrency, goal, Vec::new()));
    for _ in 0..sizes.rounds {
        let folder = tempfile::tempdir().unwrap();
        let floor = Floor::open(folder.path());
        let ids: Vec<String> = (0..sizes.noops).map(|n| format!("{n:026}")).collect();
        floor.insert(&ids, 1_000);
        floor_rate.push(per_second(sizes.noops, || assert_eq!(floor.drain(50), sizes.noops)));
        for (concurrency, _, rates) in &mut ours_rate {
            let queue = open(&folder.path().join(concurrency.to_string()));
            fill(&queue, sizes.noops);
            rates.push(per_second(sizes.noops, || assert_eq!(drain(&queue, *concurrency), sizes.noops as u64)));
        }
    }
    for (concurrency, goal, rates) in &ours_rate {
        let name = format!("drain of no-ops, concurrency {concurrency}; raw, 50");
        table.ratio(&name, "jobs/s", rates, &floor_rate, Goal::AtLeast(*goal));
    }
}

pub(crate) fn open(folder: &Path) -> Arc<Queue> {
    let types = registry().types();
    Arc::new(QueueOptions::in_folder(folder).create(true).types(types).open().unwrap())
}

fn registry() -> Registry {
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
