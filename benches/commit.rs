//! Commits of files and jobs beside the same steps done bare, and roll-forward of
//! what somebody left behind.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use jobq::{NewJob, Queue, QueueOptions};

use crate::bare_commit::{self, Bare};
use crate::table::{Goal, Table, per_second};
use crate::{Sizes, bare_files, left_behind};

pub(crate) fn run(sizes: &Sizes, table: &mut Table) {
    let warm_up = sizes.warm_up / 4;
    let (mut floor, mut one, mut eight) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        let folder = tempfile::tempdir().unwrap();
        let bare = Bare::open(&folder.path().join("bare"));
        bare.commit(0..warm_up);
        floor.push(per_second(sizes.commits, || bare.commit(warm_up..warm_up + sizes.commits)));
        for (threads, rates) in [(1, &mut one), (8, &mut eight)] {
            let root = folder.path().join(threads.to_string());
            let queue = open(&root);
            commit(&queue, 1, 0..warm_up);
            let numbers = warm_up..warm_up + sizes.commits * threads;
            rates.push(per_second(sizes.commits * threads, || commit(&queue, threads, numbers)));
        }
        table.keep(folder);
    }
    table.ratio("commit of 1 KiB and a job, 1 thread; bare", "per s", &one, &floor, Goal::AtLeast(0.5));
    table.ratio("commit of 1 KiB and a job, 8 threads; one", "per s", &eight, &one, Goal::AtLeast(3.0));

    let (mut bare_time, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..sizes.rounds.min(3) {
        let folder = tempfile::tempdir().unwrap();
        bare_time.push(per_second(sizes.left_behind, || {
            bare_files::write(&folder.path().join("bare"), sizes.left_behind, &bare_commit::content());
        }));
        let root = folder.path().join("queue");
        left_behind::make(&root, sizes.left_behind);
        ours.push(per_second(sizes.left_behind, || {
            let queue = Queue::open(&root).unwrap();
            assert_eq!(queue.stats().unwrap().outstanding.len(), 0, "all of it was applied by opening");
        }));
        table.keep(folder);
    }
    let name = format!("roll-forward of {} commits; bare, 4 threads", sizes.left_behind);
    table.ratio(&name, "per s", &ours, &bare_time, Goal::AtLeast(1.0 / 3.0));
}

fn open(root: &Path) -> Queue {
    std::fs::create_dir(root).unwrap();
    QueueOptions::in_folder(root).create(true).open().unwrap()
}

fn commit(queue: &Queue, threads: usize, numbers: std::ops::Range<usize>) {
    let next = AtomicUsize::new(numbers.start);
    let content = bare_commit::content();
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
