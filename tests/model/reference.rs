//! The reference: what the design says, with plain vectors and no cleverness.
//! Why a job cannot run is computed from scratch each time; the store, which
//! keeps it up to date step by step, has to come to the same.

use jobq::{ErrorKind, Gate, Status};

use crate::op::{Answer, HOLD_KEYS, JobNo, LeaseRef, Op, Request, TYPES};

/// A week: what is longer is cut.
pub const LONGEST_PAUSE: i64 = 7 * 86_400_000;

/// When a type is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    pub since: i64,
    pub until: i64,
}

pub type Outcome<T> = Result<T, ErrorKind>;

#[derive(Clone, Debug)]
pub struct Effect {
    pub path: u8,
    pub applied: bool,
}

#[derive(Clone, Debug)]
pub struct Decided {
    pub effects: Vec<Effect>,
    pub follow_ups: Vec<Request>,
}

#[derive(Clone, Debug)]
pub struct RefJob {
    pub no: JobNo,
    pub job_type: u8,
    pub payload: u8,
    pub key: Option<u8>,
    /// Declared, and from decide on also the paths it will touch.
    pub holds: Vec<u8>,
    pub priority: i32,
    pub run_at: Option<i64>,
    /// Its time has come. Stays so when the clock is set back.
    pub due: bool,
    /// The time it waits for was set by a reschedule, not by the caller.
    pub backing_off: bool,
    pub backoff_max: i64,
    pub attempts: u32,
    pub max_attempts: u32,
    pub waiting_on: Option<JobNo>,
    pub status: Status,
    pub token: i64,
    pub heartbeat: i64,
    pub owner: Option<u8>,
    pub cancel_requested: bool,
    pub decided: Option<Decided>,
    /// How long its apply was put off the last time.
    pub put_off: i64,
    pub ended_at: Option<i64>,
    /// When it ended, as a moment of this reference, whatever the clock says.
    pub ended_moment: u64,
    /// What was told about it, with the attempt.
    pub events: Vec<(&'static str, u32)>,
    /// Place in the order of acceptance.
    pub order: u64,
}

impl RefJob {
    pub fn unfinished(&self) -> bool {
        matches!(self.status, Status::Pending | Status::Claimed)
    }

    pub fn lease(&self) -> LeaseRef {
        LeaseRef { job: self.no, token: self.token }
    }

    pub fn tell(&mut self, event: &'static str) {
        self.events.push((event, self.attempts));
    }
}

/// A stretch of time in which a job was at work on keys.
#[derive(Clone, Debug)]
pub struct Run {
    pub job: JobNo,
    pub order: u64,
    pub keys: Vec<u8>,
    pub ended_moment: Option<u64>,
    /// False when the claim was given back: as if it had never started.
    pub counts: bool,
}

#[derive(Clone, Debug)]
pub struct Reference {
    pub now: i64,
    pub jobs: Vec<RefJob>,
    pub runs: Vec<Run>,
    /// Per hold key (only paths are used): who wrote it last.
    pub disk: Vec<Option<i64>>,
    pub owners_on_record: Vec<u8>,
    /// Per type: until when it is paused, as far as anyone remembers.
    pub pauses: Vec<Option<Pause>>,
    pub moment: u64,
    pub accepted: u64,
}

impl Reference {
    pub fn new(now: i64) -> Self {
        Self {
            now,
            jobs: Vec::new(),
            runs: Vec::new(),
            disk: vec![None; usize::from(HOLD_KEYS)],
            owners_on_record: Vec::new(),
            pauses: vec![None; usize::from(TYPES)],
            moment: 0,
            accepted: 0,
        }
    }

    pub fn perform(&mut self, op: &Op) -> Answer {
        let answer = match op {
            Op::Enqueue(requests) => self.enqueue(requests).map(Answer::Enqueued),
            Op::Claim { worker, types, limit, limits } => {
                Ok(Answer::Claimed(self.claim(*worker, types, *limit, limits)))
            }
            Op::TakeOver { worker, limit } => Ok(Answer::Claimed(self.take_over(*worker, *limit))),
            Op::Heartbeat { lease, progress } => Ok(Answer::Pulse(self.heartbeat(*lease, *progress))),
            Op::Complete(completions) => Ok(Answer::Endings(
                completions.iter().map(|(lease, follow_ups)| self.complete(*lease, follow_ups)).collect(),
            )),
            Op::Decide { lease, paths, follow_ups } => self.decide(*lease, paths, follow_ups).map(Answer::Ending),
            Op::Apply { lease, report } => self.apply(*lease, *report),
            Op::Reschedule { lease, delay, pause } => self.reschedule(*lease, *delay, *pause).map(Answer::Ending),
            Op::Fail(lease) => self.fail(*lease).map(Answer::Ending),
            Op::Release(lease) => self.release(*lease).map(Answer::Ending),
            Op::AcknowledgeCancel(lease) => self.acknowledge_cancel(*lease).map(Answer::Ending),
            Op::Cancel(no) => self.cancel(*no),
            Op::Retry(no) => self.retry(*no).map(Answer::Retried),
            Op::ReclaimDead { worker, started } => {
                Ok(Answer::Reclaimed(self.reclaim_dead(*worker, started.as_deref())))
            }
            Op::ReclaimLapsed { lease, heartbeat, started } => {
                Ok(Answer::Reclaimed(self.reclaim_lapsed(*lease, *heartbeat, *started)))
            }
            Op::Leases => Ok(Answer::Leases(self.leases())),
            Op::Prune { ended_before, failed, .. } => Ok(Answer::Pruned(self.prune(*ended_before, *failed))),
            Op::MoveClock(by) => {
                self.now += by;
                Ok(Answer::ClockMoved)
            }
        };
        answer.unwrap_or_else(Answer::Refused)
    }

    pub fn position(&self, no: JobNo) -> Option<usize> {
        self.jobs.iter().position(|job| job.no == no)
    }

    pub fn job(&self, no: JobNo) -> Option<&RefJob> {
        self.jobs.iter().find(|job| job.no == no)
    }

    /// Why a pending job is not running.
    pub fn gate(&self, job: &RefJob) -> Option<Gate> {
        if job.status != Status::Pending {
            return None;
        }
        Some(if job.waiting_on.is_some() {
            Gate::Waiting
        } else if !job.due {
            if job.backing_off { Gate::Backoff } else { Gate::Delayed }
        } else if self.held_by(job).is_some() {
            Gate::Held
        } else {
            Gate::Ready
        })
    }

    /// An unfinished job that comes first on one of this one's keys.
    pub fn held_by(&self, job: &RefJob) -> Option<&RefJob> {
        self.jobs.iter().find(|other| {
            other.no != job.no
                && other.unfinished()
                && (other.order < job.order || other.status == Status::Claimed)
                && other.holds.iter().any(|key| job.holds.contains(key))
        })
    }
}
