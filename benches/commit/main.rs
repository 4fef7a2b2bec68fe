//! Speed of commits beside the same steps done bare, on the same disk in the
//! same run. Ratios are what counts; absolute figures depend on the machine.
//!
//! ```text
//! cargo bench --bench commit             # the whole table, a minute or two
//! cargo bench --bench commit -- --short  # small numbers, to see that it runs
//! ```

mod bare;
#[path = "../core/bare_files.rs"]
mod bare_files;
mod left_behind;
#[path = "../core/table.rs"]
mod table;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use jobq::{NewJob, Queue, QueueOptions};

use table::{line, median, per_second};

/// How much of everything.
struct Sizes {
    rounds: usize,
    warm_up: usize,
    commits: usize,
    left_behind: usize,
}

const WHOLE: Sizes = Sizes { rounds: 7, warm_up: 500, commits: 1_000, left_behind: 10_000 };
const SHORT: Sizes = Sizes { rounds: 1, warm_up: 0, commits: 50, left_behind: 100 };

fn main() {
    let short = std::env::args().any(|a| a == "--short");
    let sizes = if short { SHORT } else { WHOLE };
    if short {
        println!("Short form: it shows that the benchmark runs; its figures and verdicts mean nothing.");
    }
    println!("SQLite {}, FULL durability, median of {} rounds\n", rusqlite::version(), sizes.rounds);
    println!("{:<44} {:>12} {:>12} {:>7} {:>7}", "", "jobq", "floor", "ratio", "goal");
    // Removed at the end only: ext4 without a journal looks at every inode that was freed in the last minutes before
    // it makes a file, and then that is what is measured.
    let mut folders = Vec::new();
    let (mut floor, mut one, mut eight) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        let folder = tempfile::tempdir().unwrap();
        let bare = bare::Bare::open(&folder.path().join("bare"));
        bare.commit(0..sizes.warm_up);
        floor.push(per_second(sizes.commits, || bare.commit(sizes.warm_up..sizes.warm_up + sizes.commits)));
        for (threads, rates) in [(1, &mut one), (8, &mut eight)] {
            let root = folder.path().join(threads.to_string());
            let queue = open(&root);
            commit(&queue, 1, 0..sizes.warm_up);
            let numbers = sizes.warm_up..sizes.warm_up + sizes.commits * threads;
            rates.push(per_second(sizes.commits * threads, || commit(&queue, threads, numbers)));
        }
        folders.push(folder);
    }
    line("commit of 1 KiB and a job, 1 thread (per s)", &one, &floor, 0.5);
    line("commit of 1 KiB and a job, 8 threads to 1", &eight, &one, 2.5);

    let (mut bare_time, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..sizes.rounds.min(3) {
        let folder = tempfile::tempdir().unwrap();
        bare_time.push(per_second(sizes.left_behind, || {
            bare_files::write(&folder.path().join("bare"), sizes.left_behind, &bare::content());
        }));
        let root = folder.path().join("queue");
        left_behind::make(&root, sizes.left_behind);
        ours.push(per_second(sizes.left_behind, || {
            let queue = Queue::open(&root).unwrap();
            assert_eq!(queue.stats().unwrap().outstanding.len(), 0, "all of it was applied by opening");
        }));
        folders.push(folder);
    }
    line("roll-forward of commits left behind (per s)", &ours, &bare_time, 1.0 / 3.0);
    let slower: Vec<f64> = bare_time.iter().zip(&ours).map(|(bare, ours)| bare / ours).collect();
    println!("{:<44} {:>33.2} {:>7.2}", "  its time, as a multiple of the bare loop's", median(&slower), 3.0);
}

fn open(root: &Path) -> Queue {
    std::fs::create_dir(root).unwrap();
    QueueOptions::in_folder(root).create(true).open().unwrap()
}

fn commit(queue: &Queue, threads: usize, numbers: std::ops::Range<usize>) {
    let next = AtomicUsize::new(numbers.start);
    let content = bare::content();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= numbers.end {
                        return;
                    }
                    let accepted = queue.commit(|tx| {
                        tx.write(&format!("data/{n}.json"), content.clone())?;
                        tx.enqueue(NewJob::raw("noop", format!("{{\"n\":{n}}}")))
                    });
                    assert!(accepted.unwrap().applied);
                }
            });
        }
    });
}
