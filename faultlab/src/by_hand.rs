//! A worker without threads: the verbs of a job's life one after the other, so
//! that every call of it has its number.

use std::sync::Arc;

use jobq::effects::{Content, Expect, FileEffect, Files};
use jobq::handlers::CreateFile;
use jobq::liveness::OwnerLock;
use jobq::store::{
    Application, Beat, ClaimRequest, ClaimedJob, Completion, Decision, Dedup, Ending, EnqueueJob, Limits,
    PlannedEffect, Progress, Store as _,
};
use jobq::{Backoff, Queue, Unique, sha256_hex};

use crate::child::{Child, Deed};
use crate::jobs::{self, Note};
use crate::said::Said;

pub struct Hand<'c> {
    child: &'c Child,
    pub queue: &'c Queue,
    lock: OwnerLock,
    files: Arc<Files>,
}

impl<'c> Hand<'c> {
    pub fn new(child: &'c Child, queue: &'c Queue) -> Deed<Self> {
        let lock = child.attempt(|| OwnerLock::acquire(&queue.owners_folder()))?;
        let files = child.attempt(|| {
            Files::open(queue.root(), queue.state_folder(), &lock.owner().locked_by)?.protecting(queue.database())
        })?;
        Ok(Self { child, queue, lock, files: Arc::new(files) })
    }

    /// Runs all that can be run now, also what the dead have left.
    pub fn drain(&self) -> Deed {
        self.child.attempt(|| self.queue.reclaim())?;
        loop {
            let claimed = self.claim(2)?;
            if claimed.is_empty() {
                return Ok(());
            }
            for job in claimed {
                self.start(&job)?;
                match job.job.job_type.as_str() {
                    "note" => self.complete(&job)?,
                    _ => self.create_file(&job)?,
                }
            }
        }
    }

    pub fn claim(&self, limit: u32) -> Deed<Vec<ClaimedJob>> {
        let types = self.queue.types().names();
        let request = ClaimRequest { owner: self.lock.owner().clone(), types, limit, limits: Limits::new() };
        let claimed = self.child.attempt(|| self.queue.store().claim(request.clone()))?;
        for job in &claimed {
            self.child.tell(&Said::Claimed(job.lease.id.clone()));
        }
        Ok(claimed)
    }

    /// On record first: from here on the attempt counts.
    pub fn start(&self, job: &ClaimedJob) -> Deed {
        self.child.attempt(|| self.lock.start(0, job.lease.seq, job.lease.token))?;
        self.child.tell(&Said::Run(job.lease.id.clone()));
        Ok(())
    }

    pub fn beat(&self, job: &ClaimedJob, checkpoint: u64) -> Deed {
        let progress = Progress { percent: 10, message: Some(format!("at {checkpoint}")) };
        let beat =
            Beat { lease: job.lease.clone(), progress: Some(progress), checkpoint: Some(checkpoint.to_string()) };
        self.child.attempt(|| self.queue.store().heartbeat(vec![beat.clone()]))?;
        self.child.tell(&Said::Checkpoint(job.lease.id.clone(), checkpoint));
        Ok(())
    }

    fn complete(&self, job: &ClaimedJob) -> Deed {
        let note: Note = serde_json::from_str(job.job.payload.as_str()).unwrap();
        let follow_ups = note.next.iter().map(|name| follow_up(name)).collect();
        let completion = Completion { lease: job.lease.clone(), result: Some("1".to_owned()), follow_ups };
        let next: Vec<String> = completion.follow_ups.iter().map(|job| job.id.clone()).collect();
        let ending = self.child.attempt(|| self.queue.store().complete(vec![completion.clone()])?.remove(0))?;
        assert_eq!(ending, Ending::Done);
        self.child.tell(&Said::Completed(job.lease.id.clone()));
        for id in next {
            self.child.tell(&Said::Stored(id));
        }
        Ok(())
    }

    /// As the handler of `create_file` and the worker do it.
    fn create_file(&self, job: &ClaimedJob) -> Deed {
        let payload: CreateFile = serde_json::from_str(job.job.payload.as_str()).unwrap();
        let content = payload.content.clone().unwrap();
        let effects = self.child.attempt(|| self.staged(job, &payload.path, content.as_bytes()))?;
        let decision = Decision { effects, ..Decision::default() };
        self.child.attempt(|| self.queue.store().decide(job.lease.clone(), decision.clone()))?;
        self.child.tell(&Said::Decided(job.lease.id.clone()));
        let applied =
            self.child.attempt(|| self.queue.store().apply(job.lease.clone(), Arc::clone(&self.files) as _))?;
        match applied {
            Application::Completed => self.child.tell(&Said::Completed(job.lease.id.clone())),
            // Somebody else's from here on, or nobody's for a while.
            Application::Deferred(why) => self.child.failed(jobq::ErrorKind::Io, &why),
            other => panic!("{other:?}"),
        }
        Ok(())
    }

    fn staged(&self, job: &ClaimedJob, path: &str, content: &[u8]) -> jobq::Result<Vec<PlannedEffect>> {
        let number = self.child.staged.replace(self.child.staged.get() + 1);
        let staged = self.files.stage_bytes(&job.lease, number, content)?;
        let put = FileEffect::Put { path: path.to_owned(), content: Content::Staged(staged), expect: Expect::Absent };
        let effects = self.files.plan_all(vec![put])?;
        self.files.sync_stage()?;
        self.files.confirm_staged(&effects)?;
        Ok(effects)
    }
}

/// A note that is queued by the end of another job.
fn follow_up(name: &str) -> EnqueueJob {
    let payload = format!(r#"{{"text":"{name}"}}"#);
    EnqueueJob {
        id: jobs::id(name),
        id_given: true,
        job_type: "note".to_owned(),
        payload_hash: sha256_hex(payload.as_bytes()),
        payload,
        admitted: true,
        dedup: Dedup::None,
        unique: Unique::Active,
        holds: Vec::new(),
        priority: 0,
        run_at: None,
        max_attempts: 10,
        timeout: 60_000,
        backoff: Backoff::default(),
        waiting_on: None,
        correlation_id: None,
    }
}
