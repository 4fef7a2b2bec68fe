//! Speed of the core beside the floor SQLite sets on the same disk in the same
//! run. Ratios are what counts; absolute figures depend on the machine.
//!
//! ```text
//! cargo bench --bench core             # the whole table, some minutes
//! cargo bench --bench core -- --short  # small numbers, to see that it runs
//! cargo bench --bench core -- enqueue  # one part: enqueue, bulk, drain, piles, stats, cli
//! ```

mod cli;
mod floor;
mod ours;
mod piles;
mod stats;
mod table;

use floor::Floor;
use ours::Ours;
use table::{line, per_second};

/// How much of everything.
pub struct Sizes {
    rounds: usize,
    warm_up: usize,
    singles: usize,
    bulk: usize,
    drain: usize,
    finished: usize,
    pile: usize,
    processes: usize,
}

const WHOLE: Sizes = Sizes {
    rounds: 7,
    warm_up: 2_000,
    singles: 2_000,
    bulk: 100_000,
    drain: 20_000,
    finished: 1_000_000,
    pile: 100_000,
    processes: 40,
};
const SHORT: Sizes =
    Sizes { rounds: 1, warm_up: 0, singles: 100, bulk: 2_000, drain: 500, finished: 2_000, pile: 1_000, processes: 3 };

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
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
    if wanted("enqueue") {
        enqueue(&sizes);
    }
    if wanted("bulk") {
        bulk(&sizes);
    }
    if wanted("drain") {
        drain(&sizes);
    }
    if wanted("piles") {
        piles::run(&sizes);
    }
    if wanted("stats") {
        stats::run(&sizes);
    }
    if wanted("cli") {
        cli::run(&sizes);
    }
}

fn enqueue(sizes: &Sizes) {
    let (mut floor_rate, mut one, mut eight) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        let folder = tempfile::tempdir().unwrap();
        let floor = Floor::open(folder.path());
        let ours = Ours::open(folder.path());
        // Until the WAL has been through a checkpoint and is written in place:
        // while it still grows, every fsync costs more, for the floor as well.
        floor.insert(&ours::ids(sizes.warm_up), 1);
        ours.enqueue(sizes.warm_up, 1);
        floor_rate.push(per_second(sizes.singles, || floor.insert(&ours::ids(sizes.singles), 1)));
        one.push(per_second(sizes.singles, || ours.enqueue(sizes.singles, 1)));
        eight.push(per_second(sizes.singles * 4, || ours.enqueue(sizes.singles * 4, 8)));
    }
    line("enqueue, 1 thread (jobs/s)", &one, &floor_rate, 0.8);
    line("enqueue, 8 threads (jobs/s)", &eight, &floor_rate, 3.0);
}

fn bulk(sizes: &Sizes) {
    let (mut floor_rate, mut rate) = (Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        let folder = tempfile::tempdir().unwrap();
        let floor = Floor::open(folder.path());
        let ours = Ours::open(folder.path());
        let ids = ours::ids(sizes.bulk);
        floor_rate.push(per_second(sizes.bulk, || floor.insert(&ids, 1_000)));
        rate.push(per_second(sizes.bulk, || ours.enqueue_many(sizes.bulk)));
    }
    line(&format!("enqueue_many of {} (jobs/s)", sizes.bulk), &rate, &floor_rate, 0.25);
}

fn drain(sizes: &Sizes) {
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
    line("claim + complete, batches of 50 (jobs/s)", &rate, &floor_rate, 0.5);
}
