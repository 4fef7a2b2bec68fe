//! What is queued, and what is not, as a test asserts it.

use std::fmt::Write as _;

use super::{TestQueue, expect};
use crate::clock::{Millis, rfc3339};
use crate::error::printable;
use crate::job::Job;
use crate::json::same_meaning;
use crate::payload::Payload;
use crate::queue::Queue;
use crate::state::Status;
use crate::store::Filter;

/// So many jobs are shown by an assertion that fails, and so much of each payload.
const MOST_SHOWN: usize = 20;
const LONGEST_SHOWN: usize = 200;

impl TestQueue {
    /// The payloads of this type that are queued and have not run, as they were
    /// queued. Jobs with a delay, waiting for another, or between two attempts are
    /// among them.
    ///
    /// ```
    /// # use jobq::{Registry, handlers::CreateFile, testing::TestQueue};
    /// let queue = TestQueue::new(Registry::builtin());
    /// queue.enqueue(CreateFile::text("a.txt", "a"))?;
    /// assert_eq!(queue.all_enqueued::<CreateFile>()[0].path, "a.txt");
    /// # Ok::<(), jobq::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the queue, or a payload as this type, cannot be read.
    #[must_use]
    #[track_caller]
    pub fn all_enqueued<P: Payload>(&self) -> Vec<P> {
        let mut payloads = Vec::new();
        for job in self.pending::<P>() {
            payloads.push(expect("a payload of its type", job.payload()));
        }
        payloads
    }

    /// There is a job with this payload, compared as JSON, that has not run.
    ///
    /// ```
    /// # use jobq::{Registry, handlers::CreateFile, testing::TestQueue};
    /// let queue = TestQueue::new(Registry::builtin());
    /// queue.enqueue(CreateFile::text("a.txt", "a"))?;
    /// let job = queue.assert_enqueued(&CreateFile::text("a.txt", "a"));
    /// assert_eq!(job.priority, 0);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there is none, with what is queued instead, and why that has not run.
    #[track_caller]
    pub fn assert_enqueued<P: Payload>(&self, payload: &P) -> Job {
        let wanted = expect("a payload that is JSON", serde_json::to_string(payload));
        let found = self.pending::<P>().into_iter().find(|job| same_meaning(job.payload.as_str(), &wanted));
        let Some(job) = found else {
            panic!("no {} with {} is queued{}", P::TYPE, shown(&wanted), self.instead(P::TYPE));
        };
        job
    }

    /// There is a job of this type that has not run and whose payload is so.
    ///
    /// ```
    /// # use jobq::{Registry, handlers::CreateFile, testing::TestQueue};
    /// let queue = TestQueue::new(Registry::builtin());
    /// queue.enqueue(CreateFile::text("notes/a.txt", "a"))?;
    /// queue.assert_enqueued_where(|file: &CreateFile| file.path.starts_with("notes/"));
    /// # Ok::<(), jobq::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there is none, with what is queued instead.
    #[track_caller]
    pub fn assert_enqueued_where<P: Payload>(&self, is_so: impl Fn(&P) -> bool) -> Job {
        let Some(job) = self.first(is_so) else {
            panic!("no {} like that is queued{}", P::TYPE, self.instead(P::TYPE));
        };
        job
    }

    /// No job of this type waits to run.
    ///
    /// ```
    /// # use jobq::{Registry, handlers::{CreateFile, DeleteFile}, testing::TestQueue};
    /// let queue = TestQueue::new(Registry::builtin());
    /// queue.enqueue(CreateFile::text("a.txt", "a"))?;
    /// queue.refute_enqueued::<DeleteFile>();
    /// # Ok::<(), jobq::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there is one, with all that is queued.
    #[track_caller]
    pub fn refute_enqueued<P: Payload>(&self) {
        self.refute_enqueued_where(|_: &P| true);
    }

