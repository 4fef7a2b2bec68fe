//! The store under test: turns operations into calls and answers into words
//! the reference also speaks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobq::clock::ManualClock;
use jobq::store::sqlite::SqliteStore;
use jobq::store::{
    Application, Applier, ApplyReport, Beat, ClaimRequest, ClaimedJob, Completion, DeadOwner, Decision, Dedup,
    EffectOp, EnqueueJob, Failure, FileStamp, LapsedLease, Lease, Limits, Owner, PlannedEffect, Precondition, Progress,
    Reclaim, Reclaimed, Store,
};
use jobq::{Backoff, EnqueueOutcome, ErrorKind, PruneRequest, Unique};
use sha2::{Digest as _, Sha256};

use crate::op::{
    Accepted, Answer, Applied, JobNo, LANES, LeaseRef, Leased, Op, Report, Request, Rule, Taken, TakenBack, number_of,
    numbers,
};

pub struct Subject<'a> {
    pub store: &'a SqliteStore,
    pub clock: &'a ManualClock,
    /// Begins every name of this sequence, so that sequences in one database
    /// have nothing in common.
    pub prefix: String,
    /// Place of each job in the store's order, also of those that are gone.
    pub seqs: HashMap<JobNo, i64>,
}

impl Subject<'_> {
    pub fn perform(&mut self, op: &Op) -> Answer {
        self.call(op).unwrap_or_else(|error| Answer::Refused(error.kind()))
    }

    fn call(&mut self, op: &Op) -> jobq::Result<Answer> {
        let store = self.store;
        Ok(match op {
            Op::Enqueue(requests) => {
                let answers = store.enqueue(self.requests(requests))?;
                let accepted = answers.into_iter().map(|answer| Accepted {
                    job: number_of(&answer.id),
                    status: answer.status,
                    inserted: answer.outcome == EnqueueOutcome::Inserted,
                    same_payload: answer.same_payload,
                });
                Answer::Enqueued(accepted.collect())
            }
            Op::Claim { worker, types, limit, limits } => {
                let types: Vec<String> = types.iter().map(|t| self.type_name(*t)).collect();
                let limits: Limits = limits.iter().map(|(t, most)| (self.type_name(*t), *most)).collect();
                let owner = self.owner(*worker);
                let request = ClaimRequest { owner, types: types.clone(), limit: *limit, limits: limits.clone() };
                let claimed = store.claim(request)?;
                // Who was given less than they asked for and looks again must not be sent back at once.
                if claimed.len() < *limit as usize && store.outlook(&types, &limits)?.claimable {
                    return Err(jobq::Error::new(ErrorKind::Internal, "a look promises what no claim finds"));
                }
                self.taken(claimed)
            }
            Op::TakeOver { worker, limit } => self.taken(store.take_over(self.owner(*worker), *limit)?),
            Op::Heartbeat { lease, progress } => {
                let progress = progress.then_some(Progress { percent: 50, message: None });
                let beat = Beat { lease: self.lease(*lease), progress, checkpoint: None };
                Answer::Pulse(store.heartbeat(vec![beat])?[0])
            }
            Op::Complete(completions) => {
                let completions = completions.iter().map(|(lease, follow_ups)| Completion {
                    lease: self.lease(*lease),
                    result: None,
                    follow_ups: self.requests(follow_ups),
                });
                let endings = store.complete(completions.collect())?;
                Answer::Endings(endings.into_iter().map(|ending| ending.map_err(|e| e.kind())).collect())
            }
            Op::Decide { lease, paths, follow_ups } => {
                let effects = paths.iter().map(|path| self.effect(*path)).collect();
                let decision = Decision { result: None, effects, follow_ups: self.requests(follow_ups) };
                Answer::Ending(store.decide(self.lease(*lease), decision)?)
            }
            Op::Apply { lease, report } => {
                let applier = Arc::new(StandIn { report: *report, shown: Mutex::new(None) });
                let outcome = match store.apply(self.lease(*lease), applier.clone())? {
                    Application::Completed => Applied::Completed,
                    Application::Conflict(_) => Applied::Conflict,
                    Application::Deferred(_) => Applied::Deferred,
                    Application::Withdrawn(_) => unreachable!("only who has just accepted a commit may withdraw it"),
                };
                let shown = applier.shown.lock().expect("nothing panics while it is locked").take();
                Answer::Application { outcome, shown }
            }
            Op::Reschedule { lease, delay, pause } => {
                let delay = Duration::from_millis(delay.unsigned_abs());
                let mut failure = failure();
                failure.pause = pause.map(|pause| Duration::from_millis(pause.unsigned_abs()));
                Answer::Ending(store.reschedule(self.lease(*lease), failure, delay)?)
            }
            Op::Fail(lease) => Answer::Ending(store.fail(self.lease(*lease), failure())?),
            Op::Release(lease) => Answer::Ending(store.release(self.lease(*lease))?),
            Op::AcknowledgeCancel(lease) => Answer::Ending(store.acknowledge_cancel(self.lease(*lease))?),
            Op::Cancel(no) => {
                let done = store.cancel(&self.id(*no))?;
                Answer::Cancellation { outcome: done.outcome, waiters: numbers(&done.cancelled_waiters) }
            }
            Op::Retry(no) => Answer::Retried(store.retry(&self.id(*no))?.status),
            Op::ReclaimDead { worker, started } => {
                let started =
                    started.as_ref().map(|leases| leases.iter().map(|l| (self.seq(l.job), l.token)).collect());
                let dead = vec![DeadOwner { locked_by: self.worker_name(*worker), started }];
                taken_back(&store.reclaim(Reclaim { dead, lapsed: Vec::new() })?)
            }
            Op::ReclaimLapsed { lease, heartbeat, started } => {
                let lapsed = LapsedLease { lease: self.lease(*lease), heartbeat: *heartbeat, started: *started };
                taken_back(&store.reclaim(Reclaim { dead: Vec::new(), lapsed: vec![lapsed] })?)
            }
            Op::Leases => {
                let held = store.leases()?.into_iter().map(|held| Leased {
                    lease: LeaseRef { job: number_of(&held.lease.id), token: held.lease.token },
                    heartbeat: held.heartbeat,
                    worker: u8::try_from(number_of(&held.locked_by)).unwrap_or(u8::MAX),
                    owner_on_record: held.owner.is_some(),
                });
                Answer::Leases(held.collect())
            }
            Op::Prune { ended_before, failed, forget } => {
                let request =
                    PruneRequest { ended_before: *ended_before, failed: *failed, forget: *forget, job_type: None };
                Answer::Pruned(store.prune(request)?)
            }
            Op::MoveClock(by) => {
                self.clock.advance(*by);
                Answer::ClockMoved
            }
        })
    }

    fn taken(&mut self, claimed: Vec<ClaimedJob>) -> Answer {
        let taken = claimed.into_iter().map(|ClaimedJob { lease, job }| {
            let no = number_of(&lease.id);
            self.seqs.insert(no, lease.seq);
            Taken { lease: LeaseRef { job: no, token: lease.token }, attempts: job.attempts }
        });
        Answer::Claimed(taken.collect())
    }

    fn requests(&self, requests: &[Request]) -> Vec<EnqueueJob> {
        requests.iter().map(|request| self.request(request)).collect()
    }

    fn request(&self, request: &Request) -> EnqueueJob {
        let payload = format!("{{\"n\":{}}}", request.payload);
        let holds: Vec<String> = request.holds.iter().map(|key| self.hold_key(*key)).collect();
        EnqueueJob {
            id: self.id(request.no),
            id_given: request.id_given,
            job_type: self.type_name(request.job_type),
            payload_hash: sha256_hex(payload.as_bytes()),
            payload,
            admitted: true,
            dedup: match request.rule {
                Rule::Never => Dedup::None,
                Rule::Key(key) | Rule::KeyAlways(key) => Dedup::Key(format!("{}-key-{key}", self.prefix)),
                Rule::NewestHolder => Dedup::NewestHolder(holds.clone()),
            },
            unique: if matches!(request.rule, Rule::KeyAlways(_)) { Unique::Always } else { Unique::Active },
            holds,
            priority: request.priority,
            run_at: request.run_at,
            max_attempts: request.max_attempts,
            timeout: 60_000,
            backoff: Backoff { base_ms: 1, max_ms: request.backoff_max.unsigned_abs() },
            waiting_on: request.waiting_on.map(|no| self.id(no)),
            correlation_id: None,
        }
    }

    fn effect(&self, key: u8) -> PlannedEffect {
        let op = EffectOp::Put { sha256: "0".repeat(64), size: 1, stage: Some(format!("stage-{key}")) };
        PlannedEffect { path: self.path(key), op, precondition: Precondition::Absent, observed: None }
    }

    fn lease(&self, lease: LeaseRef) -> Lease {
        Lease { id: self.id(lease.job), seq: self.seq(lease.job), token: lease.token }
    }

    fn seq(&self, no: JobNo) -> i64 {
        self.seqs.get(&no).copied().unwrap_or(0)
    }

    fn owner(&self, worker: u8) -> Owner {
        let locked_by = self.worker_name(worker);
        let lock_file = format!("{locked_by}.lock");
        Owner { locked_by, machine_id: "machine".into(), boot_id: "boot".into(), pid: 1, lock_file }
    }

    pub fn worker_name(&self, worker: u8) -> String {
        format!("{}-worker-{worker}", self.prefix)
    }

    fn type_name(&self, job_type: u8) -> String {
        format!("{}-type-{job_type}", self.prefix)
    }

    pub fn id(&self, no: JobNo) -> String {
        format!("{}-{no}", self.prefix)
    }

    pub fn path(&self, key: u8) -> String {
        format!("{}/{key}", self.prefix)
    }

    pub fn hold_key(&self, key: u8) -> String {
        if key < LANES { format!("lane:{}/{key}", self.prefix) } else { format!("path:{}", self.path(key)) }
    }
}

