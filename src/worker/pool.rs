//! What this worker has claimed: jobs that wait for a thread, jobs that run,
//! and jobs whose end is not durable yet.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::wake::Bell;
use crate::handler::Run;
use crate::job::Job;

/// How long a suspect waits for the others to end before it runs beside them.
const ISOLATE: Duration = Duration::from_secs(1);

/// Payloads that may lie claimed ahead: memory, when they are large. A claim
/// that is made with half of it left may bring as much again.
const MOST_BYTES_AHEAD: usize = 64 << 20;

/// Ends that are not durable yet; with more of them nothing new is claimed.
const MOST_UNSETTLED: usize = 4096;
/// The same in bytes, of payloads and what they came to.
const MOST_BYTES_UNSETTLED: usize = 128 << 20;

/// A claimed job that has not started.
pub(super) struct Claim {
    pub(super) run: Arc<Run>,
    pub(super) job: Job,
    pub(super) since: Instant,
}

impl Claim {
    /// On its last attempt, and it lost its worker before: perhaps it is what
    /// ends workers. It runs alone, so that nobody else loses an attempt to it.
    fn is_suspect(&self) -> bool {
        self.job.attempts > 1
            && self.job.attempts >= self.job.max_attempts
            && self.job.last_error.as_deref().is_some_and(|error| error.starts_with("worker_lost"))
    }
}

/// A job that runs.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) run: Arc<Run>,
    pub(super) job: Arc<Job>,
    pub(super) slot: usize,
    pub(super) started: Instant,
}

impl Running {
    /// When it has taken as long as it may.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let timeout = self.job.timeout.and_then(|millis| u64::try_from(millis).ok())?;
        self.started.checked_add(Duration::from_millis(timeout))
    }
}

pub(super) struct Pool {
    state: Mutex<State>,
    work: Condvar,
    bell: Arc<Bell>,
    lease: Duration,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Claim>,
    running: Vec<Running>,
    /// Everything claimed whose end is not durable, by seq and token.
    held: HashMap<(i64, i64), Arc<Run>>,
    /// Those of them whose end nothing waits for any more, because it cannot be recorded.
    aside: HashSet<(i64, i64)>,
    /// What the ends among those weigh.
    ended_bytes: usize,
    idle_threads: usize,
    free_slots: Vec<usize>,
    slots: usize,
    /// The slot of a suspect that runs; nobody starts beside it.
    alone: Option<usize>,
    /// Ring when no more than this many wait.
    refill_at: usize,
    closed: bool,
}

/// How things stand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub(super) idle_threads: usize,
    pub(super) waiting: usize,
    /// The payloads of those that wait, in bytes.
    pub(super) waiting_bytes: usize,
    pub(super) running: usize,
    /// Those that have been run here and whose end is not durable.
    pub(super) started: usize,
    /// Without those that are set aside.
    pub(super) held: usize,
    /// Those of them that have ended keep so much in memory.
    pub(super) ended_bytes: usize,
    /// A suspect runs or is about to: the threads are not there for others.
    pub(super) apart: bool,
}

impl Load {
    /// Enough lies ready: more than half of what may, in number or in bytes, and
    /// no thread would be left without.
    pub(super) fn is_enough(&self, ahead: usize) -> bool {
        self.waiting >= self.idle_threads && (self.waiting > ahead / 2 || self.waiting_bytes > MOST_BYTES_AHEAD / 2)
    }

    /// Too much waits to be durable, in number or in bytes.
    pub(super) fn is_too_much(&self) -> bool {
        self.held > MOST_UNSETTLED || self.ended_bytes > MOST_BYTES_UNSETTLED
    }
}

impl Pool {
    pub(super) fn new(bell: Arc<Bell>, lease: Duration) -> Self {
        Self { state: Mutex::default(), work: Condvar::new(), bell, lease }
    }

    pub(super) fn load(&self) -> Load {
        let state = self.lock();
        Load {
            idle_threads: state.idle_threads,
            waiting: state.waiting.len(),
            waiting_bytes: state.waiting.iter().map(|claim| claim.job.payload.as_str().len()).sum(),
            running: state.running.len(),
            started: state.started(),
            held: state.held.len() - state.aside.len(),
            ended_bytes: state.ended_bytes,
            apart: state.alone.is_some() || state.waiting.front().is_some_and(Claim::is_suspect),
        }
    }

