//! The same work through jobq.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use jobq::liveness::OwnerLock;
use jobq::store::{ClaimRequest, ClaimedJob, Completion, Limits, Store};
use jobq::{JobTypes, NewJob, Payload, Queue, QueueOptions};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Noop {
    pub n: String,
}

impl Payload for Noop {
    const TYPE: &'static str = "noop";
    type Output = ();
}

pub struct Ours {
    pub queue: Queue,
    lock: OwnerLock,
    next: AtomicUsize,
}

pub fn ids(count: usize) -> Vec<String> {
    let mut generator = ulid::Generator::new();
    (0..count).map(|_| generator.generate().unwrap().to_string()).collect()
}

impl Ours {
    pub fn open(folder: &Path) -> Self {
        let queue = QueueOptions::in_folder(folder).create(true).types(JobTypes::new().with::<Noop>()).open().unwrap();
        let lock = OwnerLock::acquire(&queue.owners_folder()).unwrap();
        Self { queue, lock, next: AtomicUsize::new(0) }
    }

    pub fn job(&self) -> NewJob {
        // As long as the floor's payload, and never a duplicate.
        NewJob::of(&Noop { n: format!("{:026}", self.next.fetch_add(1, Ordering::Relaxed)) })
    }

    pub fn enqueue(&self, count: usize, threads: usize) {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..count / threads {
                        self.queue.enqueue(self.job()).unwrap();
                    }
                });
            }
        });
    }

    pub fn enqueue_many(&self, count: usize) {
        self.queue.enqueue_many((0..count).map(|_| self.job())).unwrap();
    }

    pub fn drain(&self, batch: u32) -> usize {
        self.drain_of(batch, &["noop"], &Limits::new())
    }

    pub fn claim(&self, limit: u32, types: &[&str], limits: &Limits) -> Vec<ClaimedJob> {
        let types = types.iter().map(|&name| name.to_owned()).collect();
        let request = ClaimRequest { owner: self.lock.owner().clone(), types, limit, limits: limits.clone() };
        self.queue.store().claim(request).unwrap()
    }

    /// Claims of these types until nothing comes, within these limits.
    pub fn drain_of(&self, batch: u32, types: &[&str], limits: &Limits) -> usize {
        let mut done = 0;
        loop {
            let claimed = self.claim(batch, types, limits);
            if claimed.is_empty() {
                return done;
            }
            let completions: Vec<_> = claimed
                .into_iter()
                .map(|c| Completion { lease: c.lease, result: None, follow_ups: Vec::new() })
                .collect();
            done += completions.len();
            for answer in self.queue.store().complete(completions).unwrap() {
                answer.unwrap();
            }
        }
    }
}
