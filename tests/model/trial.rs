//! One sequence: every operation done on both sides, then everything that is
//! left run to its end.

use jobq::Status;
use jobq::clock::{Clock as _, ManualClock};
use jobq::store::sqlite::SqliteStore;

use crate::generate::Generator;
use crate::inspect::{Inspector, Memory};
use crate::op::{LeaseRef, Op, Report, TYPES};
use crate::reference::{RefJob, Reference};
use crate::subject::Subject;

/// Every sequence begins at this time, so that it can be replayed alone.
const START: i64 = 1_700_000_000_000;
/// Stands for "all there are".
const MANY: u32 = 1_000;

/// Where the operations of a trial come from.
pub enum Script {
    Random(Generator, usize),
    Given(Vec<Op>),
}

pub struct Trial<'a> {
    reference: Reference,
    subject: Subject<'a>,
    inspector: &'a Inspector,
    memory: Memory,
    log: Vec<Op>,
    stamp: i64,
}

/// Runs a sequence to its end. On failure: why, and what had been done.
pub fn run(
    store: &SqliteStore,
    clock: &ManualClock,
    inspector: &Inspector,
    prefix: String,
    script: Script,
) -> Result<(), (String, Vec<Op>)> {
    clock.advance(START - clock.now());
    let mut trial = Trial {
        reference: Reference::new(START),
        subject: Subject { store, clock, prefix, seqs: std::collections::HashMap::new() },
        inspector,
        memory: Memory::default(),
        log: Vec::new(),
        // Far from the stamps of the generator.
        stamp: 1_000_000,
    };
    let result = trial.follow(script).and_then(|()| trial.drain()).and_then(|()| trial.prune_all());
    result.map_err(|why| (why, trial.log))
}

impl Trial<'_> {
    fn follow(&mut self, script: Script) -> Result<(), String> {
        match script {
            Script::Random(mut generator, length) => (0..length).try_for_each(|_| {
                let op = generator.next(&self.reference);
                self.step(op)
            }),
            Script::Given(ops) => ops.into_iter().try_for_each(|op| self.step(op)),
        }
    }

    fn step(&mut self, op: Op) -> Result<(), String> {
        let expected = self.reference.perform(&op);
        let actual = self.subject.perform(&op);
        self.log.push(op);
        if actual != expected {
            return Err(format!("the answer is {actual:?}\nexpected      {expected:?}"));
        }
        self.inspector.compare(&mut self.subject, &self.reference, &mut self.memory)
    }

    /// Works on everything until nothing is left: what then is not finished
    /// must have a reason that only an operator can remove; that is removed,
    /// and all must end.
    fn drain(&mut self) -> Result<(), String> {
        loop {
            self.work_until_idle()?;
            let unfinished: Vec<&RefJob> = self.reference.jobs.iter().filter(|job| job.unfinished()).collect();
            if unfinished.is_empty() {
                return self.inspector.compare_history(&self.subject, &self.reference);
            }
            if let Some(job) = unfinished.iter().find(|job| !self.is_explained(job)) {
                return Err(format!("job {} is {} for ever and nothing explains it", job.no, job.status));
            }
            let failed: Vec<_> = self
                .reference
                .jobs
                .iter()
                .filter(|job| job.status == Status::Failed && !self.reference.pending_waiters(job.no).is_empty())
                .map(|job| job.no)
                .collect();
            for no in failed {
                self.step(Op::Cancel(no))?;
            }
        }
    }

    fn work_until_idle(&mut self) -> Result<(), String> {
        // Follow-ups are not queued here, so each round ends at least one job.
        for _ in 0..=self.reference.jobs.len() + 50 {
            let due = self.reference.jobs.iter().filter_map(|job| job.run_at);
            let latest = due.chain(self.reference.pauses.iter().flatten().map(|pause| pause.until)).max().unwrap_or(0);
            self.step(Op::MoveClock((latest - self.reference.now).max(0)))?;
            if self.reference.jobs.iter().any(|job| job.status == Status::Claimed && job.owner.is_none()) {
                self.step(Op::TakeOver { worker: 0, limit: MANY })?;
            }
            if self.reference.jobs.iter().any(|job| job.status == Status::Pending) {
                self.step(Op::Claim { worker: 1, types: (0..TYPES).collect(), limit: MANY, limits: Vec::new() })?;
            }
            let (decided, open): (Vec<&RefJob>, Vec<&RefJob>) =
                self.reference.jobs.iter().filter(|job| job.owner.is_some()).partition(|job| job.decided.is_some());
            let decided: Vec<LeaseRef> = decided.into_iter().map(RefJob::lease).collect();
            let open: Vec<_> = open.into_iter().map(|job| (job.lease(), Vec::new())).collect();
            if decided.is_empty() && open.is_empty() {
                return Ok(());
            }
            self.step(Op::Complete(open))?;
            for lease in decided {
                self.stamp += 1;
                self.step(Op::Apply { lease, report: Report::Applied { stamp: self.stamp } })?;
            }
        }
        Err("the work never ends".to_owned())
    }

    /// Waits for a job that failed, or for one that does, or is behind one.
    fn is_explained(&self, job: &RefJob) -> bool {
        if job.status != Status::Pending {
            return false;
        }
        match job.waiting_on.map(|parent| self.reference.job(parent)) {
            Some(Some(parent)) => parent.status == Status::Failed || (parent.unfinished() && self.is_explained(parent)),
            Some(None) => false,
            // Chains end: everybody is behind someone earlier.
            None => {
                self.reference.held_by(job).is_some_and(|other| other.order < job.order && self.is_explained(other))
            }
        }
    }

    fn prune_all(&mut self) -> Result<(), String> {
        while !self.reference.jobs.is_empty() {
            let before = self.reference.jobs.len();
            self.step(Op::Prune { ended_before: i64::MAX, failed: true, forget: true })?;
            if self.reference.jobs.len() == before {
                return Err("finished jobs can never be pruned".to_owned());
            }
        }
        self.inspector.expect_nothing_left()
    }
}
