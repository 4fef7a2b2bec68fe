//! Completed jobs beside what AWS has: for every resource, is it as the latest
//! completed job left it? Reports, never fixes, and calls nothing but `GetResource`.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::api;
use super::difference::fingerprint;
use super::handler::SyncAwsHandler;
use super::in_order::in_order;
use super::trouble::Trouble;
use super::{SyncAws, SyncedResource};
use crate::store::{CompletedJob, CompletedQuery, Store as _};
use crate::{
    Actual, Difference, Error, ErrorKind, Finding, Payload as _, Queue, ReconcileOptions, Reconciled, Result,
    sha256_hex,
};

/// Jobs in a page: short reads, so that none keeps the database's log from being cut.
const PAGE: u32 = 500;
/// How often a resource that gets other jobs while it is compared is looked at.
const LOOKS: usize = 5;
/// How many resources are read at once. Nearly all of a read is waiting, and more would only be throttled.
const READERS: usize = 8;
/// What AWS puts off is tried again after these, besides what the SDK does by itself: it is no finding.
const WAITS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];
/// After as many resources in a row nobody is there, and the rest need not be tried.
const UNANSWERED: usize = READERS;

impl SyncAwsHandler {
    /// Compares what completed jobs left at AWS with what is there, as
    /// [`Queue::reconcile`] does for files. A finding's path is `aws:`, the type and
    /// the id; its hashes are of the given properties, as they were read back
    /// when the job completed and as they are now. Several resources are read at
    /// once; they are told of in order, the one that was synced last first.
    pub fn reconcile(
        &self,
        queue: &Queue,
        options: &ReconcileOptions,
        mut tell: impl FnMut(Option<&Difference>, &Reconciled) -> bool,
    ) -> Result<Reconciled> {
        let mut sums = Reconciled::default();
        if options.job_type.as_ref().is_some_and(|job_type| job_type != SyncAws::TYPE) {
            return Ok(sums);
        }
        let comparison = Comparison { handler: self, queue, unanswered: AtomicUsize::new(0) };
        // Which resources have been seen; by hashes, so that a million of them fit.
        let mut seen = HashSet::new();
        let mut query = CompletedQuery { job_type: SyncAws::TYPE.to_owned(), limit: PAGE, ..CompletedQuery::default() };
        loop {
            let page = queue.store().completed(&query)?;
            let Some(last) = page.last() else { return Ok(sums) };
            query.before = Some(last.seq);
            let mut latest = Vec::new();
            for job in page {
                let Some(lane) = lane(&job) else { continue };
                if options.paths.as_ref().is_some_and(|wanted| !wanted(&lane)) {
                    continue;
                }
                if seen.insert(short_hash(&lane)) {
                    latest.push((job, lane));
                } else {
                    sums.superseded += 1;
                }
            }
            let go_on = in_order(
                latest,
                READERS,
                |(job, lane)| comparison.difference(job, &lane),
                |difference| {
                    let difference = difference?;
                    sums.checked += 1;
                    match &difference {
                        None => sums.ok += 1,
                        Some(difference) if difference.in_flight.is_some() => sums.in_flight += 1,
                        Some(difference) => {
                            sums.findings += 1;
                            difference.log();
                        }
                    }
                    Ok::<_, Error>(tell(difference.as_ref(), &sums))
                },
            )?;
            if !go_on {
                return Ok(sums);
            }
        }
    }
}

struct Comparison<'a> {
    handler: &'a SyncAwsHandler,
    queue: &'a Queue,
    /// How many reads came to nothing since AWS has answered the last one.
    unanswered: AtomicUsize,
}