/// Reports what it was told to and remembers what it was shown.
struct StandIn {
    report: Report,
    shown: Mutex<Option<Vec<u8>>>,
}

impl Applier for StandIn {
    fn apply(&self, _: &Lease, effects: &[PlannedEffect], _: bool) -> ApplyReport {
        let paths = effects.iter().map(|e| e.path.rsplit('/').next().and_then(|n| n.parse().ok()).unwrap_or(u8::MAX));
        *self.shown.lock().expect("nothing panics while it is locked") = Some(paths.collect());
        let file = |inode| FileStamp { mtime: 1, inode };
        match self.report {
            Report::Applied { stamp } => ApplyReport::Applied(effects.iter().map(|_| file(stamp)).collect()),
            Report::Conflict { on_disk, stamp } => {
                let applied = (0..on_disk.min(effects.len())).map(|index| (index, file(stamp))).collect();
                ApplyReport::Conflict { failure: failure(), applied }
            }
            Report::Deferred { delay } => ApplyReport::Deferred { failure: failure(), delay },
        }
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(())
    }
}

fn failure() -> Failure {
    Failure::new("handler_error", "as the sequence wants it")
}

fn taken_back(reclaimed: &Reclaimed) -> Answer {
    Answer::Reclaimed(TakenBack {
        pending: numbers(&reclaimed.pending),
        failed: numbers(&reclaimed.failed),
        cancelled: numbers(&reclaimed.cancelled),
        unowned: numbers(&reclaimed.unowned),
    })
}

fn sha256_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
