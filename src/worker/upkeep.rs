//! What a worker does besides claiming: signs of life, taking back from the
//! dead, cancels, timeouts, progress.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::dispatch::Dispatcher;
use super::execute::{Finished, given_up_at};
use super::hooks::Call;
use super::pace::STALE;
use super::report::WorkerEvent;
use super::retention::Sweep;
use super::stop::abandon;
use super::{Shared, WorkerOptions};
use crate::clock::Millis;
use crate::effects;
use crate::error::Result;
use crate::handler::{Run, Sending, Stop};
use crate::job::Job;
use crate::liveness::{self, LeaseWatch};
use crate::store::{
    Beat, Failure, HeldLease, LapsedLease, Limits, Outlook, Pulse, Reclaim, Reclaimed, Step, Store as _,
};

/// Types without a handler are reported at most once in this time: somebody may queue jobs of thousands of types.
const REPORT_UNKNOWN_TYPES_EVERY: Millis = 60_000;
/// How often trouble with taking back is told.
const TELL_AGAIN: Duration = Duration::from_secs(300);

/// When what is due, and what has been seen.
pub(super) struct Upkeep {
    sweep_at: Instant,
    pub(super) retention: Sweep,
    beat_at: Instant,
    /// Someone else has written: perhaps a cancel.
    pub(super) cancels: bool,
    /// When the next delayed job falls due.
    due_at: Option<Instant>,
    leases: LeaseWatch,
    /// When the database was last written to, to see that others could.
    writable_since: Option<Instant>,
    /// Jobs that are locked by this worker and that it does not know.
    strangers: HashSet<(i64, i64)>,
    /// What dead processes left on the disk is looked for at the start, and when one is found dead.
    swept: bool,
    /// Types without a handler that were reported, and when the last of them was.
    unknown_types: HashSet<String>,
    unknown_types_at: Option<Millis>,
    damage_told: Option<Instant>,
    /// Threads whose jobs are not short.
    pub(super) long_runs: usize,
}

impl Upkeep {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            sweep_at: now,
            retention: Sweep::new(now),
            beat_at: now,
            cancels: false,
            due_at: None,
            leases: LeaseWatch::default(),
            writable_since: None,
            strangers: HashSet::new(),
            swept: false,
            unknown_types: HashSet::new(),
            unknown_types_at: None,
            damage_told: None,
            long_runs: 0,
        }
    }

    /// While the database cannot be written, silence says nothing.
    pub(super) fn forget_leases(&mut self) {
        self.leases = LeaseWatch::default();
        self.writable_since = None;
    }

    pub(super) fn next_at(&mut self, outlook: &Outlook, now: Instant, shared: &Shared) {
        self.due_at = outlook.next_at.map(|at| {
            let wait = at.saturating_sub(shared.queue.now()).max(0);
            now + Duration::from_millis(u64::try_from(wait).unwrap_or(0).min(86_400_000))
        });
    }

    /// When there is something to do again. `trouble`: until when the database
    /// is left alone, and with it everything that needs it.
    pub(super) fn next(
        &self,
        now: Instant,
        trouble: Option<Instant>,
        shared: &Shared,
        options: &WorkerOptions,
    ) -> Instant {
        let not_before = trouble.unwrap_or(now);
        let mut next =
            self.sweep_at.min(self.beat_at).min(self.retention.next).max(not_before).min(now + options.poll_interval);
        next = self.due_at.map_or(next, |due| next.min(due));
        for running in shared.pool.running() {
            let times = [
                running.run.progress_due().map(|due| due.max(not_before)),
                // One whose program lives is not given up, so there is no time for that.
                running
                    .deadline()
                    .map(|at| if at > now { at } else { given_up_at(at) })
                    .filter(|at| *at > now || !running.run.has_program.load(Ordering::Acquire)),
                Some(running.started + STALE).filter(|at| *at > now),
            ];
            next = times.into_iter().flatten().fold(next, Instant::min);
        }
        next.max(now + Duration::from_millis(1))
    }
}

