//! What is to be seen at one moment, read from the queue. Text of jobs is made
//! printable here; ids are kept as they are, to be asked for.

use std::collections::BTreeMap;

use jobq::clock::Millis;
use jobq::store::{Progress, RecentGroup};
use jobq::{Filter, Gate, Job, Queue, RecentQuery, Result, Stats, Status, printable};

use crate::cli::gone::Gone;
use crate::cli::ids::Ids;
use crate::cli::list::why;
use crate::cli::locate::now;
use crate::cli::output::{heard, while_paused};

/// Rows of each list; no screen shows more.
const ROWS: u32 = 100;
/// What the rate is taken over, in milliseconds.
const TEN_SECONDS: Millis = 10_000;
const MINUTE: Millis = 60_000;
/// Characters of an error or a message that can be of use in one line.
const NOTE: usize = 300;

/// A number that may be more: counting stops somewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) jobs: i64,
    pub(super) at_least: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) at: Millis,
    pub(super) types: Vec<TypeCounts>,
    pub(super) running: Vec<Row>,
    pub(super) failed: Vec<Row>,
    pub(super) pending: Vec<Row>,
    /// Jobs that completed, failed or were cancelled.
    pub(super) ended_in_ten_seconds: Count,
    pub(super) ended_in_a_minute: Count,
}

/// One type's jobs, by status.
#[derive(Clone, Debug, Default)]
pub(super) struct TypeCounts {
    pub(super) name: String,
    pub(super) pending: i64,
    /// Those of them that a worker could take now.
    pub(super) ready: i64,
    pub(super) claimed: i64,
    pub(super) failed: Count,
    /// In the last hour; how many there ever were would have to be counted one by one.
    pub(super) completed: Count,
    /// In the last hour.
    pub(super) cancelled: Count,
    pub(super) p50: Option<Millis>,
    pub(super) p95: Option<Millis>,
    pub(super) paused: Option<String>,
}

/// One job in a list.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: String,
    /// As much of it as names the job.
    pub(super) short_id: String,
    pub(super) job_type: String,
    pub(super) status: Status,
    pub(super) tries: String,
    /// Running since, failed at, or queued at.
    pub(super) since: Millis,
    pub(super) percent: Option<u8>,
    pub(super) note: String,
}

impl Snapshot {
    pub(super) fn of(queue: &Queue, ids: &mut Ids<'_>) -> Result<Self> {
        let at = now();
        let (stats, gone) = (queue.stats()?, Gone::from(queue)?);
        let list = |status| queue.list(&Filter { status: Some(status), limit: ROWS, ..Filter::default() });
        let in_ten_seconds = queue.recent(&RecentQuery { since: at - TEN_SECONDS, failures: 0 })?;
        let recent = queue.recent(&RecentQuery { since: at - MINUTE, failures: ROWS })?;
        Ok(Self {
            at,
            running: short(list(Status::Claimed)?.iter().map(|job| running(job, &stats, &gone)), ids),
            failed: short(recent.failures.iter().map(|job| failed(job, &stats)), ids),
            pending: pending(&list(Status::Pending)?, at, ids),
            types: types(&stats),
            ended_in_ten_seconds: sum(&in_ten_seconds.ended),
            ended_in_a_minute: sum(&recent.ended),
        })
    }

    pub(super) fn total(&self, of: impl Fn(&TypeCounts) -> Count) -> Count {
        self.types.iter().map(of).fold(Count::default(), Count::and)
    }
}

impl Count {
    pub(super) fn exactly(jobs: i64) -> Self {
        Self { jobs, at_least: false }
    }

    fn and(self, other: Self) -> Self {
        Self { jobs: self.jobs.saturating_add(other.jobs), at_least: self.at_least || other.at_least }
    }
}

fn sum(groups: &[RecentGroup]) -> Count {
    let counts = groups.iter().map(|group| Count { jobs: group.jobs, at_least: group.at_least });
    counts.fold(Count::default(), Count::and)
}

