//! How a worker ends: what runs is finished, what has not started goes back; told
//! again, or out of patience, it waits for nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Shared;
use super::dispatch::Dispatcher;
use super::execute::Finished;
use super::pool::Running;
use super::report::WorkerEvent;
use crate::error::{Error, ErrorKind, Result};
use crate::handler::{Run, Stop};
use crate::liveness;
use crate::store::{HeldLease, Step, Store as _};

/// How often a worker that stops says what it waits for.
const SAY_AGAIN: Duration = Duration::from_secs(5);
/// How long a worker that has nothing else to do waits for one of its hooks.
const HOOKS: Duration = Duration::from_secs(10);
/// The same when it may not wait: hooks that have nothing to do end in less.
const PARTING: Duration = Duration::from_millis(20);
/// How often a worker that waits only for its hooks looks whether it still should.
const HOOK_LOOK: Duration = Duration::from_millis(1);
/// How long handlers have to obey when the worker does not wait any more.
const OBEY: Duration = Duration::from_secs(1);

/// What a worker does not go on after.
pub(super) const fn ends_a_worker(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Schema | ErrorKind::NoDatabase)
}

/// Why a worker ends that nobody has told to.
pub(super) struct Broken {
    pub(super) error: Error,
    /// Nothing that is still done could be recorded where others see it, so nothing is waited for.
    pub(super) cut_off: bool,
}

pub(super) struct Stopping {
    since: Instant,
    said: Instant,
    pub(super) forced: Option<Instant>,
}

impl Stopping {
    /// When there is something to do about it.
    pub(super) fn times(&self, grace: Option<Duration>) -> Vec<Instant> {
        let mut times = vec![self.said + SAY_AGAIN];
        times.extend(self.forced.map(|forced| forced + OBEY));
        times.extend(grace.map(|grace| self.since + grace));
        times
    }
}

impl Dispatcher {
    /// Their thread ends with those who had the other side of the channel. One
    /// that hangs is left after a while, or at once when the worker may not wait:
    /// hooks are best effort. Many that are slow are not one that hangs.
    pub(super) fn wait_for_hooks(&self, hooks: JoinHandle<()>, called: &AtomicU64) {
        let mut since = self.shared.ticks.now();
        let mut seen = called.load(Ordering::Acquire);
        let patience = self.options.grace.map_or(HOOKS, |grace| grace.min(HOOKS));
        // Whoever gave a worker so long to stop meant all that it still does.
        let for_all = self.is_stopping() && self.options.grace.is_some();
        while !hooks.is_finished() {
            let now = self.shared.ticks.now();
            let by_now = called.load(Ordering::Acquire);
            let hurried = self.shutdown.requests() > 1;
            if by_now != seen && !for_all && !hurried {
                (since, seen) = (now, by_now);
            }
            let patience = if hurried { patience.min(PARTING) } else { patience };
            if now.saturating_duration_since(since) >= patience {
                tracing::warn!("a hook is still running; it is left, and those behind it");
                return;
            }
            std::thread::sleep(HOOK_LOOK);
        }
        let _ = hooks.join();
    }

    /// With too many of them the worker is not worth keeping: it finishes what
    /// runs, as if it had been told to stop.
    pub(super) fn see_to_lost_threads(&mut self) {
        let lost = self.shared.lost_threads.load(Ordering::Acquire);
        if lost > self.options.concurrency && self.broken.is_none() && self.stopping.is_none() {
            let why = format!("{lost} handlers did not stop when they were told to; start the worker again");
            self.end_with(Error::new(ErrorKind::Internal, why));
        }
    }

    pub(super) fn see_to_shutdown(&mut self, now: Instant) {
        let requests = self.shutdown.requests();
        if requests == 0 && self.broken.is_none() {
            return;
        }
        if self.stopping.is_none() {
            self.shared.shutting_down.store(true, Ordering::SeqCst);
            // Looked for after that: who starts now sees it by itself.
            for running in self.shared.pool.running() {
                running.run.nudge();
            }
        }
        let (running, cut_off) = (self.shared.pool.running(), self.is_cut_off());
        let stopping = self.stopping.get_or_insert_with(|| Stopping {
            since: now,
            said: now.checked_sub(SAY_AGAIN).unwrap_or(now),
            forced: None,
        });
        let out_of_patience = self.options.grace.is_some_and(|grace| now >= stopping.since + grace);
        if stopping.forced.is_none() && (requests > 1 || out_of_patience || cut_off) {
            stopping.forced = Some(now);
            self.shared.finished.hurry();
            for running in &running {
                running.run.tell_to_stop(Stop::ShutDown);
            }
        }
        if stopping.forced.is_some_and(|forced| now >= forced + OBEY) {
            for running in running.into_iter().filter(|one| !one.run.has_program.load(Ordering::Acquire)) {
                let _ = abandon(&self.shared, running, Step::Release);
            }
        } else if now >= stopping.said + SAY_AGAIN {
            // Those that run, or if none does, those whose end is not durable yet.
            let mut waiting_for: Vec<String> = running.iter().map(|running| running.job.id.clone()).collect();
            if waiting_for.is_empty() && now > stopping.since {
                waiting_for = self.shared.pool.held().iter().map(|run| run.lease.id.clone()).collect();
            }
            if !waiting_for.is_empty() {
                stopping.said = now;
                self.shared.tell(&WorkerEvent::Stopping { waiting_for });
            }
        }
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.broken.as_ref().is_some_and(|broken| broken.cut_off)
    }