impl Dispatcher {
    pub(super) fn keep_up(&mut self, now: Instant) -> Result<()> {
        if self.upkeep.due_at.is_some_and(|due| due <= now) {
            self.upkeep.due_at = None;
            self.look();
        }
        self.watch_runs(now);
        if self.trouble.until(now).is_some() || self.is_cut_off() {
            return Ok(());
        }
        // Before anything is swept: what this database does not know is litter only if it is the one in use.
        if self.upkeep.cancels || now >= self.upkeep.sweep_at {
            self.shared.queue.still_there()?;
        }
        self.beat(now)?;
        if std::mem::take(&mut self.upkeep.cancels) {
            self.pass_on_cancels()?;
        }
        self.prune(now)?;
        if now < self.upkeep.sweep_at {
            return Ok(());
        }
        self.look();
        self.pass_on_cancels()?;
        let reclaimed = self.reclaim();
        self.past_damage(reclaimed, now)?;
        // Needs no thread, so it does not wait for one, nor for a lull.
        if !self.is_stopping() && self.shared.queue.store().outlook(&[], &Limits::new())?.decided {
            self.take_over()?;
        }
        self.report_unknown_types()?;
        // Only now: what failed half-way is tried again when the database is back.
        self.upkeep.sweep_at = now + self.options.poll_interval;
        Ok(())
    }

    /// What cannot be taken back must not keep the worker from what it can do. Told, but not every second.
    fn past_damage(&mut self, reclaimed: Result<()>, now: Instant) -> Result<()> {
        match reclaimed {
            Err(error) if error.is_about_one() => {
                if self.upkeep.damage_told.is_none_or(|told| now.saturating_duration_since(told) >= TELL_AGAIN) {
                    self.upkeep.damage_told = Some(now);
                    tracing::error!(%error, "what dead workers had cannot be taken back");
                }
                Ok(())
            }
            reclaimed => reclaimed,
        }
    }

    /// Timeouts, and how many threads are busy with jobs that are not short.
    fn watch_runs(&mut self, now: Instant) {
        self.upkeep.long_runs = 0;
        for running in self.shared.pool.running() {
            self.upkeep.long_runs += usize::from(now.saturating_duration_since(running.started) >= STALE);
            let Some(deadline) = running.deadline().filter(|at| *at <= now) else { continue };
            running.run.tell_to_stop(Stop::TimedOut);
            if now < given_up_at(deadline) || running.run.has_program.load(Ordering::Acquire) {
                continue;
            }
            let (job_id, job_type) = (running.job.id.clone(), running.job.job_type.clone());
            let delay = running.job.backoff().delay(running.job.attempts, fastrand::f64());
            let failure = crate::handler::timed_out().failure;
            if !abandon(&self.shared, running, Step::Reschedule { failure, delay }) {
                continue;
            }
            tracing::error!(job_id, job_type, "a handler did not stop at its timeout; its thread is replaced");
            self.shared.tell(&WorkerEvent::ThreadLost { job_id, job_type });
            if let Err(error) = self.start_thread() {
                tracing::error!(%error, "a lost thread could not be replaced");
            }
        }
    }

    /// Signs of life for everything that is claimed, and progress that waits.
    fn beat(&mut self, now: Instant) -> Result<()> {
        let all = now >= self.upkeep.beat_at;
        let runs = self.shared.pool.held();
        let mut beats = Vec::new();
        for run in &runs {
            let sending = run.send_progress();
            if all || sending.is_some() {
                beats.push((run, sending));
            }
        }
        if beats.is_empty() {
            if all {
                self.upkeep.beat_at = now + self.options.lease / 10;
            }
            return Ok(());
        }
        let beat = |(run, sending): &(&Arc<Run>, Option<Sending<'_>>)| Beat {
            lease: run.lease.clone(),
            progress: sending.as_ref().and_then(Sending::progress),
            checkpoint: None,
        };
        let pulses = match self.shared.queue.store().heartbeat(beats.iter().map(beat).collect()) {
            Err(error) if error.is_about_one() => self.beat_one_by_one(beats.iter().map(beat))?,
            pulses => pulses?,
        };
        if all {
            self.upkeep.beat_at = now + self.options.lease / 10;
        }
        self.worked();
        for ((run, sending), pulse) in beats.into_iter().zip(pulses) {
            sending.into_iter().for_each(Sending::written);
            match pulse {
                Pulse::Alive => {}
                Pulse::CancelRequested => run.tell_to_stop(Stop::Cancelled),
                Pulse::Lost => run.tell_to_stop(Stop::Lost),
            }
        }
        Ok(())
    }