impl Comparison<'_> {
    /// How a resource differs from what its latest completed job left, when no other
    /// job has been at it meanwhile.
    fn difference(&self, mut job: CompletedJob, lane: &str) -> Result<Option<Difference>> {
        let mut last = None;
        for _ in 0..LOOKS {
            let Some(difference) = self.compare(&job, lane)? else { return Ok(None) };
            // First who is at work, then who has ended: whoever ended before the first look is found by the second.
            let in_flight = self.queue.store().holder(lane)?;
            if in_flight.is_some() {
                return Ok(Some(Difference { in_flight, ..difference }));
            }
            let newer = CompletedQuery {
                job_type: SyncAws::TYPE.to_owned(),
                after: job.seq,
                hold: Some(lane.to_owned()),
                limit: 1,
                ..CompletedQuery::default()
            };
            match self.queue.store().completed(&newer)?.pop() {
                None => return Ok(Some(difference)),
                Some(newer) => {
                    last = Some(Difference { in_flight: Some(newer.id.clone()), ..difference });
                    job = newer;
                }
            }
        }
        // Jobs keep changing it.
        Ok(last)
    }

    fn compare(&self, completed: &CompletedJob, lane: &str) -> Result<Option<Difference>> {
        let job = match self.queue.get(&completed.id) {
            Ok(job) => job,
            // Pruned just now.
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let sync: SyncAws = job.payload()?;
        let left: Option<SyncedResource> = job.result.as_ref().and_then(|result| result.parse().ok());
        let expected = left.and_then(|left| left.properties_sha256);
        let found = |finding, actual| {
            let (path, job_id) = (lane.to_owned(), job.id.clone());
            Ok(Some(Difference { path, finding, job_id, expected: expected.clone(), actual, in_flight: None }))
        };
        let actual = match self.look(&sync) {
            Ok(actual) => actual,
            // The others would hear the same.
            Err(trouble) if trouble.is_for_all() => return Err(Error::invalid("handlers.sync_aws", trouble)),
            Err(trouble) if self.is_anybody_there(&trouble) => {
                return found(Finding::Unreadable, Actual::Other(trouble.to_string()));
            }
            Err(trouble) => return Err(Error::new(ErrorKind::Io, format!("AWS cannot be reached: {trouble}"))),
        };
        self.unanswered.store(0, Ordering::Relaxed);
        match (&sync.config, actual) {
            (None, None) => Ok(None),
            (None, Some(actual)) => found(Finding::Present, Actual::Content(fingerprint(&actual, &actual))),
            (Some(_), None) => found(Finding::Missing, Actual::Nothing),
            (Some(given), Some(actual)) => {
                let now = fingerprint(given, &actual);
                if expected.as_ref() == Some(&now) { Ok(None) } else { found(Finding::Changed, Actual::Content(now)) }
            }
        }
    }

    fn is_anybody_there(&self, trouble: &Trouble) -> bool {
        if trouble.is_of_the_network() {
            return self.unanswered.fetch_add(1, Ordering::Relaxed) + 1 < UNANSWERED;
        }
        self.unanswered.store(0, Ordering::Relaxed);
        true
    }

    /// What AWS has.
    fn look(&self, sync: &SyncAws) -> std::result::Result<Option<serde_json::Value>, Trouble> {
        for wait in WAITS {
            match self.look_once(sync) {
                Err(trouble) if trouble.passes_soon() => std::thread::sleep(wait),
                answer => return answer,
            }
        }
        self.look_once(sync)
    }

    fn look_once(&self, sync: &SyncAws) -> std::result::Result<Option<serde_json::Value>, Trouble> {
        let cloud = &self.handler.cloud;
        let client = cloud.block_on(Box::pin(cloud.client()))??;
        let seen = cloud.block_on(Box::pin(api::read(&client, &sync.resource_type, &sync.resource_id)))?;
        seen.inspect_err(|trouble| cloud.learn(trouble))
    }
}

/// The resource among a job's holds; it may also have a lane of the caller's.
fn lane(job: &CompletedJob) -> Option<String> {
    job.holds.iter().find(|hold| hold.starts_with("aws:")).cloned()
}

fn short_hash(lane: &str) -> u128 {
    u128::from_str_radix(&sha256_hex(lane.as_bytes())[..32], 16).unwrap_or(0)
}
