//! One attempt: from the payload to the one step the store is asked for.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Shared;
use super::keep::Hurt;
use super::pool::Running;
use super::prepare::prepare;
use super::report::WorkerEvent;
use super::span;
use crate::effects::Files;
use crate::handler::{Context, HandlerError, Run, Stop, Verdict, timed_out};
use crate::job::Job;
use crate::payload::check_text;
use crate::store::{Applier, Decision, EnqueueJob, Failure, Lease, PlannedEffect, Step};

/// What came of an attempt, not durable yet.
pub(super) struct Finished {
    pub(super) run: Arc<Run>,
    pub(super) job: Arc<Job>,
    pub(super) slot: Option<usize>,
    pub(super) step: Step,
    pub(super) result: Option<String>,
    pub(super) failure: Option<Failure>,
    pub(super) duration: Duration,
    /// There was no room on the disk.
    pub(super) disk_full: bool,
    /// Effects that take what is there, whatever it is.
    take_any: Vec<usize>,
    /// What it has staged is known to be durable.
    pub(super) sealed: bool,
    /// Since when it cannot be decided because another job is at work on a path.
    pub(super) busy_since: Option<Instant>,
    pub(super) hurt: Hurt,
}

/// The part of a recorded outcome that hooks are told.
#[derive(serde::Deserialize)]
struct Decided {
    result: Option<Box<serde_json::value::RawValue>>,
}

impl Finished {
    /// A job that someone else has decided.
    pub(super) fn decided(run: Arc<Run>, job: Arc<Job>, applier: Arc<dyn Applier>) -> Self {
        let outcome = job.outcome.as_ref().map(|text| serde_json::from_str::<Decided>(text.as_str()));
        let result = outcome.and_then(|outcome| outcome.ok()?.result).map(|result| result.get().to_owned());
        Self { result, ..Self::without_running(run, job, None, Step::Apply(applier)) }
    }

    /// A job that is not run, or not any more, and takes this step.
    pub(super) fn without_running(run: Arc<Run>, job: Arc<Job>, slot: Option<usize>, step: Step) -> Self {
        Self {
            run,
            job,
            slot,
            step,
            result: None,
            failure: None,
            duration: Duration::ZERO,
            disk_full: false,
            take_any: Vec::new(),
            sealed: false,
            busy_since: None,
            hurt: Hurt::default(),
        }
    }

    /// It comes to nothing after all.
    pub(super) fn come_to_nothing(&mut self, error: HandlerError) {
        self.disk_full = error.verdict == Verdict::DiskFull;
        self.step = step_after(&error, &self.run, &self.job);
        self.failure = Some(error.failure);
    }

    /// What it keeps in memory, in bytes, as far as that can be much.
    pub(super) fn weight(&self) -> usize {
        let follow_ups: &[EnqueueJob] = match &self.step {
            Step::Complete { follow_ups, .. } | Step::Decide(Decision { follow_ups, .. }) => follow_ups,
            _ => &[],
        };
        let outcome = self.job.outcome.as_ref().map_or(0, |text| text.as_str().len());
        // The step has it too.
        let result = self.result.as_ref().map_or(0, |text| 2 * text.len());
        let left =
            self.failure.as_ref().and_then(|failure| failure.result.as_ref()).map_or(0, |text| text.as_str().len());
        let queued: usize = follow_ups.iter().map(|job| job.payload.len()).sum();
        self.job.payload.as_str().len() + outcome + result + left + queued
    }

    /// The handler has done its work, and this tells what came of it.
    pub(super) fn has_an_outcome(&self) -> bool {
        matches!(self.step, Step::Decide(_) | Step::Complete { .. })
    }

    /// What it is about to decide to do to files.
    pub(super) fn effects(&self) -> &[PlannedEffect] {
        if let Step::Decide(decision) = &self.step { &decision.effects } else { &[] }
    }

    /// How long it may wait for a path: as long as an attempt may take.
    pub(super) fn patience(&self) -> Duration {
        self.job.timeout.and_then(|millis| u64::try_from(millis).ok()).map_or(Duration::MAX, Duration::from_millis)
    }

    /// What the store is asked for. A decision that takes what is there is not
    /// recorded if that has changed since.
    pub(super) fn request(&self, files: &Arc<Files>) -> (Lease, Step) {
        let step = match &self.step {
            Step::Decide(decision) if !self.take_any.is_empty() => {
                let (files, take_any) = (Arc::clone(files), self.take_any.clone());
                let still_so = move |decision: &Decision| {
                    take_any.iter().all(|index| files.looks_as_planned(&decision.effects[*index]))
                };
                Step::DecideIf(decision.clone(), Arc::new(still_so))
            }
            step => step.clone(),
        };
        (self.run.lease.clone(), step)
    }

    /// Takes note of what is there now, where anything will do: another job may
    /// have changed it since the handler looked, and whoever takes anything comes
    /// on top of that.
    pub(super) fn look_again(&mut self, files: &Files) -> Result<(), HandlerError> {
        let Step::Decide(decision) = &mut self.step else { return Ok(()) };
        for index in &self.take_any {
            let effect = &mut decision.effects[*index];
            if files.looks_as_planned(effect) {
                continue;
            }
            (effect.precondition, effect.observed) = files.look(&effect.path)?.into_precondition();
        }
        Ok(())
    }
}