    /// A job whose row is damaged must not silence the others, and whoever claims need not wait for it: what is silent is
    /// taken away.
    fn beat_one_by_one(&self, beats: impl Iterator<Item = Beat>) -> Result<Vec<Pulse>> {
        let one = |beat: Beat| {
            let job_id = beat.lease.id.clone();
            match self.shared.queue.store().heartbeat(vec![beat]) {
                Err(error) if error.is_about_one() => {
                    tracing::error!(job_id, %error, "a sign of life cannot be recorded; the job goes on without");
                    Ok(Pulse::Alive)
                }
                pulse => pulse.map(|pulse| pulse.into_iter().next().unwrap_or(Pulse::Alive)),
            }
        };
        beats.map(one).collect()
    }

    fn pass_on_cancels(&self) -> Result<()> {
        let held = self.shared.pool.held();
        if held.is_empty() {
            return Ok(());
        }
        let asked = self.shared.queue.store().cancel_requests(&self.shared.lock.owner().locked_by)?;
        for run in held {
            if asked.contains(&(run.lease.seq, run.lease.token)) {
                run.tell_to_stop(Stop::Cancelled);
            }
        }
        Ok(())
    }

    /// Takes back what dead owners had, and leases that have stood still.
    fn reclaim(&mut self) -> Result<()> {
        let own = self.shared.lock.owner().locked_by.clone();
        let leases = self.shared.queue.store().leases()?;
        // The time of the sight, not of the round: the process may have been stopped in between.
        let now = self.shared.ticks.now();
        let (mine, others): (Vec<_>, Vec<_>) = leases.into_iter().partition(|lease| lease.locked_by == own);
        self.take_strangers(&mine)?;
        let store = self.shared.queue.store();
        let mut done = Reclaimed::default();
        if !others.is_empty() {
            done = liveness::sweep(store, &self.shared.queue.owners_folder())?;
        }
        let (lease, folder) = (self.options.lease, self.shared.queue.owners_folder());
        let longer = |held: &HeldLease| liveness::promised_lease(held, &folder).unwrap_or(lease);
        let lapsed = self.upkeep.leases.look_with(&others, lease, now, longer);
        if self.silence_is_proved(&lapsed, now)? {
            let more = self.shared.queue.store().reclaim(Reclaim { dead: Vec::new(), lapsed })?;
            done.pending.extend(more.pending);
            done.failed.extend(more.failed);
            done.cancelled.extend(more.cancelled);
            done.unowned.extend(more.unowned);
            done.left.extend(more.left);
        }
        let own = &own;
        let store = self.shared.queue.store();
        for id in &done.failed {
            self.tell_hooks_of_loss(id);
        }
        // Nothing came of these, and the store has told of them.
        done.left.clear();
        let found = done != Reclaimed::default();
        if found {
            self.shared.tell(&WorkerEvent::Reclaimed(done));
        }
        if found || !self.upkeep.swept {
            self.upkeep.swept = true;
            // Litter harms nobody; the next sweep may do better.
            let idle = liveness::remove_idle_locks(store, &folder);
            if let Err(error) = idle.and_then(|()| liveness::forget_idle_owners(store, &folder)) {
                tracing::warn!(%error, "what is left of dead workers could not be swept");
            }
            let planned = &mut |job: &str, stage: &str| self.shared.queue.store().is_planned(job, stage);
            let swept = effects::sweep_stage(self.shared.queue.state_folder(), own, planned);
            if let Err(error) = swept {
                tracing::warn!(%error, "what dead workers left in the stage could not be swept");
            }
        }
        Ok(())
    }

