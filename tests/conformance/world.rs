//! A fresh store with a clock of its own, and the words the tests are written
//! in.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobq::clock::{Clock as _, ManualClock, Millis};
use jobq::state::{Gate, Status};
use jobq::store::{
    Application, Applier, ApplyReport, Cancellation, ClaimRequest, ClaimedJob, Completion, DeadOwner, Decision, Ending,
    Enqueued, EventQuery, Failure, FileStamp, Filter, Lease, Owner, PlannedEffect, Reclaim, Reclaimed, Store as _,
};
use jobq::{EnqueueOutcome, ErrorKind, Event, Job, Result};

use super::Harness;
use super::draft::{self, Draft};

/// Where every clock starts unless a test says otherwise.
pub const START: Millis = 1_700_000_000_000;

pub struct World<H: Harness> {
    pub store: H::S,
    pub clock: Arc<ManualClock>,
    // After the store, so that the store is closed before its place goes.
    _place: H::Place,
}

impl<H: Harness> World<H> {
    pub fn new() -> Self {
        Self::at(START)
    }

    pub fn at(start: Millis) -> Self {
        let clock = Arc::new(ManualClock::at(start));
        let (store, place) = H::open(clock.clone(), draft::types());
        Self { store, clock, _place: place }
    }

    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    pub fn enqueue(&self, job: Draft) -> Enqueued {
        self.store.enqueue(vec![job.build()]).unwrap().pop().unwrap()
    }

    /// Queues a job that must be new.
    pub fn add(&self, job: Draft) -> String {
        let answer = self.enqueue(job);
        assert_eq!(answer.outcome, EnqueueOutcome::Inserted, "{answer:?}");
        answer.id
    }

    pub fn refuse(&self, job: Draft) -> ErrorKind {
        self.unchanged("a refused enqueue", || kind(self.store.enqueue(vec![job.build()])))
    }

    pub fn claim_as(&self, worker: &str, limit: u32) -> Vec<ClaimedJob> {
        self.store
            .claim(ClaimRequest {
                owner: owner(worker),
                types: draft::types().names(),
                limit,
                limits: jobq::store::Limits::new(),
            })
            .unwrap()
    }

    /// The ids of what a claim takes, in its order.
    pub fn claim(&self, limit: u32) -> Vec<String> {
        self.claim_as("w1", limit).into_iter().map(|claim| claim.lease.id).collect()
    }

    /// Claims everything that can be claimed, which must be this one job.
    pub fn claim_only(&self, id: &str) -> Lease {
        let mut claims = self.claim_as("w1", 100);
        assert_eq!(claims.iter().map(|c| c.lease.id.as_str()).collect::<Vec<_>>(), [id]);
        claims.remove(0).lease
    }

    /// Queues a job and claims it.
    pub fn running(&self, job: Draft) -> Lease {
        let id = self.add(job);
        self.claim_only(&id)
    }

    /// Queues a job, claims it and decides it.
    pub fn decided(&self, job: Draft, effects: Vec<PlannedEffect>) -> Lease {
        let lease = self.running(job);
        assert_eq!(self.decide(&lease, effects).unwrap(), Ending::Done);
        lease
    }

    pub fn take_over(&self, worker: &str) -> Vec<ClaimedJob> {
        self.store.take_over(owner(worker), 100).unwrap()
    }

    pub fn decide(&self, lease: &Lease, effects: Vec<PlannedEffect>) -> Result<Ending> {
        self.store.decide(lease.clone(), Decision { effects, ..Decision::default() })
    }

    /// Applies with a disk on which everything goes well.
    pub fn apply(&self, lease: &Lease) -> Result<Application> {
        self.store.apply(lease.clone(), Disk::obedient())
    }

    pub fn try_complete(&self, lease: &Lease) -> Result<Ending> {
        let completion = Completion { lease: lease.clone(), result: None, follow_ups: Vec::new() };
        self.store.complete(vec![completion]).unwrap().pop().unwrap()
    }

    pub fn complete(&self, lease: &Lease) {
        assert_eq!(self.try_complete(lease).unwrap(), Ending::Done);
    }

    pub fn fail(&self, lease: &Lease) {
        assert_eq!(self.store.fail(lease.clone(), failure()).unwrap(), Ending::Done);
    }

