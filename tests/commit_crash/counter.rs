//! Two processes that read, change and write one file.

use std::path::PathBuf;
use std::sync::Arc;

use jobq::{
    Context, Filter, Handler, HandlerError, Outcome, Payload, QueueOptions, Registry, Shutdown, Status, Worker,
    WorkerOptions,
};
use serde::{Deserialize, Serialize};

use super::child::{Child, Deed};
use super::world::World;

/// Each of the two.
const TIMES: u32 = 1_000;

/// The side effect of an increment.
#[derive(Serialize, Deserialize)]
struct Count {
    value: u64,
}

impl Payload for Count {
    const TYPE: &'static str = "count";
    type Output = ();
}

/// Leaves a line for each run.
struct Counter(PathBuf);

impl Handler for Counter {
    type Payload = Count;

    fn run(&self, _: &Context, count: Count) -> Result<Outcome, HandlerError> {
        use std::io::Write as _;
        let mut log = std::fs::OpenOptions::new().create(true).append(true).open(&self.0).unwrap();
        log.write_all(format!("{}\n", count.value).as_bytes()).unwrap();
        Ok(Outcome::done())
    }
}

#[test]
fn two_processes_lose_no_increment_and_each_has_its_side_effect_once() {
    let world = World::new();
    let children = [(); 2].map(|()| Child::new(&world, &Deed::Count(TIMES)).start());
    let calls: u32 = children.map(|ended| ended().parse::<u32>().unwrap()).into_iter().sum();
    let total = 2 * TIMES;
    assert!(calls > total, "in {calls} tries nobody was ever refused");
    let (log, registry) = (world.outside("counted"), Registry::builtin().with(Counter(world.outside("counted"))));
    let queue = Arc::new(QueueOptions::in_folder(world.root()).types(registry.types()).open().unwrap());
    assert_eq!(queue.read_json::<u32>("data/counter.json").unwrap().value, Some(total));

    let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
    Worker::new(Arc::clone(&queue), registry, options).unwrap().run(&Shutdown::new()).unwrap();
    let mut ran: Vec<u32> = std::fs::read_to_string(log).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    ran.sort_unstable();
    assert_eq!(ran, (1..=total).collect::<Vec<_>>(), "each once, none left out");
    let every = Filter { status: Some(Status::Completed), limit: 3 * total, ..Filter::default() };
    assert_eq!(queue.list(&every).unwrap().len(), 2 * total as usize, "the commits and their jobs");
}