/// Types with work or failures first, each kind by name: rows keep their places.
fn types(stats: &Stats) -> Vec<TypeCounts> {
    let mut types = BTreeMap::<&str, TypeCounts>::new();
    for group in &stats.outstanding {
        let counts = types.entry(&group.job_type).or_default();
        match group.status {
            Status::Claimed => counts.claimed += group.jobs,
            _ => counts.pending += group.jobs,
        }
        counts.ready += if group.gate == Some(Gate::Ready) { group.jobs } else { 0 };
    }
    for group in &stats.failed {
        types.entry(&group.job_type).or_default().failed = Count { jobs: group.jobs, at_least: group.at_least };
    }
    for group in &stats.last_hour {
        let counts = types.entry(&group.job_type).or_default();
        let count = Count { jobs: group.jobs, at_least: group.at_least };
        match group.status {
            Status::Completed => counts.completed = count,
            Status::Cancelled => counts.cancelled = count,
            _ => {}
        }
    }
    for group in &stats.durations {
        let counts = types.entry(&group.job_type).or_default();
        (counts.p50, counts.p95) = (Some(group.p50_ms), Some(group.p95_ms));
    }
    for pause in &stats.paused {
        let reason = pause.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        types.entry(&pause.job_type).or_default().paused = Some(note(&(while_paused(&pause.until) + &reason)));
    }
    let named = |(name, counts): (&str, TypeCounts)| TypeCounts { name: printable(name), ..counts };
    let mut types: Vec<_> = types.into_iter().map(named).collect();
    types.sort_by_key(|counts| counts.pending + counts.claimed + counts.failed.jobs == 0);
    types
}

impl Row {
    /// A job outside of the lists.
    pub(super) fn of(job: &Job) -> Self {
        row(job, None, "")
    }
}

fn row(job: &Job, since: Option<Millis>, text: &str) -> Row {
    Row {
        id: job.id.clone(),
        short_id: printable(&job.id),
        job_type: printable(&job.job_type),
        status: job.status,
        tries: format!("{}/{}", job.attempts, job.max_attempts),
        since: since.unwrap_or(job.created_at),
        percent: None,
        note: note(text),
    }
}

fn short(rows: impl Iterator<Item = Row>, ids: &mut Ids<'_>) -> Vec<Row> {
    rows.map(|row| Row { short_id: printable(&ids.short(&row.id)), ..row }).collect()
}

fn running(job: &Job, stats: &Stats, gone: &Gone) -> Row {
    let progress = job.progress.as_ref().and_then(|text| serde_json::from_str::<Progress>(text.as_str()).ok());
    let (percent, message) = progress.map_or((None, None), |progress| (Some(progress.percent), progress.message));
    let stuck = stats.stuck.iter().find(|stuck| stuck.id == job.id);
    let text = match (gone.why(job), stuck, &job.outcome) {
        (Some(why), ..) => why.to_owned(),
        (_, Some(stuck), _) => format!("last heard of {}: see `jobq doctor`", heard(stuck)),
        _ if job.cancel_requested => "asked to stop".to_owned(),
        (.., Some(_)) => "decided, being applied".to_owned(),
        _ => message.unwrap_or_default(),
    };
    Row { percent, ..row(job, job.claimed_at, &text) }
}

fn failed(job: &Job, stats: &Stats) -> Row {
    let error = job.last_error.as_deref().unwrap_or("no reason was kept");
    let text = match stats.blocked.iter().find(|blocked| blocked.id == job.id) {
        Some(blocked) if blocked.jobs == 1 => format!("1 job waits on it; {error}"),
        Some(blocked) => format!("{} jobs wait on it; {error}", blocked.jobs),
        None => error.to_owned(),
    };
    row(job, job.completed_at, &text)
}

fn pending(jobs: &[Job], now: Millis, ids: &mut Ids<'_>) -> Vec<Row> {
    let why: Vec<Option<String>> = jobs.iter().map(|job| why(job, now, ids)).collect();
    let rows = jobs.iter().zip(&why);
    short(rows.map(|(job, why)| row(job, Some(job.created_at), why.as_deref().unwrap_or("ready"))), ids)
}

fn note(text: &str) -> String {
    printable(&text.chars().take(NOTE).collect::<String>())
}
