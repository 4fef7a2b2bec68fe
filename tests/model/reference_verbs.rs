//! The reference, fourth part: what the owner of a claimed job can do.

use jobq::store::{Ending, Pulse};
use jobq::{ErrorKind, Status};

use crate::op::{Answer, Applied, JobNo, LeaseRef, Report, Request};
use crate::reference::{Decided, Effect, LONGEST_PAUSE, Outcome, Pause, Reference, Run};

impl Reference {
    /// The job, if this lease is its newest and somebody has it or it ended.
    fn under(&self, lease: LeaseRef) -> Outcome<usize> {
        let at = self.position(lease.job).ok_or(ErrorKind::NotFound)?;
        let job = &self.jobs[at];
        let unowned = job.status == Status::Claimed && job.owner.is_none();
        if job.token != lease.token || unowned { Err(ErrorKind::LeaseLost) } else { Ok(at) }
    }

    fn current(&self, lease: LeaseRef) -> Outcome<usize> {
        let at = self.under(lease)?;
        if self.jobs[at].status == Status::Claimed { Ok(at) } else { Err(ErrorKind::LeaseLost) }
    }

    fn undecided(&self, lease: LeaseRef) -> Outcome<usize> {
        let at = self.current(lease)?;
        if self.jobs[at].decided.is_none() { Ok(at) } else { Err(ErrorKind::WrongState) }
    }

    pub fn heartbeat(&mut self, lease: LeaseRef, progress: bool) -> Pulse {
        let Ok(at) = self.current(lease) else { return Pulse::Lost };
        let job = &mut self.jobs[at];
        job.heartbeat += 1;
        if progress {
            job.tell("progress");
        }
        if job.cancel_requested { Pulse::CancelRequested } else { Pulse::Alive }
    }

    pub fn complete(&mut self, lease: LeaseRef, follow_ups: &[Request]) -> Outcome<Ending> {
        let at = self.under(lease)?;
        match self.jobs[at].status {
            Status::Completed => return Ok(Ending::Done),
            Status::Claimed => {}
            _ => return Err(ErrorKind::LeaseLost),
        }
        self.undecided(lease)?;
        if self.jobs[at].cancel_requested {
            self.end(at, Status::Cancelled);
            return Ok(Ending::Cancelled);
        }
        let mut after = self.clone();
        // Completed first, then the follow-ups: one with the key of the job
        // that asks for it is a new job.
        after.end(at, Status::Completed);
        after.enqueue(follow_ups).map_err(of_a_follow_up)?;
        *self = after;
        Ok(Ending::Done)
    }

    pub fn decide(&mut self, lease: LeaseRef, paths: &[u8], follow_ups: &[Request]) -> Outcome<Ending> {
        let at = self.current(lease)?;
        if self.jobs[at].decided.is_some() {
            return Ok(Ending::Done);
        }
        if self.jobs[at].cancel_requested {
            self.end(at, Status::Cancelled);
            return Ok(Ending::Cancelled);
        }
        self.clone().enqueue(follow_ups).map_err(of_a_follow_up)?;
        let taken_by_others = |path: &u8| {
            self.jobs
                .iter()
                .any(|other| other.no != lease.job && other.status == Status::Claimed && other.holds.contains(path))
        };
        if paths.iter().any(taken_by_others) {
            return Err(ErrorKind::PathBusy);
        }
        let job = &mut self.jobs[at];
        for path in paths {
            if !job.holds.contains(path) {
                job.holds.push(*path);
            }
        }
        let effects = paths.iter().map(|path| Effect { path: *path, applied: false }).collect();
        job.decided = Some(Decided { effects, follow_ups: follow_ups.to_vec() });
        job.tell("decided");
        let (no, keys) = (job.no, job.holds.clone());
        for run in self.runs.iter_mut().filter(|run| run.job == no && run.ended_moment.is_none()) {
            run.keys.clone_from(&keys);
        }
        Ok(Ending::Done)
    }

    pub fn apply(&mut self, lease: LeaseRef, report: Report) -> Outcome<Answer> {
        let at = self.under(lease)?;
        if self.jobs[at].status == Status::Completed {
            return Ok(Answer::Application { outcome: Applied::Completed, shown: None });
        }
        self.current(lease)?;
        let decided = self.jobs[at].decided.clone().ok_or(ErrorKind::WrongState)?;
        let shown: Vec<u8> = decided.effects.iter().filter(|e| !e.applied).map(|e| e.path).collect();
        let outcome = match report {
            Report::Applied { stamp } => {
                self.put_on_disk(at, &shown, stamp);
                self.end(at, Status::Completed);
                for request in &decided.follow_ups {
                    // What can no longer be queued does not undo what is on disk.
                    let _ = self.accept(request);
                }
                Applied::Completed
            }
            Report::Conflict { on_disk, stamp } => {
                self.put_on_disk(at, &shown[..on_disk.min(shown.len())], stamp);
                self.end(at, Status::Failed);
                Applied::Conflict
            }
            Report::Deferred { delay } => {
                let job = &mut self.jobs[at];
                let delay = delay.max((2 * job.put_off).min(30_000));
                job.put_off = delay;
                job.owner = None;
                job.run_at = Some(self.now + delay);
                job.backoff_max = job.backoff_max.max(delay);
                job.tell("rescheduled");
                Applied::Deferred
            }
        };
        Ok(Answer::Application { outcome, shown: Some(shown) })
    }

