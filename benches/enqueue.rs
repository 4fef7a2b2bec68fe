//! Accepting jobs, one durable call each or many at once.

use crate::Sizes;
use crate::floor::Floor;
use crate::ours::{self, Ours};
use crate::table::{Goal, Table, per_second};

pub(crate) fn run(sizes: &Sizes, table: &mut Table) {
    let mut floor_rate = Vec::new();
    let mut ours_rate = [(1, 0.9), (8, 4.0), (64, 4.0)].map(|(threads, goal)| (threads, goal, Vec::new()));
    for _ in 0..sizes.rounds {
        let folder = tempfile::tempdir().unwrap();
        let floor = Floor::open(folder.path());
        let ours = Ours::open(folder.path());
        // Until the WAL has been through a checkpoint and is written in place:
        // while it still grows, every fsync costs more, for the floor as well.
        floor.insert(&ours::ids(sizes.warm_up), 1);
        ours.enqueue(sizes.warm_up, 1);
        floor_rate.push(per_second(sizes.singles, || floor.insert(&ours::ids(sizes.singles), 1)));
        for (threads, _, rates) in &mut ours_rate {
            let count = sizes.singles * if *threads == 1 { 1 } else { 4 };
            rates.push(per_second(count, || ours.enqueue(count, *threads)));
        }
    }
    for (threads, goal, rates) in &ours_rate {
        let s = if *threads == 1 { "" } else { "s" };
        let name = format!("enqueue, {threads} thread{s}; a raw INSERT each");
        table.ratio(&name, "jobs/s", rates, &floor_rate, Goal::AtLeast(*goal));
    }
}

pub(crate) fn bulk(sizes: &Sizes, table: &mut Table) {
    let (mut floor_rate, mut rate) = (Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        let folder = tempfile::tempdir().unwrap();
        let floor = Floor::open(folder.path());
        let ours = Ours::open(folder.path());
        let ids = ours::ids(sizes.bulk);
        floor_rate.push(per_second(sizes.bulk, || floor.insert(&ids, 1_000)));
        rate.push(per_second(sizes.bulk, || ours.enqueue_many(sizes.bulk)));
    }
    let name = format!("enqueue_many of {}; raw, 1,000 a COMMIT", sizes.bulk);
    table.ratio(&name, "jobs/s", &rate, &floor_rate, Goal::AtLeast(0.35));
}