    /// For certain: to SQLite it is an error of the schema, too, that somebody is making an index anew.
    pub(super) fn cuts_off(&self, error: &Error) -> bool {
        let moved_on = || self.shared.queue.store().expect_the_same().is_err_and(|error| ends_a_worker(error.kind()));
        error.kind() == ErrorKind::NoDatabase || (error.kind() == ErrorKind::Schema && moved_on())
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// Told to go at once.
    pub(super) fn is_forced(&self) -> bool {
        self.stopping.as_ref().is_some_and(|stopping| stopping.forced.is_some())
    }

    /// The last thing: what is still claimed goes back, and the lock file with
    /// it. If that fails, the lock tells others that this process is gone. The error is
    /// about what nobody can take back: whoever waits for the end must not believe that all is done.
    pub(super) fn sign_off(&self) -> Option<Error> {
        if let Err(error) = self.give_back_the_rest() {
            tracing::warn!(%error, "what is still claimed could not be given back; it counts as lost");
        }
        let mut left = self.ids_aside();
        // That those were run stands in the slots alone, and whoever finds this process gone goes by these.
        if left.is_empty() {
            left = liveness::sign_off(&self.shared.lock, self.shared.queue.store(), self.shared.queue.state_folder());
        }
        let jobs = left.join(", ");
        let why =
            || format!("the database is damaged where jobs are: they stay claimed by this worker, which ends: {jobs}");
        (!left.is_empty()).then(|| Error::new(ErrorKind::Corrupt, why()))
    }

    /// Jobs whose end could be recorded in no way.
    fn ids_aside(&self) -> Vec<String> {
        let (held, aside) = (self.shared.pool.held(), self.shared.pool.aside());
        let is_aside = |run: &&Arc<Run>| aside.contains(&(run.lease.seq, run.lease.token));
        held.iter().filter(is_aside).map(|run| run.lease.id.clone()).collect()
    }

    /// Nobody is lost when a worker leaves in good order, so what it has claimed
    /// and not started loses no attempt; nor does anything else when it was told
    /// not to wait. What is decided is not taken by this and stays for the reclaim.
    fn give_back_the_rest(&self) -> Result<()> {
        let owner = self.shared.lock.owner();
        let started = if self.is_forced() { self.shared.pool.aside() } else { self.shared.lock.started()? };
        let mut leases = self.shared.queue.store().leases()?;
        leases.retain(|HeldLease { lease, locked_by, .. }| {
            *locked_by == owner.locked_by && !started.contains(&(lease.seq, lease.token))
        });
        if leases.is_empty() {
            return Ok(());
        }
        let steps: Vec<_> = leases.into_iter().map(|held| (held.lease, Step::Release)).collect();
        let store = self.shared.queue.store();
        match store.settle(steps.clone()) {
            // One of them is damaged; it must not cost the others an attempt.
            Err(error) if error.is_about_one() => {
                for step in steps {
                    let _ = store.settle(vec![step]);
                }
                Err(error)
            }
            settled => settled.map(drop),
        }
    }
}

/// Gives a running job up: its end is told without it, and what its handler
/// still returns is dropped. False if it has just returned.
pub(super) fn abandon(shared: &Shared, running: Running, step: Step) -> bool {
    shared.lost_threads.fetch_add(1, Ordering::AcqRel);
    if running.run.abandoned.swap(true, Ordering::AcqRel) {
        shared.lost_threads.fetch_sub(1, Ordering::AcqRel);
        return false;
    }
    let mut end = Finished::without_running(running.run, running.job, Some(running.slot), step);
    end.duration = shared.ticks.now().saturating_duration_since(running.started);
    if let Step::Reschedule { failure, .. } = &end.step {
        end.failure = Some(failure.clone());
    }
    shared.pool.returned(&end.run, end.weight());
    shared.finished.push(end);
    true
}
