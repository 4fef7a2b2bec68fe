//! The loop: when to look, how much to claim, when to stop.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::disk::DiskLook;
use super::execute::{self, Finished};
use super::finish::Finisher;
use super::hooks;
use super::pace::STALE;
use super::pool::{Claim, Load};
use super::report::{WorkerEvent, WorkerSummary};
use super::shutdown::Shutdown;
use super::stop::{Broken, Stopping, ends_a_worker};
use super::trouble::Trouble;
use super::upkeep::Upkeep;
use super::wake::Watch;
use super::{Room, Shared, WorkerOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::handler::Run;
use crate::store::{ClaimRequest, ClaimedJob, Step, Store as _};

/// Claims that may come back empty in a row before the worker waits for a hint.
const MOST_EMPTY: u32 = 1_000;
/// After a hint from outside the commit may not be visible yet: look again.
/// The last one is for a disk that takes long to sync.
const LOOK_AGAIN: [Duration; 4] =
    [Duration::from_millis(1), Duration::from_millis(5), Duration::from_millis(25), Duration::from_millis(125)];

pub(super) struct Dispatcher {
    pub(super) shared: Arc<Shared>,
    pub(super) options: WorkerOptions,
    pub(super) types: Vec<String>,
    pub(super) trouble: Trouble,
    pub(super) upkeep: Upkeep,
    pub(super) shutdown: Shutdown,
    watch: Watch,
    threads: Vec<JoinHandle<()>>,
    room: Trouble,
    /// Something may be claimable: a claim or a look is worth it.
    hopeful: bool,
    /// The last claim got all it asked for, so there is probably more.
    backlog: bool,
    /// Times to look again, soonest last.
    looks: Vec<Instant>,
    pub(super) stopping: Option<Stopping>,
    /// Why the worker cannot go on.
    pub(super) broken: Option<Broken>,
    /// Nobody takes ends to the store any more.
    finisher_gone: bool,
    /// What was claimed last to see whether anything can be recorded.
    probe: Option<(i64, i64)>,
    /// Claims in a row that found nothing although a look had.
    empty_claims: u32,
    /// For jobs that end without the finisher.
    pub(super) hooks: Option<hooks::Hooks>,
}

impl Dispatcher {
    pub(super) fn new(shared: Arc<Shared>, options: WorkerOptions, types: Vec<String>, shutdown: Shutdown) -> Self {
        shutdown.rings(Arc::clone(&shared.bell));
        let now = shared.ticks.now();
        Self {
            watch: Watch::new(&shared.bell),
            upkeep: Upkeep::new(now),
            shared,
            options,
            types,
            trouble: Trouble::default(),
            shutdown,
            threads: Vec::new(),
            room: Trouble::default(),
            hopeful: true,
            backlog: false,
            looks: Vec::new(),
            stopping: None,
            broken: None,
            finisher_gone: false,
            probe: None,
            empty_claims: 0,
            hooks: None,
        }
    }

    pub(super) fn run(mut self) -> Result<WorkerSummary> {
        self.shared.tell(&WorkerEvent::Started {
            worker: self.shared.lock.owner().locked_by.clone(),
            types: self.types.clone(),
            concurrency: self.options.concurrency,
            programs: self.shared.queue.state_folder().join("handlers"),
        });
        for _ in 0..self.options.concurrency {
            self.start_thread()?;
        }
        let (send, receive) = hooks::line(self.shared.one_by_one.then(|| self.shutdown.clone()));
        let called = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&called);
        let hooks = spawn("jobq-hooks", move || hooks::run(&receive, &count))?;
        self.hooks = Some(send.clone());
        let finisher = Finisher::new(Arc::clone(&self.shared), send);
        let finisher = spawn("jobq-finish", move || finisher.run_guarded())?;
        let disk = if self.options.reconcile { DiskLook::start(&self.shared) } else { None };
        self.until_done();
        self.shared.pool.close();
        self.shared.finished.close();
        let summary = finisher.join().unwrap_or_default();
        // Told to go at once, it waits neither for handlers nor for hooks.
        if !self.is_forced() && self.shared.lost_threads.load(Ordering::Acquire) == 0 {
            for thread in self.threads.drain(..) {
                let _ = thread.join();
            }
        }
        if let Some(disk) = disk {
            disk.end();
        }
        self.hooks = None;
        self.wait_for_hooks(hooks, &called);
        let left = self.sign_off();
        self.shared.tell(&WorkerEvent::Stopped(summary));
        self.broken.take().map(|broken| broken.error).or(left).map_or(Ok(summary), Err)
    }

    pub(super) fn start_thread(&mut self) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        self.threads.push(spawn("jobq-run", move || execute::runner(&shared))?);
        Ok(())
    }

    fn until_done(&mut self) {
        loop {
            let now = self.shared.ticks.now();
            let rung = self.shared.bell.take();
            if rung.outside {
                self.upkeep.cancels = true;
                self.looks = LOOK_AGAIN.iter().rev().map(|wait| now + *wait).collect();
            }
            if rung.outside || rung.settled {
                self.look();
            }
            while self.looks.last().is_some_and(|look| *look <= now) {
                self.looks.pop();
                self.look();
            }
            self.see_to_lost_threads();
            self.see_to_runtimes();
            self.see_to_shutdown(now);
            let kept = self.keep_up(now);
            self.heed(now, kept);
            self.give_back_stale(now);
            let claimed = if self.may_claim(now) { self.claim(now) } else { Ok(()) };
            self.heed(now, claimed);
            if let Some(error) = self.shared.finished.gone() {
                // Nothing can be brought to its end any more; what runs is still waited for.
                self.finisher_gone = true;
                self.end_with(error);
            }
            if self.is_done() {
                return;
            }
            let until = self.next_time(now);
            self.shared.ticks.wait(&self.shared.bell, until);
        }
    }

    /// Trouble with the database is waited out. A schema that has moved on is
    /// not, nor is a file that is not there any more: the worker stops as if it
    /// had been told to.
    fn heed(&mut self, now: Instant, outcome: Result<()>) {
        match outcome {
            Ok(()) => {}
            Err(error) if ends_a_worker(error.kind()) => self.end_with(error),
            Err(error) => {
                let holds = self.shared.pool.load().held > 0;
                let at_most = if holds { self.options.lease / 10 } else { Duration::MAX };
                let retry_in = self.trouble.failed_for(now, at_most);
                self.upkeep.forget_leases();
                self.shared.tell(&WorkerEvent::Trouble { error: error.to_string(), retry_in });
            }
        }
    }

    /// The first reason counts, unless by a later one it is in vain to wait for what runs.
    pub(super) fn end_with(&mut self, error: Error) {
        if self.is_cut_off() {
            return;
        }
        let cut_off = self.cuts_off(&error);
        if self.broken.is_none() || cut_off {
            self.broken = Some(Broken { error, cut_off });
            self.shared.bell.ring();
        }
    }

    fn may_claim(&mut self, now: Instant) -> bool {
        match self.shared.room.swap(Room::Unknown as u8, Ordering::AcqRel) {
            full if full == Room::Full as u8 => {
                let retry_in = self.room.failed(now);
                let error = "the disk is full; jobs that need room wait until there is some".to_owned();
                self.shared.tell(&WorkerEvent::Trouble { error, retry_in });
            }
            found if found == Room::Found as u8 && self.room.over() => self.shared.tell(&WorkerEvent::TroubleOver),
            _ => {}
        }
        let goes_on = self.broken.is_none() && self.stopping.is_none();
        self.hopeful && goes_on && self.trouble.until(now).is_none() && self.room.until(now).is_none()
    }

    /// Looks whether there is work, and takes as much as there is place for.
    fn claim(&mut self, now: Instant) -> Result<()> {
        let load = self.shared.pool.load();
        if load.apart {
            // What is claimed now could only be given back.
            return Ok(());
        }
        let short_runs = self.options.concurrency.saturating_sub(self.upkeep.long_runs);
        let (bound, probes) = self.bound(now, load);
        let mut ahead = self.shared.pace.lock().unwrap_or_else(PoisonError::into_inner).ahead(short_runs);
        if bound.is_some() {
            ahead = 0;
        }
        let mut place = (load.idle_threads + ahead).saturating_sub(load.waiting);
        if self.shared.one_by_one {
            place = usize::from(load.held == 0 && load.idle_threads > 0);
        }
        place = place.min(bound.unwrap_or(place));
        if place == 0 || load.is_enough(ahead) || load.is_too_much() {
            return Ok(());
        }
        // A look takes no lock, so it costs other processes nothing.
        if !self.backlog {
            let outlook = self.shared.queue.store().outlook(&self.types, &self.options.limits)?;
            self.upkeep.next_at(&outlook, now, &self.shared);
            if outlook.decided {
                self.take_over()?;
            }
            if !outlook.claimable {
                self.empty_claims = 0;
                self.worked();
                self.nothing_there();
                return Ok(());
            }
        }
        let limit = u32::try_from(place).unwrap_or(u32::MAX);
        let (owner, types) = (self.shared.lock.owner().clone(), self.types.clone());
        let request = ClaimRequest { owner, types, limit, limits: self.options.limits.clone() };
        let claimed = self.shared.queue.store().claim(request)?;
        self.worked();
        self.backlog = claimed.len() == place;
        if self.backlog {
            self.watch.turn_off(&self.shared.queue);
        } else if claimed.is_empty() && self.empty_claims < MOST_EMPTY {
            // Due jobs of other types are promoted a bounded number at a time, and ours may be behind them.
            self.empty_claims += 1;
            self.shared.bell.ring();
            return Ok(());
        } else if claimed.is_empty() {
            self.nothing_there();
        }
        self.empty_claims = 0;
        if probes {
            self.probe = claimed.first().map(|ClaimedJob { lease, .. }| (lease.seq, lease.token));
        }
        let since = self.shared.ticks.now();
        let claims = claimed.into_iter().map(|claimed| claim(claimed, since)).collect();
        self.shared.pool.add(claims, ahead / 2);
        Ok(())
    }

    /// How many may be claimed while it is not certain that what comes of them can be recorded, and whether they are to
    /// show that. Each that is run in vain would otherwise be followed by another, and in the end by all.
    fn bound(&self, now: Instant, load: Load) -> (Option<usize>, bool) {
        let probed = self.probe.is_some_and(|probe| self.shared.pool.is_at_work(probe));
        let doubt = self.shared.doubt();
        (doubt.place(now, self.options.concurrency.saturating_sub(load.waiting + load.started), probed), doubt.probes())
    }

    /// Before waiting for hints, one more look: what came before the watch was
    /// on has made no sound.
    fn nothing_there(&mut self) {
        self.backlog = false;
        self.hopeful = !self.options.drain && self.watch.turn_on(&self.shared.queue);
        if self.hopeful {
            self.shared.bell.ring();
        }
    }

    /// There may be something to claim.
    pub(super) fn look(&mut self) {
        self.hopeful = true;
    }

    pub(super) fn worked(&mut self) {
        if self.trouble.over() {
            self.shared.tell(&WorkerEvent::TroubleOver);
        }
    }

    /// Jobs that were decided by someone who is gone: no handler runs.
    pub(super) fn take_over(&mut self) -> Result<()> {
        let taken = self.shared.queue.store().take_over(self.shared.lock.owner().clone(), 64)?;
        for ClaimedJob { lease, job } in taken {
            let run = Arc::new(Run::new(lease));
            self.shared.pool.hold(&run);
            let applier = Arc::clone(&self.shared.files) as _;
            let end = Finished::decided(run, Arc::new(job), applier);
            self.shared.pool.returned(&end.run, end.weight());
            self.shared.finished.push(end);
        }
        Ok(())
    }

    /// What was claimed ahead and has not started in time goes back, so that it
    /// does not wait here while another worker is idle.
    fn give_back_stale(&self, now: Instant) {
        let stopping = self.stopping.is_some();
        let before = if stopping { now } else { now.checked_sub(STALE).unwrap_or(now) };
        for Claim { run, job, .. } in self.shared.pool.take_waiting(now, before, stopping) {
            self.shared.finished.push(Finished::without_running(run, Arc::new(job), None, Step::Release));
        }
    }

    fn is_done(&self) -> bool {
        let load = self.shared.pool.load();
        // What has ended since the last look may have made other jobs claimable.
        let drained = self.options.drain && !self.hopeful && self.looks.is_empty() && !self.shared.bell.is_settled();
        let settled = load.held == 0 || self.finisher_gone;
        settled && load.running == 0 && (self.stopping.is_some() || drained)
    }

    fn next_time(&self, now: Instant) -> Instant {
        // What has failed so would only fail again, at once.
        let fails = self.broken.as_ref().is_some_and(|broken| ends_a_worker(broken.error.kind()));
        let trouble = self.trouble.until(now).max(fails.then(|| now + self.options.poll_interval));
        let mut times = vec![self.upkeep.next(now, trouble, &self.shared, &self.options)];
        times.extend(self.looks.last());
        times.extend(trouble);
        times.extend(self.room.until(now));
        times.extend(self.shared.doubt().until(now));
        times.extend(self.shared.pool.oldest().map(|since| since + STALE));
        times.extend(self.stopping.iter().flat_map(|stopping| stopping.times(self.options.grace)));
        times.into_iter().filter(|time| *time > now).min().unwrap_or(now + self.options.poll_interval)
    }
}

fn claim(claimed: ClaimedJob, since: Instant) -> Claim {
    Claim { run: Arc::new(Run::new(claimed.lease)), job: claimed.job, since }
}

fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|e| Error::new(ErrorKind::Io, format!("cannot start a thread: {e}")))
}