    /// No job of this type whose payload is so waits to run.
    ///
    /// ```
    /// # use jobq::{Registry, handlers::CreateFile, testing::TestQueue};
    /// let queue = TestQueue::new(Registry::builtin());
    /// queue.enqueue(CreateFile::text("notes/a.txt", "a"))?;
    /// queue.refute_enqueued_where(|file: &CreateFile| file.path.starts_with("secret/"));
    /// # Ok::<(), jobq::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there is one, with all that is queued.
    #[track_caller]
    pub fn refute_enqueued_where<P: Payload>(&self, is_so: impl Fn(&P) -> bool) {
        if let Some(job) = self.first(is_so) {
            panic!("a {} with {} is queued{}", P::TYPE, shown(job.payload.as_str()), self.instead(P::TYPE));
        }
    }

    #[track_caller]
    fn first<P: Payload>(&self, is_so: impl Fn(&P) -> bool) -> Option<Job> {
        for job in self.pending::<P>() {
            // Not in a closure, which would be taken for the caller.
            let payload = expect("a payload of its type", job.payload());
            if is_so(&payload) {
                return Some(job);
            }
        }
        None
    }

    #[track_caller]
    fn pending<P: Payload>(&self) -> Vec<Job> {
        let (status, job_type) = (Some(Status::Pending), Some(P::TYPE.to_owned()));
        jobs(self, &Filter { status, job_type, ..Filter::default() })
    }

    /// The end of a message: everything that is there, whatever has become of it. What could be meant comes first: jobs of
    /// this type that are pending, others that are, and then what is newest.
    #[track_caller]
    fn instead(&self, job_type: &str) -> String {
        let jobs = jobs(self, &Filter::default());
        if jobs.is_empty() {
            return "; the queue is empty".to_owned();
        }
        let (mut pending, ended): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| job.status == Status::Pending);
        pending.sort_by_key(|job| job.job_type != job_type);
        let jobs = pending.iter().chain(ended.iter().rev());
        let mut text = String::from("; there are:");
        for job in jobs.clone().take(MOST_SHOWN) {
            let (state, payload) = (self.state(job), shown(job.payload.as_str()));
            let _ = write!(text, "\n  {} [{state}] {payload}", job.job_type);
        }
        let more = jobs.skip(MOST_SHOWN).count();
        if more > 0 {
            let _ = write!(text, "\n  and {more} more");
        }
        text
    }

    /// Its status and, if it is pending, what keeps it from running.
    fn state(&self, job: &Job) -> String {
        let mut state = job.status.to_string();
        if job.status != Status::Pending {
            return state;
        }
        match self.registry.get(&job.job_type) {
            None => {
                state.push_str(", no handler is registered for it");
                return state;
            }
            Some(handler) if handler.runs_programs() => {
                state.push_str(", its type runs programs, which `run_all` does not");
                return state;
            }
            Some(_) => {}
        }
        let now = self.now();
        if let Some(at) = job.run_at.filter(|at| *at > now) {
            let _ = write!(state, ", due in {}", wait(at.saturating_sub(now)));
        }
        // When it is due has just been said, and by a clock that says more to a test.
        let is_its_time = |why: &str| job.run_at.is_some_and(|at| why.ends_with(&rfc3339(at)));
        if let Some(why) = job.blocked.as_deref().filter(|why| !is_its_time(why)) {
            let _ = write!(state, ", {}", printable(why));
        }
        state
    }
}

/// All of them, as they were queued.
#[track_caller]
fn jobs(queue: &Queue, filter: &Filter) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    loop {
        let before = jobs.last().map(|job| job.seq);
        let page = expect("the queue to be read", queue.list(&Filter { before, limit: 1_000, ..filter.clone() }));
        if page.is_empty() {
            jobs.reverse();
            return jobs;
        }
        jobs.extend(page);
    }
}

fn wait(millis: Millis) -> humantime::FormattedDuration {
    humantime::format_duration(std::time::Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
}

fn shown(payload: &str) -> String {
    let mut text: String = payload.chars().take(LONGEST_SHOWN).collect();
    if text.len() < payload.len() {
        text.push('…');
    }
    printable(&text)
}