/// A thread that runs jobs until there are no more.
pub(super) fn runner(shared: &Arc<Shared>) {
    while let Some(running) = shared.pool.next(|| shared.ticks.now()) {
        let run = Arc::clone(&running.run);
        let finished = attempt(shared, running);
        shared.pool.returned(&run, finished.weight());
        // Whoever is first tells the end of it; twice would free its slot twice.
        if run.abandoned.swap(true, Ordering::AcqRel) {
            // Given up meanwhile: another thread is in this one's place, which is not lost any more.
            shared.lost_threads.fetch_sub(1, Ordering::AcqRel);
            // What it has staged since is of no use to anyone.
            shared.files.discard(&run.lease);
            return;
        }
        shared.finished.push(finished);
    }
}

fn attempt(shared: &Arc<Shared>, running: Running) -> Finished {
    let Running { run, job, slot, started } = running;
    // On record before the handler is called: if it takes the process with it, this attempt counts.
    if let Err(error) = shared.lock.start(slot, run.lease.seq, run.lease.token) {
        tracing::error!(job_id = job.id, %error, "cannot note that a job starts; it goes back");
        let released = Finished::without_running(run, job, Some(slot), Step::Release);
        return Finished { disk_full: true, ..released };
    }
    shared.tell(&WorkerEvent::AttemptStarted {
        job_id: job.id.clone(),
        job_type: job.job_type.clone(),
        attempt: job.attempts,
    });
    let outcome = span::attempt(&job).in_scope(|| perform(shared, &run, &job));
    let duration = shared.ticks.now().saturating_duration_since(started);
    let mut finished = Finished { duration, ..Finished::without_running(run, job, Some(slot), Step::Release) };
    match outcome {
        Ok((step, take_any)) => {
            finished.take_any = take_any;
            finished.result = match &step {
                Step::Complete { result, .. } | Step::Decide(Decision { result, .. }) => result.clone(),
                _ => None,
            };
            finished.step = step;
        }
        Err(error) => {
            let error = as_told(error, &finished.run);
            if error.verdict == Verdict::RuntimeEnded {
                shared.runtime_ended(&finished.job.job_type);
            }
            finished.come_to_nothing(heed(error, shared.shutting_down.load(Ordering::Acquire)));
        }
    }
    finished
}

/// The handler, and what it returned made ready to be recorded.
fn perform(shared: &Arc<Shared>, run: &Arc<Run>, job: &Job) -> Result<(Step, Vec<usize>), HandlerError> {
    let handler = shared.registry.get(&job.job_type).ok_or_else(|| {
        HandlerError::retry(format_args!("no handler for {}", job.job_type)).with_code("internal_error")
    })?;
    let ctx = Context::of(
        job,
        Arc::clone(run),
        Arc::clone(&shared.queue),
        Arc::clone(&shared.files),
        shared.programs.clone(),
        Arc::clone(&shared.shutting_down),
    );
    if run.stop().is_some() {
        // Called off, or lost, while it waited for a thread.
        ctx.check()?;
    }
    // A forged row may have skipped admission, so the payload is checked again.
    check_text(job.payload.as_str())?;
    let prepared = catch_unwind(AssertUnwindSafe(|| handler.run(&ctx, job))).unwrap_or_else(|panic| {
        let error = HandlerError::retry(format_args!("the handler panicked: {}", words(panic.as_ref())));
        forget(panic);
        Err(error.with_code("handler_panic"))
    })?;
    prepare(shared, run, job, prepared)
}

/// A handler that stopped because its time was over may call that what it
/// likes; on record it is a timeout.
fn as_told(error: HandlerError, run: &Run) -> HandlerError {
    if run.stop() != Some(Stop::TimedOut) || !error.is_retryable() || error.code() == "job_timeout" {
        return error;
    }
    let mut told = timed_out();
    told.verdict = error.verdict;
    told.failure.message = format!("{}; the handler said {error}", told.failure.message);
    let Failure { details, result, pause, .. } = error.failure;
    (told.failure.details, told.failure.result, told.failure.pause) = (details, result, pause);
    told
}

/// Let go for no reason, a job would be claimed again at once, for ever.
fn heed(mut error: HandlerError, shutting_down: bool) -> HandlerError {
    if error.verdict == Verdict::Release && !shutting_down {
        error.verdict = Verdict::Retry(None);
    }
    error
}

/// What an error leads to. Why the handler was told to stop says more than what
/// it made of that.
fn step_after(error: &HandlerError, run: &Run, job: &Job) -> Step {
    match (run.stop(), error.verdict) {
        (Some(Stop::Cancelled), _) | (_, Verdict::Cancelled) => Step::AcknowledgeCancel,
        (Some(Stop::ShutDown), _) | (_, Verdict::Release | Verdict::DiskFull | Verdict::RuntimeEnded) => Step::Release,
        (_, Verdict::Permanent) => Step::Fail(error.failure.clone()),
        (_, Verdict::Retry(after)) => Step::Reschedule {
            failure: error.failure.clone(),
            delay: after.unwrap_or_else(|| job.backoff().delay(job.attempts, fastrand::f64())),
        },
    }
}

/// A panic's payload may panic itself when it is dropped.
pub(super) fn forget(panic: Box<dyn Any + Send>) {
    std::mem::forget(panic);
}

fn words(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// When a handler that was told to stop is no longer waited for.
pub(super) fn given_up_at(deadline: Instant) -> Instant {
    deadline + Duration::from_secs(5)
}
