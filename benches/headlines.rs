//! What the first documents asked for, in absolute figures.

use std::sync::Mutex;
use std::time::Instant;

use crate::Sizes;
use crate::drain::{drain, fill, open};
use crate::ours::Ours;
use crate::process::{start, stop};
use crate::table::{Goal, Table, per_second, percentile};

const THREADS: usize = 8;

pub(crate) fn run(sizes: &Sizes, table: &mut Table) {
    let (mut rates, mut submits, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        let folder = tempfile::tempdir().unwrap();
        submits.push(slow_submit(&Ours::open(&folder.path().join("submit")), sizes.singles));
        let queue = open(folder.path());
        rates.push(per_second(sizes.noops, || {
            fill(&queue, sizes.noops);
            assert_eq!(drain(&queue, THREADS), sizes.noops as u64);
        }));
        let began = Instant::now();
        let (child, mut lines) = start("wait", folder.path());
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        starts.push(began.elapsed().as_secs_f64() * 1e3);
        stop(child);
    }
    table.alone("jobs queued (10,000 a call) and done", "jobs/s", &rates, Goal::AtLeast(1_000.0));
    table.alone("submit, 8 threads, p99", "ms", &submits, Goal::AtMost(50.0));
    table.alone("start of a worker, exec to ready", "ms", &starts, Goal::AtMost(1_000.0));
}

/// The time that one enqueue in a hundred takes longer than.
fn slow_submit(ours: &Ours, count: usize) -> f64 {
    let times = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..count / THREADS {
                    let began = Instant::now();
                    ours.queue.enqueue(ours.job()).unwrap();
                    times.lock().unwrap().push(began.elapsed().as_secs_f64() * 1e3);
                }
            });
        }
    });
    percentile(&times.into_inner().unwrap(), 99)
}
