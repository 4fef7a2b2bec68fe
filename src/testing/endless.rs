//! Telling jobs that never end from many that do.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::Result;
use crate::queue::Queue;
use crate::store::Filter;
use crate::worker::AttemptReport;

/// Generations of jobs, each queued while the one before ran, that are followed.
pub(super) const GENERATIONS: usize = 1_000;
/// Of one job at one time of the queue's clock. Whoever wants few generations has not said that nothing may be repeated.
const ATTEMPTS: usize = 1_000;
/// Jobs that become more with every generation get nowhere near so many of those.
const ATTEMPTS_PER_GENERATION: usize = 100;

/// Looks on while jobs run one by one. So what is new when the next one begins was queued
/// while the one before ran: by its handler, its outcome or its hook, unless the test has a thread
/// that does. It is a generation younger. A thousand jobs that one has queued are one generation.
pub(super) struct Ancestry {
    queue: Arc<Queue>,
    most: usize,
    attempts: usize,
    times: HashMap<String, usize>,
    /// The generation of all jobs from after the last entry's to this seq.
    generations: Vec<(i64, usize)>,
    /// The job which ran last, and its generation.
    last: (String, usize),
}

impl Ancestry {
    /// What is there now was queued by the test.
    pub(super) fn of(queue: Arc<Queue>, most: usize) -> Result<Self> {
        let generations = vec![(newest(&queue)?, 0)];
        Ok(Self { queue, most, attempts: 0, times: HashMap::new(), generations, last: (String::new(), 0) })
    }

    /// An attempt begins: whatever is new was queued during the one before.
    pub(super) fn begins(&mut self, job_id: &str) -> Result<()> {
        let (seq, newest) = (self.queue.get(job_id)?.seq, newest(&self.queue)?);
        if self.generations.last().is_none_or(|(to, _)| *to < newest) {
            self.generations.push((newest, self.last.1 + 1));
        }
        let found = self.generations.get(self.generations.partition_point(|(to, _)| *to < seq));
        self.last = (job_id.to_owned(), found.map_or(0, |(_, generation)| *generation));
        Ok(())
    }

    /// It has ended. Says so if there will be no end of them.
    pub(super) fn ended(&mut self, attempt: &AttemptReport) -> Result<Option<String>> {
        let AttemptReport { job_id, job_type, .. } = attempt;
        // One that was not fit to be begun.
        if self.last.0 != *job_id {
            self.begins(job_id)?;
        }
        let generation = self.last.1;
        // What the test has queued itself may be as much as it likes.
        self.attempts += usize::from(generation > 0);
        let times = self.times.entry(job_id.clone()).or_default();
        *times += 1;
        let (times, most, often) = (*times, self.most, self.most.max(ATTEMPTS));
        let advice = "if that is meant, allow more with `TestQueue::generations`";
        if generation > most {
            return Ok(Some(format!(
                "`{job_type}` {job_id} came after {most} generations of jobs, each queued while the one before ran; see \
                 what queues `{job_type}`, or {advice}"
            )));
        }
        if times > often {
            return Ok(Some(format!(
                "`{job_type}` {job_id} has run {often} times and once more at the same time of the queue's clock; see why it \
                 is due again at once, or {advice}"
            )));
        }
        let enough = most.saturating_mul(ATTEMPTS_PER_GENERATION);
        Ok((self.attempts > enough).then(|| {
            format!(
                "{enough} attempts, in generation {generation} of jobs that queue others, and still jobs to run; the last was \
                 `{job_type}` {job_id}. See whether they become ever more, or {advice}"
            )
        }))
    }
}

/// The seq of the job that was queued last.
fn newest(queue: &Queue) -> Result<i64> {
    let jobs = queue.list(&Filter { limit: 1, ..Filter::default() })?;
    Ok(jobs.first().map_or(0, |job| job.seq))
}
