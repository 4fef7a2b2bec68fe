//! What is read: lists, events, the six questions; and what is pruned.

use serde::{Serialize, Serializer};

use crate::clock::{Millis, rfc3339};
use crate::job::Job;
use crate::json::JsonText;
use crate::state::{Gate, Status};

/// Which jobs to list.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::{Filter, NewJob, Status};
/// queue.enqueue(NewJob::raw("send_mail", "{}"))?;
/// let mail = Filter { job_type: Some("send_mail".to_owned()), status: Some(Status::Pending), ..Filter::default() };
/// assert_eq!(queue.list(&mail)?.len(), 1);
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only this status.
    pub status: Option<Status>,
    /// Only this type.
    pub job_type: Option<String>,
    /// Only jobs queued since.
    pub since: Option<Millis>,
    /// Only jobs before this seq: the cursor. Pass the last `seq` seen.
    pub before: Option<i64>,
    /// How many at most; 0 means 50.
    pub limit: u32,
}

/// Which completed jobs to read.
#[derive(Clone, Debug, Default)]
pub struct CompletedQuery {
    /// Their type.
    pub job_type: String,
    /// Only those before this seq: the cursor.
    pub before: Option<i64>,
    /// Only those after this seq.
    pub after: i64,
    /// Only those that had this hold.
    pub hold: Option<String>,
    /// How many at most.
    pub limit: u32,
}

/// A completed job that had holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedJob {
    /// Order of acceptance.
    pub seq: i64,
    /// The job's name.
    pub id: String,
    /// The keys it had while it was unfinished.
    pub holds: Vec<String>,
}

/// What there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// A claim would probably find something.
    pub claimable: bool,
    /// Decided jobs that nobody owns can be applied.
    pub decided: bool,
    /// When the next job falls due.
    pub next_at: Option<Millis>,
}

/// What has ended lately, and what of it to tell.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::RecentQuery;
/// let newest_failures = RecentQuery { since: i64::MAX, failures: 5 };
/// assert!(queue.recent(&newest_failures)?.failures.is_empty());
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RecentQuery {
    /// Count jobs that ended at this time or later.
    pub since: Millis,
    /// How many failed jobs to show, whenever they failed.
    pub failures: u32,
}

/// What has ended lately.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::store::Recent;
/// let Recent { ended, failures } = queue.recent(&Default::default())?;
/// assert!(ended.is_empty() && failures.is_empty());
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Recent {
    /// How many since the time asked for, by type and how they ended.
    pub ended: Vec<RecentGroup>,
    /// Failed jobs, the one that failed last first.
    pub failures: Vec<Job>,
}

/// Which finished jobs to delete.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::PruneRequest;
/// let none_so_old = PruneRequest { job_type: None, ended_before: 0, failed: true, forget: false };
/// assert_eq!(queue.prune(none_so_old)?, 0);
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PruneRequest {
    /// Only this type.
    pub job_type: Option<String>,
    /// Only those that ended before this time.
    pub ended_before: Millis,
    /// Failed ones too.
    pub failed: bool,
    /// When no such job is left: also what the disk should hold because of jobs
    /// that are gone, unless something is planned on the path or a job that is
    /// still there has been at it. Then paths are what is counted.
    pub forget: bool,
}

/// Whose events to delete: of jobs of a type that ended in this way before a time,
/// but after a place up to which it was done already.
#[derive(Clone, Debug)]
pub struct PruneEvents {
    /// Their type.
    pub job_type: String,
    /// How they ended.
    pub status: Status,
    /// Only of those that ended before this time.
    pub ended_before: Millis,
    /// Only of those behind this place.
    pub after: EndedAt,
}

/// A place among finished jobs: when one ended, and its seq.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndedAt(pub Millis, pub i64);

/// Which events to read.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::{EventQuery, NewJob};
/// let first = queue.enqueue(NewJob::raw("send_mail", "{}"))?;
/// // What comes after the last one that was read.
/// let last = queue.events(&EventQuery { limit: 100, ..EventQuery::default() })?.last().map_or(0, |event| event.id);
/// queue.cancel(&first.id)?;
/// let new = queue.events(&EventQuery { after: last, limit: 100, ..EventQuery::default() })?;
/// assert!(!new.is_empty() && new.iter().all(|event| event.id > last));
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    /// Only this job's.
    pub job_id: Option<String>,
    /// Only those after this global id.
    pub after: i64,
    /// How many at most.
    pub limit: u32,
}

/// Something that happened to a job.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// let id = queue.enqueue(jobq::NewJob::raw("send_mail", "{}"))?.id;
/// let events = queue.events(&jobq::EventQuery { limit: 1, ..Default::default() })?;
/// assert_eq!((&events[0].job_id, events[0].attempt), (&id, 0));
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// Global, growing: follow it.
    pub id: i64,
    /// The job.
    pub job_id: String,
    /// The job's own count; never resets.
    pub seq: i64,
    /// Which attempt.
    pub attempt: u32,
    /// What happened.
    #[serde(rename = "type")]
    pub event_type: String,
    /// More about it.
    pub data: Option<JsonText>,
    /// When.
    #[serde(serialize_with = "time")]
    pub at: Millis,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn time<S: Serializer>(time: &Millis, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*time))
}

