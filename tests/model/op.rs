//! What a sequence is made of: operations, in terms of small numbers so that a
//! failing sequence can be read, replayed and shortened, and their answers, in
//! terms that the reference and the store can both give.

use jobq::store::{CancelOutcome, Ending, Pulse, Started};
use jobq::{ErrorKind, Status};

/// Number of a job within its sequence; part of its id.
pub type JobNo = u32;

pub const TYPES: u8 = 3;
pub const WORKERS: u8 = 3;
pub const DEDUP_KEYS: u8 = 3;
/// Hold keys: lanes first, then paths, which a decision may also take.
pub const LANES: u8 = 2;
pub const HOLD_KEYS: u8 = 4;

/// A claim, by the job and the token it was made with. May be out of date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseRef {
    pub job: JobNo,
    pub token: i64,
}

/// What makes a requested job a duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Never,
    Key(u8),
    /// The key, also against finished jobs.
    KeyAlways(u8),
    /// The newest job on the requested holds, if it is the same.
    NewestHolder,
}

/// A job to be queued.
#[derive(Clone, Debug)]
pub struct Request {
    pub no: JobNo,
    pub id_given: bool,
    pub job_type: u8,
    pub payload: u8,
    pub rule: Rule,
    pub holds: Vec<u8>,
    pub priority: i32,
    pub run_at: Option<i64>,
    pub max_attempts: u32,
    pub backoff_max: i64,
    pub waiting_on: Option<JobNo>,
}

/// What the stand-in for the file system reports.
#[derive(Clone, Copy, Debug)]
pub enum Report {
    /// `stamp` tells this application from all others.
    Applied {
        stamp: i64,
    },
    /// The first `on_disk` effects are on disk nevertheless.
    Conflict {
        on_disk: usize,
        stamp: i64,
    },
    Deferred {
        delay: i64,
    },
}

#[derive(Clone, Debug)]
pub enum Op {
    Enqueue(Vec<Request>),
    /// `limits`: how many of a type may run at once.
    Claim {
        worker: u8,
        types: Vec<u8>,
        limit: u32,
        limits: Vec<(u8, u32)>,
    },
    TakeOver {
        worker: u8,
        limit: u32,
    },
    Heartbeat {
        lease: LeaseRef,
        progress: bool,
    },
    Complete(Vec<(LeaseRef, Vec<Request>)>),
    Decide {
        lease: LeaseRef,
        paths: Vec<u8>,
        follow_ups: Vec<Request>,
    },
    Apply {
        lease: LeaseRef,
        report: Report,
    },
    /// `pause`: for how long the job's type is paused.
    Reschedule {
        lease: LeaseRef,
        delay: i64,
        pause: Option<i64>,
    },
    Fail(LeaseRef),
    Release(LeaseRef),
    AcknowledgeCancel(LeaseRef),
    Cancel(JobNo),
    Retry(JobNo),
    ReclaimDead {
        worker: u8,
        started: Option<Vec<LeaseRef>>,
    },
    ReclaimLapsed {
        lease: LeaseRef,
        heartbeat: i64,
        started: Started,
    },
    Leases,
    Prune {
        ended_before: i64,
        failed: bool,
        forget: bool,
    },
    MoveClock(i64),
}

/// The job that stands for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub job: JobNo,
    pub status: Status,
    pub inserted: bool,
    pub same_payload: bool,
}

/// A job that was handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub lease: LeaseRef,
    pub attempts: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    Completed,
    Conflict,
    Deferred,
}

/// Jobs by what a reclaim did to them, each list sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenBack {
    pub pending: Vec<JobNo>,
    pub failed: Vec<JobNo>,
    pub cancelled: Vec<JobNo>,
    pub unowned: Vec<JobNo>,
}

/// A lease that someone has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    pub lease: LeaseRef,
    pub heartbeat: i64,
    pub worker: u8,
    pub owner_on_record: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    Enqueued(Vec<Accepted>),
    /// In the order they were handed out.
    Claimed(Vec<Taken>),
    Pulse(Pulse),
    Ending(Ending),
    Endings(Vec<Result<Ending, ErrorKind>>),
    /// `shown` is what the applier got to see; `None` if it was not called.
    Application {
        outcome: Applied,
        shown: Option<Vec<u8>>,
    },
    Cancellation {
        outcome: CancelOutcome,
        waiters: Vec<JobNo>,
    },
    Retried(Status),
    Reclaimed(TakenBack),
    Leases(Vec<Leased>),
    Pruned(u64),
    ClockMoved,
    Refused(ErrorKind),
}

/// The number at the end of a name.
pub fn number_of(name: &str) -> u32 {
    name.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(u32::MAX)
}

/// The numbers of these jobs, sorted.
pub fn numbers(ids: &[String]) -> Vec<JobNo> {
    let mut numbers: Vec<JobNo> = ids.iter().map(|id| number_of(id)).collect();
    numbers.sort_unstable();
    numbers
}