    /// A lease that has stood still says something only if its owner could have
    /// written. So the database is written to, and the owner has a little longer.
    fn silence_is_proved(&mut self, lapsed: &[LapsedLease], now: Instant) -> Result<bool> {
        if lapsed.is_empty() {
            self.upkeep.writable_since = None;
            return Ok(false);
        }
        let Some(since) = self.upkeep.writable_since else {
            self.shared.queue.store().admit()?;
            self.upkeep.writable_since = Some(self.shared.ticks.now());
            return Ok(false);
        };
        let proved = now.saturating_duration_since(since) >= self.options.lease / 5;
        if proved {
            self.upkeep.writable_since = None;
        }
        Ok(proved)
    }

    /// Jobs that are locked by this worker and that it does not hold: a claim whose
    /// COMMIT failed and turned out to be durable, or one whose end was refused. They go
    /// back, or are applied if they are decided. Seen twice, because an end may be on its way.
    fn take_strangers(&mut self, mine: &[HeldLease]) -> Result<()> {
        let held: HashSet<(i64, i64)> =
            self.shared.pool.held().iter().map(|run| (run.lease.seq, run.lease.token)).collect();
        let unknown = mine.iter().filter(|lease| !held.contains(&(lease.lease.seq, lease.lease.token)));
        let unknown: HashSet<(i64, i64)> = unknown.map(|lease| (lease.lease.seq, lease.lease.token)).collect();
        let before = std::mem::replace(&mut self.upkeep.strangers, unknown);
        for HeldLease { lease, .. } in mine {
            let name = (lease.seq, lease.token);
            if !before.contains(&name) || !self.upkeep.strangers.contains(&name) {
                continue;
            }
            let job = Arc::new(self.shared.queue.get(&lease.id)?);
            let run = Arc::new(Run::new(lease.clone()));
            let end = if job.outcome.is_some() {
                Finished::decided(Arc::clone(&run), job, Arc::clone(&self.shared.files) as _)
            } else {
                self.come_back(Arc::clone(&run), job)?
            };
            self.shared.pool.hold(&run);
            self.shared.finished.push(end);
        }
        Ok(())
    }

    /// One that was run here keeps its attempt: given back, it would be run without end.
    fn come_back(&self, run: Arc<Run>, job: Arc<Job>) -> Result<Finished> {
        if !self.shared.lock.started()?.contains(&(run.lease.seq, run.lease.token)) {
            return Ok(Finished::without_running(run, job, None, Step::Release));
        }
        let failure = Failure::new("unrecorded", "the job was run, and what came of that was not recorded");
        let delay = job.backoff().delay(job.attempts, fastrand::f64());
        let mut end = Finished::without_running(run, job, None, Step::Reschedule { failure: failure.clone(), delay });
        end.failure = Some(failure);
        Ok(end)
    }

    /// A job that lost its worker for the last time has failed for good, too.
    fn tell_hooks_of_loss(&self, id: &str) {
        let Ok(job) = self.shared.queue.get(id) else { return };
        let (Some(handler), Some(hooks)) = (self.shared.registry.get(&job.job_type), &self.hooks) else { return };
        let failure = Some(Failure::new("worker_lost", job.last_error.clone().unwrap_or_default()));
        let call = Call { handler: Arc::clone(handler), job: Arc::new(job), result: None, failure };
        hooks.tell(call);
    }

    /// One report for all types that are new since the last one.
    fn report_unknown_types(&mut self) -> Result<()> {
        let now = self.shared.queue.now();
        let upkeep = &mut self.upkeep;
        if upkeep.unknown_types_at.is_some_and(|at| now.abs_diff(at) < REPORT_UNKNOWN_TYPES_EVERY.unsigned_abs()) {
            return Ok(());
        }
        let mut types = self.shared.queue.store().waiting_types()?;
        types.retain(|name| self.shared.registry.get(name).is_none() && !upkeep.unknown_types.contains(name));
        let Some(first) = types.first() else { return Ok(()) };
        self.shared.tell(&WorkerEvent::UnknownType { job_type: first.clone(), others: types.len() - 1 });
        upkeep.unknown_types_at = Some(now);
        upkeep.unknown_types.extend(types);
        Ok(())
    }
}