/// The six questions, answered.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// queue.enqueue(jobq::NewJob::raw("send_mail", "{}"))?;
/// let stats = queue.stats()?;
/// for kind in &stats.outstanding {
///     println!("{} {} {}", kind.jobs, kind.status, kind.job_type);
/// }
/// assert_eq!((stats.outstanding.len(), stats.duplicates), (1, 0));
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stats {
    /// What work is outstanding right now?
    pub outstanding: Vec<Outstanding>,
    /// … and since when, of each type, the longest?
    pub oldest_pending: Vec<OldestPending>,
    /// … and of which types is nothing claimed for now?
    pub paused: Vec<PausedType>,
    /// What failed and why?
    pub failed: Vec<FailedGroup>,
    /// Is anything stuck?
    pub stuck: Vec<Stuck>,
    /// … and what waits on a job that failed?
    pub blocked: Vec<Blocked>,
    /// How long do jobs take?
    pub durations: Vec<DurationGroup>,
    /// … and how long do they wait before they run?
    pub latencies: Vec<LatencyGroup>,
    /// Are there duplicate jobs? (Unfinished ones sharing type and key.)
    pub duplicates: i64,
    /// What ran in the last hour?
    pub last_hour: Vec<RecentGroup>,
    /// What did jobs cost, as far as their results say so?
    pub costs: Vec<CostGroup>,
}

/// A type of which no job is claimed until a time: the handler of one was told to
/// wait.
#[derive(Clone, Debug, Serialize)]
pub struct PausedType {
    /// The type.
    #[serde(rename = "type")]
    pub job_type: String,
    /// Until when.
    pub until: String,
    /// When that was found out.
    pub since: String,
    /// The error that asked for it.
    pub reason: Option<String>,
}

/// What kept jobs of a type cost, completed and failed ones: the sum of
/// `total_cost_usd` in their results. There is none for types whose newest results
/// have no such number.
#[derive(Clone, Debug, Serialize)]
pub struct CostGroup {
    /// Their type.
    #[serde(rename = "type")]
    pub job_type: String,
    /// How many said what they cost.
    pub jobs: i64,
    /// There may be more: the newest are looked at, up to a bound.
    pub at_least: bool,
    /// The sum.
    pub total_cost_usd: f64,
}

/// Unfinished jobs of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Outstanding {
    /// Their type.
    #[serde(rename = "type")]
    pub job_type: String,
    /// Their status.
    pub status: Status,
    /// Why they are not running.
    pub gate: Option<Gate>,
    /// How many.
    pub jobs: i64,
    /// When the oldest was queued.
    pub oldest: Option<String>,
    /// Which one that is.
    pub oldest_id: String,
    /// How long ago that was, in milliseconds.
    pub age_ms: i64,
}

/// The pending job of a type that was queued first.
#[derive(Clone, Debug, Serialize)]
pub struct OldestPending {
    /// Its type.
    #[serde(rename = "type")]
    pub job_type: String,
    /// The job.
    pub id: String,
    /// Why it is not running.
    pub gate: Option<Gate>,
    /// When it was queued.
    pub created_at: String,
    /// How long ago that was, in milliseconds.
    pub age_ms: i64,
}

/// Failed jobs of one type.
#[derive(Clone, Debug, Serialize)]
pub struct FailedGroup {
    /// Their type.
    #[serde(rename = "type")]
    pub job_type: String,
    /// How many.
    pub jobs: i64,
    /// There may be more: counting stops somewhere.
    pub at_least: bool,
    /// The newest one.
    pub newest: String,
    /// Why that one failed.
    pub last_error: Option<String>,
}

/// A claimed job without signs of life.
#[derive(Clone, Debug, Serialize)]
pub struct Stuck {
    /// The job.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub job_type: String,
    /// Who has it.
    pub locked_by: Option<String>,
    /// When it was last heard of.
    pub last_sign_of_life: Option<String>,
}

impl Stuck {
    pub(crate) fn of(job: Job) -> Self {
        let last_sign_of_life = job.heartbeat_at.or(job.locked_at).map(rfc3339);
        Self { id: job.id, job_type: job.job_type, locked_by: job.locked_by, last_sign_of_life }
    }
}

/// A failed job that others wait on: nothing happens to them until it is retried
/// or cancelled.
#[derive(Clone, Debug, Serialize)]
pub struct Blocked {
    /// The failed job.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub job_type: String,
    /// Why it failed.
    pub last_error: Option<String>,
    /// How many jobs wait on it.
    pub jobs: i64,
}

/// How long completed jobs of one type took, from their last claim to their end.
/// The newest 2,000 of a type are looked at; fewer of each when there are more
/// than ten types.
#[derive(Clone, Debug, Serialize)]
pub struct DurationGroup {
    /// Their type.
    #[serde(rename = "type")]
    pub job_type: String,
    /// How many were looked at.
    pub jobs: i64,
    /// Shortest, in milliseconds.
    pub min_ms: i64,
    /// Mean, in milliseconds.
    pub avg_ms: i64,
    /// Half of them took no longer, in milliseconds.
    pub p50_ms: i64,
    /// 95 of 100 took no longer, in milliseconds.
    pub p95_ms: i64,
    /// Longest, in milliseconds.
    pub max_ms: i64,
}

/// How long the same jobs had waited: from when they could have run (queued, put
/// off to, or retried at) to the claim of the attempt that ran. Waiting for other
/// jobs is part of it. Jobs that needed more than one attempt are left out.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyGroup {
    /// Their type.
    #[serde(rename = "type")]
    pub job_type: String,
    /// How many were looked at.
    pub jobs: i64,
    /// Half of them waited no longer, in milliseconds.
    pub p50_ms: i64,
    /// 95 of 100 waited no longer, in milliseconds.
    pub p95_ms: i64,
    /// Longest, in milliseconds.
    pub max_ms: i64,
}

/// Jobs of one type that ended in one way within a time.
#[derive(Clone, Debug, Serialize)]
pub struct RecentGroup {
    /// Their type.
    #[serde(rename = "type")]
    pub job_type: String,
    /// How they ended.
    pub status: Status,
    /// How many.
    pub jobs: i64,
    /// There may be more: counting stops somewhere.
    pub at_least: bool,
}
