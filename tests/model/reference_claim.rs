//! The reference, third part: who gets which job, and when its time has come.

use jobq::{Gate, Status};

use crate::op::{JobNo, Taken};
use crate::reference::{RefJob, Reference};

impl Reference {
    pub fn claim(&mut self, worker: u8, types: &[u8], limit: u32, limits: &[(u8, u32)]) -> Vec<Taken> {
        let now = self.now;
        // Those that are over, or that nobody believes, are forgotten.
        for pause in &mut self.pauses {
            *pause = pause.filter(|pause| pause.since <= now && now < pause.until);
        }
        for job in self.jobs.iter_mut().filter(|job| job.status == Status::Pending && job.waiting_on.is_none()) {
            job.due |= time_has_come(job.run_at, job.backing_off.then_some(job.backoff_max), now);
        }
        let mut best: Vec<&RefJob> = self
            .jobs
            .iter()
            .filter(|job| types.contains(&job.job_type) && self.gate(job) == Some(Gate::Ready))
            .filter(|job| self.pauses[usize::from(job.job_type)].is_none())
            .collect();
        best.sort_by_key(|job| (-i64::from(job.priority), job.order));
        for (job_type, most) in limits {
            let runs =
                |job: &&RefJob| job.job_type == *job_type && job.status == Status::Claimed && job.decided.is_none();
            let mut room = (*most as usize).saturating_sub(self.jobs.iter().filter(runs).count());
            best.retain(|job| {
                let fits = job.job_type != *job_type || room > 0;
                room = room.saturating_sub(usize::from(job.job_type == *job_type));
                fits
            });
        }
        let chosen: Vec<JobNo> = best.iter().take(limit as usize).map(|job| job.no).collect();
        chosen.into_iter().map(|no| self.hand_out(no, worker, true)).collect()
    }

    pub fn take_over(&mut self, worker: u8, limit: u32) -> Vec<Taken> {
        let mut free: Vec<&RefJob> = self
            .jobs
            .iter()
            .filter(|job| job.status == Status::Claimed && job.owner.is_none())
            .filter(|job| time_has_come(job.run_at, Some(job.backoff_max), self.now))
            .collect();
        free.sort_by_key(|job| (job.run_at, job.order));
        free.truncate(limit as usize);
        free.sort_by_key(|job| job.order);
        let chosen: Vec<JobNo> = free.iter().map(|job| job.no).collect();
        chosen.into_iter().map(|no| self.hand_out(no, worker, false)).collect()
    }

    fn hand_out(&mut self, no: JobNo, worker: u8, to_be_run: bool) -> Taken {
        if !self.owners_on_record.contains(&worker) {
            self.owners_on_record.push(worker);
        }
        let at = self.position(no).expect("chosen from the list");
        let job = &mut self.jobs[at];
        job.status = Status::Claimed;
        job.owner = Some(worker);
        job.token += 1;
        job.heartbeat = 0;
        job.attempts += u32::from(to_be_run);
        job.tell("claimed");
        let taken = Taken { lease: job.lease(), attempts: job.attempts };
        if to_be_run {
            self.begin_run(at);
        }
        taken
    }
}

/// A backoff farther away than the longest one was computed by a clock that
/// has since been set back.
fn time_has_come(run_at: Option<i64>, longest_backoff: Option<i64>, now: i64) -> bool {
    run_at.is_none_or(|time| time <= now || longest_backoff.is_some_and(|longest| time - longest > now))
}