    pub fn release(&self, lease: &Lease) {
        assert_eq!(self.store.release(lease.clone()).unwrap(), Ending::Done);
    }

    pub fn reschedule(&self, lease: &Lease, delay: Millis) -> Ending {
        let delay = Duration::from_millis(delay.unsigned_abs());
        self.store.reschedule(lease.clone(), failure(), delay).unwrap()
    }

    pub fn cancel(&self, id: &str) -> Cancellation {
        self.store.cancel(id).unwrap()
    }

    /// Takes back everything of a worker whose slots cannot be read.
    pub fn reclaim_from(&self, worker: &str) -> Reclaimed {
        let dead = vec![DeadOwner { locked_by: worker.to_owned(), started: None }];
        self.store.reclaim(Reclaim { dead, lapsed: Vec::new() }).unwrap()
    }

    pub fn get(&self, id: &str) -> Job {
        self.store.get(id).unwrap()
    }

    pub fn status(&self, id: &str) -> Status {
        self.get(id).status
    }

    pub fn gate(&self, id: &str) -> Option<Gate> {
        self.get(id).gate
    }

    pub fn events(&self, id: &str) -> Vec<Event> {
        self.store.events(&EventQuery { job_id: Some(id.to_owned()), after: 0, limit: 10_000 }).unwrap()
    }

    pub fn event_types(&self, id: &str) -> Vec<String> {
        self.events(id).into_iter().map(|event| event.event_type).collect()
    }

    /// Everything there is to see: jobs, events and leases.
    pub fn picture(&self) -> String {
        let ids =
            self.store.list(&Filter { limit: 10_000, ..Filter::default() }).unwrap().into_iter().map(|job| job.id);
        let jobs: Vec<Job> = ids.map(|id| self.get(&id)).collect();
        let events = self.store.events(&EventQuery { limit: 10_000, ..EventQuery::default() }).unwrap();
        format!("{jobs:#?}\n{events:#?}\n{:#?}", self.store.leases().unwrap())
    }

    /// Does something that must leave no trace.
    pub fn unchanged<T>(&self, what: &str, act: impl FnOnce() -> T) -> T {
        let before = self.picture();
        let answer = act();
        assert_eq!(before, self.picture(), "{what} must change nothing");
        answer
    }
}

pub fn owner(name: &str) -> Owner {
    Owner {
        locked_by: name.to_owned(),
        machine_id: "machine".to_owned(),
        boot_id: "boot".to_owned(),
        pid: 42,
        lock_file: format!("{name}.lock"),
    }
}

pub fn failure() -> Failure {
    Failure::new("handler_error", "it broke")
}

/// The kind of an error there must be.
pub fn kind<T: std::fmt::Debug>(answer: Result<T>) -> ErrorKind {
    answer.unwrap_err().kind()
}

/// A disk that answers as told and remembers what it was asked to do.
#[derive(Default)]
pub struct Disk {
    answer: Option<ApplyReport>,
    pub asked: Mutex<Vec<(Lease, Vec<PlannedEffect>)>>,
}

impl Disk {
    pub fn obedient() -> Arc<Self> {
        Arc::default()
    }

    pub fn that_says(answer: ApplyReport) -> Arc<Self> {
        Arc::new(Self { answer: Some(answer), asked: Mutex::default() })
    }

    pub fn full(delay: Millis) -> Arc<Self> {
        Self::that_says(ApplyReport::Deferred { failure: Failure::new("disk_full", "no room"), delay })
    }

    pub fn in_conflict() -> Arc<Self> {
        Self::that_says(ApplyReport::Conflict { failure: conflict(), applied: Vec::new() })
    }
}

pub fn conflict() -> Failure {
    Failure::new("conflict", "the file is another one")
}

impl Applier for Disk {
    fn apply(&self, lease: &Lease, effects: &[PlannedEffect], _: bool) -> ApplyReport {
        self.asked.lock().unwrap().push((lease.clone(), effects.to_vec()));
        let all_well = || ApplyReport::Applied(vec![FileStamp { mtime: 1, inode: 2 }; effects.len()]);
        self.answer.clone().unwrap_or_else(all_well)
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(())
    }
}