    fn put_on_disk(&mut self, at: usize, paths: &[u8], stamp: i64) {
        let effects = self.jobs[at].decided.iter_mut().flat_map(|decided| &mut decided.effects);
        for effect in effects.filter(|effect| paths.contains(&effect.path)) {
            effect.applied = true;
            self.disk[usize::from(effect.path)] = Some(stamp);
        }
    }

    pub fn reschedule(&mut self, lease: LeaseRef, delay: i64, pause: Option<i64>) -> Outcome<Ending> {
        let at = self.undecided(lease)?;
        let job = &mut self.jobs[at];
        if let Some(pause) = pause {
            let new = Pause { since: self.now, until: self.now + pause.min(LONGEST_PAUSE) };
            let known = &mut self.pauses[usize::from(job.job_type)];
            // The longer one counts, if it can be believed.
            *known = known.filter(|known| known.since <= self.now && known.until >= new.until).or(Some(new));
        }
        if job.cancel_requested {
            self.end(at, Status::Cancelled);
            return Ok(Ending::Cancelled);
        }
        if pause.is_none() && job.attempts >= job.max_attempts {
            self.end(at, Status::Failed);
            return Ok(Ending::Failed);
        }
        job.tell("rescheduled");
        // It was told to wait: it has run, but that does not count as an attempt.
        job.attempts -= u32::from(pause.is_some());
        job.run_at = Some(self.now + delay);
        job.backoff_max = job.backoff_max.max(delay);
        self.back_to_pending(at, true);
        Ok(Ending::Done)
    }

    pub fn fail(&mut self, lease: LeaseRef) -> Outcome<Ending> {
        if self.jobs[self.under(lease)?].status == Status::Failed {
            return Ok(Ending::Done);
        }
        let at = self.undecided(lease)?;
        let cancelled = self.jobs[at].cancel_requested;
        self.end(at, if cancelled { Status::Cancelled } else { Status::Failed });
        Ok(if cancelled { Ending::Cancelled } else { Ending::Done })
    }

    pub fn release(&mut self, lease: LeaseRef) -> Outcome<Ending> {
        let at = self.undecided(lease)?;
        if self.jobs[at].cancel_requested {
            self.end(at, Status::Cancelled);
            return Ok(Ending::Cancelled);
        }
        self.jobs[at].tell("released");
        self.back_to_pending(at, false);
        Ok(Ending::Done)
    }

    pub fn acknowledge_cancel(&mut self, lease: LeaseRef) -> Outcome<Ending> {
        let at = self.undecided(lease)?;
        if !self.jobs[at].cancel_requested {
            return Err(ErrorKind::WrongState);
        }
        self.end(at, Status::Cancelled);
        Ok(Ending::Cancelled)
    }

    pub fn back_to_pending(&mut self, at: usize, attempt_counts: bool) {
        let job = &mut self.jobs[at];
        job.status = Status::Pending;
        job.owner = None;
        job.attempts -= u32::from(!attempt_counts);
        job.due = job.run_at.is_none_or(|time| time <= self.now);
        job.backing_off = true;
        let no = job.no;
        self.end_run(no, attempt_counts);
    }

    /// Ends a pending or claimed job, with all that follows for those that wait on it.
    pub fn end(&mut self, at: usize, status: Status) {
        self.end_run(self.jobs[at].no, true);
        let (now, moment) = (self.now, self.moment);
        let job = &mut self.jobs[at];
        job.status = status;
        job.owner = None;
        job.ended_at = Some(now);
        job.ended_moment = moment;
        job.tell(status.as_str());
        let no = job.no;
        let waiters: Vec<usize> = (0..self.jobs.len()).filter(|&i| self.jobs[i].waiting_on == Some(no)).collect();
        for waiter in waiters {
            match status {
                Status::Completed => {
                    let job = &mut self.jobs[waiter];
                    job.waiting_on = None;
                    job.due = job.run_at.is_none_or(|time| time <= now);
                }
                Status::Cancelled if self.jobs[waiter].status == Status::Pending => self.end(waiter, status),
                _ => {}
            }
        }
    }

    pub fn begin_run(&mut self, at: usize) {
        let job = &self.jobs[at];
        self.moment += 1;
        let keys = job.holds.clone();
        self.runs.push(Run { job: job.no, order: job.order, keys, ended_moment: None, counts: true });
    }

    fn end_run(&mut self, no: JobNo, counts: bool) {
        self.moment += 1;
        let moment = self.moment;
        for run in self.runs.iter_mut().filter(|run| run.job == no && run.ended_moment.is_none()) {
            run.ended_moment = Some(moment);
            run.counts = counts;
        }
    }
}

/// It is not the job that asks for it that is not found.
fn of_a_follow_up(kind: ErrorKind) -> ErrorKind {
    if kind == ErrorKind::NotFound { ErrorKind::Invalid } else { kind }
}