    /// Puts claimed jobs before the threads.
    pub(super) fn add(&self, claims: Vec<Claim>, refill_at: usize) {
        let mut state = self.lock();
        state.refill_at = refill_at;
        for claim in claims {
            state.hold(&claim.run);
            state.waiting.push_back(claim);
        }
        drop(state);
        self.work.notify_all();
    }

    /// Holds a job that needs no thread: decided, to be applied.
    pub(super) fn hold(&self, run: &Arc<Run>) {
        self.lock().hold(run);
    }

    /// The next job for a thread; `None` when it should end.
    pub(super) fn next(&self, now: impl Fn() -> Instant) -> Option<Running> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(claim) = state.pop(now(), self.lease) {
                let low = state.waiting.len() == state.refill_at;
                let running = state.start(claim, now());
                drop(state);
                if low {
                    self.bell.ring();
                }
                return Some(running);
            }
            state.idle_threads += 1;
            if state.waiting.is_empty() {
                self.bell.ring();
            }
            let wait = if state.waiting.is_empty() { Duration::from_secs(3600) } else { ISOLATE };
            state = self.work.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
            state.idle_threads -= 1;
        }
    }

    /// A job has come to its end, which keeps so many bytes until it is durable.
    pub(super) fn returned(&self, run: &Arc<Run>, bytes: usize) {
        let mut state = self.lock();
        // One that was given up is told of twice, and the second time it may be gone.
        if state.held.contains_key(&(run.lease.seq, run.lease.token)) {
            state.ended_bytes += bytes;
            state.ended_bytes -= run.weight.swap(bytes, Ordering::Relaxed);
        }
        state.running.retain(|running| !Arc::ptr_eq(&running.run, run));
    }

    /// A job's end is durable, or it is no longer ours: its slot is free.
    pub(super) fn settled(&self, run: &Arc<Run>, slot: Option<usize>) {
        let mut state = self.lock();
        // Before it is let go: who sees that nothing is held any more can also see that there is to be looked again.
        self.bell.ring_settled();
        state.aside.remove(&(run.lease.seq, run.lease.token));
        if let Some(run) = state.held.remove(&(run.lease.seq, run.lease.token)) {
            state.ended_bytes -= run.weight.load(Ordering::Relaxed);
        }
        if let Some(slot) = slot {
            state.free_slots.push(slot);
            let was_alone = state.alone == Some(slot);
            if was_alone {
                state.alone = None;
            }
            if was_alone || state.started() == 0 {
                self.work.notify_all();
            }
        }
    }

    /// How this job ended cannot be recorded. It stays held, with its signs of life, so that nobody runs it again, and
    /// its slot stays as it is, so that nobody does when this process is gone. True the first time.
    pub(super) fn set_aside(&self, run: &Arc<Run>, slot: Option<usize>) -> bool {
        let mut state = self.lock();
        let name = (run.lease.seq, run.lease.token);
        let first = state.held.contains_key(&name) && state.aside.insert(name);
        if slot.is_some() && state.alone == slot {
            state.alone = None;
        }
        self.bell.ring_settled();
        self.work.notify_all();
        first
    }

    /// What is set aside, by seq and token.
    pub(super) fn aside(&self) -> HashSet<(i64, i64)> {
        self.lock().aside.clone()
    }

    /// Whether this job waits, runs, or has an end that is waited for.
    pub(super) fn is_at_work(&self, name: (i64, i64)) -> bool {
        let state = self.lock();
        state.held.contains_key(&name) && !state.aside.contains(&name)
    }

    /// Takes out what has waited since before this time, to be given back. A
    /// suspect is expected to wait for the others to end, but for nothing else.
    pub(super) fn take_waiting(&self, now: Instant, before: Instant, suspects_too: bool) -> Vec<Claim> {
        let mut state = self.lock();
        if !suspects_too && state.is_about_to_start(now, self.lease) {
            return Vec::new();
        }
        let patient = state.alone.is_none() && !suspects_too;
        let stays = |claim: &Claim| {
            patient && claim.is_suspect() && now.saturating_duration_since(claim.since) < self.lease.min(ISOLATE * 2)
        };
        if state.waiting.iter().find(|claim| !stays(claim)).is_none_or(|first| first.since > before) {
            return Vec::new();
        }
        let (stay, go): (VecDeque<_>, VecDeque<_>) = state.waiting.drain(..).partition(stays);
        state.waiting = stay;
        go.into()
    }

    /// When the first in line was claimed that does not wait to run apart.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.lock().waiting.iter().find(|claim| !claim.is_suspect()).map(|claim| claim.since)
    }

    pub(super) fn running(&self) -> Vec<Running> {
        self.lock().running.clone()
    }

    pub(super) fn held(&self) -> Vec<Arc<Run>> {
        self.lock().held.values().cloned().collect()
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.work.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn hold(&mut self, run: &Arc<Run>) {
        self.held.insert((run.lease.seq, run.lease.token), Arc::clone(run));
    }

    /// Jobs that have started and whose end is not durable, but may be.
    fn started(&self) -> usize {
        // Not all that is set aside has a slot.
        (self.slots - self.free_slots.len()).saturating_sub(self.aside.len())
    }

    /// There is an idle thread for everything that waits. On a busy machine it
    /// may take them a while to get going; to give back and claim again takes
    /// longer.
    fn is_about_to_start(&self, now: Instant, lease: Duration) -> bool {
        self.alone.is_none()
            && self.idle_threads >= self.waiting.len()
            && self
                .waiting
                .iter()
                .all(|claim| !claim.is_suspect() && now.saturating_duration_since(claim.since) < lease)
    }

    fn pop(&mut self, now: Instant, lease: Duration) -> Option<Claim> {
        let first = self.waiting.front()?;
        let waited = now.saturating_duration_since(first.since);
        // A process that was stopped for a while may have lost it; the dispatcher gives it back.
        if self.alone.is_some() || waited >= lease {
            return None;
        }
        if first.is_suspect() && self.started() > 0 && waited < ISOLATE {
            return None;
        }
        self.waiting.pop_front()
    }

    fn start(&mut self, claim: Claim, now: Instant) -> Running {
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        if claim.is_suspect() {
            self.alone = Some(slot);
        }
        let running = Running { run: claim.run, job: Arc::new(claim.job), slot, started: now };
        self.running.push(running.clone());
        running
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Lease;

    #[test]
    fn ends_that_are_not_durable_are_too_much_by_number_or_by_weight() {
        let pool = Pool::new(Arc::default(), Duration::from_secs(300));
        let run = |seq| Arc::new(Run::new(Lease { id: format!("job {seq}"), seq, token: 1 }));
        let runs: Vec<_> = (1..=3).map(run).collect();
        for run in &runs {
            pool.hold(run);
        }
        assert_eq!(pool.load().ended_bytes, 0, "they run");
        pool.returned(&runs[0], MOST_BYTES_UNSETTLED - 5);
        pool.returned(&runs[1], 5);
        assert!(!pool.load().is_too_much());
        pool.returned(&runs[2], 1);
        assert!(pool.load().is_too_much());
        // Told of again, as one that was given up and returns after all.
        pool.returned(&runs[2], 0);
        assert!(!pool.load().is_too_much());
        pool.settled(&runs[2], None);
        pool.returned(&runs[2], 1 << 30);
        assert_eq!(pool.load().ended_bytes, MOST_BYTES_UNSETTLED);
        pool.settled(&runs[0], None);
        pool.settled(&runs[1], None);
        assert_eq!((pool.load().held, pool.load().ended_bytes), (0, 0));
        (0..=4096).map(run).for_each(|run| pool.hold(&run));
        assert!(pool.load().is_too_much());
    }

    #[test]
    fn large_payloads_are_enough_before_there_are_many_of_them() {
        let load =
            |idle_threads, waiting, waiting_bytes| Load { idle_threads, waiting, waiting_bytes, ..Load::default() };
        assert!(!load(0, 100, 100 << 10).is_enough(256), "small ones: there is place for more");
        assert!(load(0, 129, 129 << 10).is_enough(256));
        assert!(load(0, 5, 40 << 20).is_enough(256), "few, and a lot of memory");
        assert!(!load(6, 5, 40 << 20).is_enough(256), "a thread would be idle");
    }
}
