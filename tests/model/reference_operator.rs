//! The reference, last part: what happens to jobs from outside: cancel,
//! retry, reclaim, prune.

use jobq::store::{CancelOutcome, Started};
use jobq::{ErrorKind, Status};

use crate::op::{Answer, JobNo, LeaseRef, Leased, TakenBack};
use crate::reference::{Outcome, RefJob, Reference};

impl Reference {
    pub fn cancel(&mut self, no: JobNo) -> Outcome<Answer> {
        let at = self.position(no).ok_or(ErrorKind::NotFound)?;
        let before = self.with_status(Status::Cancelled);
        let outcome = match self.jobs[at].status {
            Status::Pending => {
                self.end(at, Status::Cancelled);
                CancelOutcome::Cancelled
            }
            Status::Claimed if self.jobs[at].decided.is_some() => return Err(ErrorKind::WrongState),
            Status::Claimed => {
                self.jobs[at].cancel_requested = true;
                CancelOutcome::Requested
            }
            Status::Cancelled => CancelOutcome::AlreadyCancelled,
            Status::Completed => return Err(ErrorKind::WrongState),
            Status::Failed => {
                let waiters = self.pending_waiters(no);
                if waiters.is_empty() {
                    return Err(ErrorKind::WrongState);
                }
                for waiter in waiters {
                    let at = self.position(waiter).expect("just found");
                    self.end(at, Status::Cancelled);
                }
                CancelOutcome::WaitersOnly
            }
        };
        let mut waiters = self.with_status(Status::Cancelled);
        waiters.retain(|other| *other != no && !before.contains(other));
        Ok(Answer::Cancellation { outcome, waiters })
    }

    fn with_status(&self, status: Status) -> Vec<JobNo> {
        let mut found: Vec<JobNo> = self.jobs.iter().filter(|job| job.status == status).map(|job| job.no).collect();
        found.sort_unstable();
        found
    }

    pub fn pending_waiters(&self, no: JobNo) -> Vec<JobNo> {
        let waits = |job: &&RefJob| job.waiting_on == Some(no) && job.status == Status::Pending;
        self.jobs.iter().filter(waits).map(|job| job.no).collect()
    }

    pub fn retry(&mut self, no: JobNo) -> Outcome<Status> {
        let at = self.position(no).ok_or(ErrorKind::NotFound)?;
        let job = &self.jobs[at];
        let parent = job.waiting_on.and_then(|parent| self.job(parent));
        let parent_is_over = parent.is_some_and(|parent| !parent.unfinished());
        let key_taken = job.key.is_some()
            && self.jobs.iter().any(|o| o.unfinished() && o.job_type == job.job_type && o.key == job.key);
        let decided = job.decided.is_some();
        let busy = decided && self.jobs.iter().any(|other| other.status == Status::Claimed && share_key(other, job));
        if !matches!(job.status, Status::Failed | Status::Cancelled)
            || self.overtaken(job)
            || key_taken
            || parent_is_over
            || busy
        {
            return Err(ErrorKind::WrongState);
        }
        let job = &mut self.jobs[at];
        job.ended_at = None;
        job.run_at = None;
        job.due = true;
        job.backing_off = false;
        job.cancel_requested = false;
        job.put_off = 0;
        if decided {
            job.status = Status::Claimed;
            job.tell("retried");
            self.begin_run(at);
        } else {
            job.status = Status::Pending;
            job.attempts = 0;
            job.tell("retried");
        }
        Ok(self.jobs[at].status)
    }

    /// Whether a later job has been at work on one of its keys since it ended.
    fn overtaken(&self, job: &RefJob) -> bool {
        self.runs.iter().any(|run| {
            run.order > job.order
                && run.counts
                && run.ended_moment.is_none_or(|moment| moment > job.ended_moment)
                && run.keys.iter().any(|key| job.holds.contains(key))
        })
    }

    pub fn reclaim_dead(&mut self, worker: u8, started: Option<&[LeaseRef]>) -> TakenBack {
        let mut taken = TakenBack::default();
        let of_worker: Vec<usize> = (0..self.jobs.len()).filter(|&at| self.jobs[at].owner == Some(worker)).collect();
        for at in of_worker {
            let started = match started {
                None => Started::Unknown,
                Some(started) if started.contains(&self.jobs[at].lease()) => Started::Yes,
                Some(_) => Started::No,
            };
            self.take_back(at, started, &mut taken);
        }
        self.owners_on_record.retain(|other| *other != worker);
        taken.sorted()
    }

    pub fn reclaim_lapsed(&mut self, lease: LeaseRef, heartbeat: i64, started: Started) -> TakenBack {
        let mut taken = TakenBack::default();
        let silent = |job: &RefJob| job.lease() == lease && job.status == Status::Claimed && job.heartbeat == heartbeat;
        if let Some(at) = self.jobs.iter().position(|job| silent(job) && job.owner.is_some()) {
            self.take_back(at, started, &mut taken);
        }
        taken.sorted()
    }

    fn take_back(&mut self, at: usize, started: Started, taken: &mut TakenBack) {
        let job = &mut self.jobs[at];
        let no = job.no;
        job.tell("worker_lost");
        if job.decided.is_some() {
            job.tell("reclaimed");
            job.owner = None;
            job.run_at = None;
            taken.unowned.push(no);
        } else if job.cancel_requested {
            self.end(at, Status::Cancelled);
            taken.cancelled.push(no);
        } else if started == Started::Yes && job.attempts >= job.max_attempts {
            self.end(at, Status::Failed);
            taken.failed.push(no);
        } else {
            job.tell("reclaimed");
            self.back_to_pending(at, started != Started::No);
            taken.pending.push(no);
        }
    }

    pub fn leases(&self) -> Vec<Leased> {
        let held = |job: &RefJob| {
            let worker = job.owner?;
            let owner_on_record = self.owners_on_record.contains(&worker);
            Some(Leased { lease: job.lease(), heartbeat: job.heartbeat, worker, owner_on_record })
        };
        self.jobs.iter().filter_map(held).collect()
    }

    pub fn prune(&mut self, ended_before: i64, failed: bool) -> u64 {
        let waited_on: Vec<JobNo> = self.jobs.iter().filter_map(|job| job.waiting_on).collect();
        let before = self.jobs.len();
        self.jobs.retain(|job| {
            let old = job.ended_at.is_some_and(|time| time < ended_before);
            let kind = matches!(job.status, Status::Completed | Status::Cancelled) || (failed && !job.unfinished());
            !(old && kind) || waited_on.contains(&job.no)
        });
        (before - self.jobs.len()) as u64
    }
}

fn share_key(a: &RefJob, b: &RefJob) -> bool {
    a.holds.iter().any(|key| b.holds.contains(key))
}

impl TakenBack {
    pub fn sorted(mut self) -> Self {
        for list in [&mut self.pending, &mut self.failed, &mut self.cancelled, &mut self.unowned] {
            list.sort_unstable();
        }
        self
    }
}
