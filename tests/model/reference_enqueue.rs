//! The reference, second part: which requests become jobs.

use jobq::{ErrorKind, Status};

use crate::op::{Accepted, Request, Rule};
use crate::reference::{Outcome, RefJob, Reference};

impl Reference {
    /// All of them or none.
    pub fn enqueue(&mut self, requests: &[Request]) -> Outcome<Vec<Accepted>> {
        let mut after = self.clone();
        let answers = requests.iter().map(|request| after.accept(request)).collect::<Outcome<Vec<_>>>()?;
        *self = after;
        Ok(answers)
    }

    pub fn accept(&mut self, request: &Request) -> Outcome<Accepted> {
        let existing = |job: &RefJob| Accepted {
            job: job.no,
            status: job.status,
            inserted: false,
            same_payload: job.payload == request.payload,
        };
        if request.id_given
            && let Some(job) = self.job(request.no)
        {
            let same = job.job_type == request.job_type && job.payload == request.payload;
            return if same { Ok(existing(job)) } else { Err(ErrorKind::Conflict) };
        }
        if let Some(job) = self.duplicate_of(request) {
            return Ok(existing(job));
        }
        let waiting_on = match request.waiting_on {
            None => None,
            Some(parent) => match self.job(parent).ok_or(ErrorKind::NotFound)?.status {
                Status::Completed => None,
                Status::Failed | Status::Cancelled => return Err(ErrorKind::WrongState),
                Status::Pending | Status::Claimed => Some(parent),
            },
        };
        self.accepted += 1;
        self.jobs.push(RefJob {
            no: request.no,
            job_type: request.job_type,
            payload: request.payload,
            key: match request.rule {
                Rule::Key(key) | Rule::KeyAlways(key) => Some(key),
                Rule::Never | Rule::NewestHolder => None,
            },
            holds: request.holds.clone(),
            priority: request.priority,
            run_at: request.run_at,
            due: request.run_at.is_none_or(|time| time <= self.now),
            backing_off: false,
            backoff_max: request.backoff_max,
            attempts: 0,
            max_attempts: request.max_attempts,
            waiting_on,
            status: Status::Pending,
            token: 0,
            heartbeat: 0,
            owner: None,
            cancel_requested: false,
            decided: None,
            put_off: 0,
            ended_at: None,
            ended_moment: 0,
            events: vec![("queued", 0)],
            order: self.accepted,
        });
        Ok(Accepted { job: request.no, status: Status::Pending, inserted: true, same_payload: true })
    }

    fn duplicate_of(&self, request: &Request) -> Option<&RefJob> {
        let with_key = |key: u8, unfinished: bool| {
            let same = move |job: &&RefJob| {
                job.job_type == request.job_type && job.key == Some(key) && job.unfinished() == unfinished
            };
            self.jobs.iter().rev().find(same)
        };
        match request.rule {
            Rule::Never => None,
            Rule::Key(key) => with_key(key, true),
            Rule::KeyAlways(key) => with_key(key, true).or_else(|| with_key(key, false)),
            Rule::NewestHolder => {
                let newest = |key: &u8| self.jobs.iter().rev().find(|job| job.unfinished() && job.holds.contains(key));
                let first = newest(request.holds.first()?)?;
                let on_all = request.holds.iter().all(|key| newest(key).is_some_and(|job| job.no == first.no));
                // One that is about to be called off stands for nobody.
                let same = first.job_type == request.job_type && first.payload == request.payload;
                (on_all && same && !first.cancel_requested).then_some(first)
            }
        }
    }
}
