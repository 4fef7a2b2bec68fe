//! The atomic commit: files to write and jobs to queue, accepted as one.
//!
//! ```text
//! stage     the new contents, synced, outside any lock
//! accept    one transaction: expectations hold, no path is busy; a write_files job,
//!           claimed and decided, and the jobs that wait on it. Durable: accepted
//! apply     the next transaction: renames, folders synced, job completed, waiting jobs released
//! ```
//!
//! A crash before the acceptance leaves nothing but litter in the stage; after
//! it, whoever comes next applies (`roll_forward`). There is no moment in
//! between.

mod answer;
mod committer;
mod draft;
mod ids;
mod json_files;
mod plan;
mod roll_forward;

use std::sync::atomic::Ordering;

pub use answer::Accepted;
pub(crate) use committer::Committer;
pub use draft::Draft;
pub use json_files::Snapshot;

use self::answer::{accepted, described};
use self::committer::{Doubt, Staging};
use self::plan::Plan;
use self::roll_forward::Seen;
use crate::error::{Error, ErrorKind, Result};
use crate::job::Job;
use crate::json::same_meaning;
use crate::queue::Queue;
use crate::state::Status;
use crate::store::{Application, Commit, Committed, EnqueueJob, Lease, Settled, Step, Store as _};

/// How often a disk that keeps changing is looked at before the caller is told.
const LOOKS: usize = 5;

impl Queue {
    /// Writes files and queues jobs, all of it or nothing: durable when this
    /// returns, or not accepted. The jobs run when the files are in place.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path();
    /// # let queue = jobq::Queue::init(folder)?;
    /// use jobq::{NewJob, handlers::CreateFile};
    /// let model = serde_json::json!({ "title": "Invoices are numbered" });
    /// let commit = queue.commit(|tx| {
    ///     tx.write_json("data/req-1.json", &model)?;
    ///     tx.remove("data/draft-1.json")?;
    ///     tx.enqueue(CreateFile::text("out/req-1.txt", "Invoices are numbered"))?;
    ///     tx.enqueue(NewJob::raw("send_mail", r#"{"to":"ada@example.org"}"#))
    /// })?;
    /// assert!(commit.applied);
    /// assert_eq!(queue.get(&commit.jobs[0].id)?.status, jobq::Status::Pending);
    /// assert!(std::fs::read_to_string(folder.join("data/req-1.json")).unwrap().ends_with("}\n"));
    /// # Ok::<(), jobq::Error>(())
    /// ```
    ///
    /// An error of the closure means that nothing happened; so does every other
    /// error, with two exceptions. [`OutcomeUnknown`](ErrorKind::OutcomeUnknown):
    /// submit the same commit again with the id that [`Error::id`] has. And a
    /// conflict for which [`Error::is_stale`] is false: another program got
    /// between two renames, the commit's job has failed, its jobs wait, and the
    /// message says what is done and what is not.
    pub fn commit(&self, fill: impl FnOnce(&mut Draft) -> Result<()>) -> Result<Accepted> {
        self.commit_draft(Draft::filled_by(fill)?)
    }

    pub(crate) fn commit_draft(&self, draft: Draft) -> Result<Accepted> {
        // Without an id of the caller's and without files there is nothing to remember it by: a plain batch.
        let plain = draft.id.is_none() && draft.changes.is_empty() && draft.expectations.is_empty();
        let id = draft.id.clone().unwrap_or_else(|| self.new_id());
        let answer = if plain { self.batch(&id, draft) } else { self.submit(&id, draft) };
        answer.map_err(|e| e.about(&id))
    }

    /// Jobs alone.
    fn batch(&self, id: &str, draft: Draft) -> Result<Accepted> {
        let jobs = plan::jobs(self, id, draft.jobs, false)?;
        let jobs = self.store().enqueue(jobs)?;
        Ok(accepted(id, jobs))
    }

    fn submit(&self, id: &str, mut draft: Draft) -> Result<Accepted> {
        let committer = self.committer()?;
        let job = plan::files_job(self, id, &draft)?;
        // Looked for before anything is written: it may have been accepted long ago.
        if draft.id.is_some()
            && let Some(known) = self.known(&job)?
        {
            return self.existing(&known);
        }
        let jobs = plan::jobs(self, id, std::mem::take(&mut draft.jobs), true)?;
        let staging = committer.stage(id, draft.changes.iter().map(|(_, change)| change))?;
        for _ in 0..LOOKS {
            let plan = match Plan::make(committer.files(), &draft, &staging) {
                Ok(plan) => plan,
                // The same commit may have been accepted through another process since it was
                // looked for; then it is what has changed the disk.
                Err(error) => match draft.id.as_ref().map_or(Ok(None), |_| self.known(&job))? {
                    Some(known) => return self.existing(&known),
                    None => return Err(error),
                },
            };
            let (still_so, has_changed) = plan.still_so(committer.files());
            let commit = Commit {
                owner: committer.owner().clone(),
                files: job.clone(),
                effects: plan.effects,
                jobs: jobs.clone(),
                still_so,
            };
            let answer = match self.store().commit(commit.clone()) {
                Ok(Committed::New { lease, jobs }) => {
                    self.apply_accepted(&committer, lease, accepted(id, jobs), staging)
                }
                Ok(Committed::Existing(known)) => return self.existing(&known),
                // First: it may have been accepted, whatever was seen before.
                Err(error) if error.is_outcome_unknown() => self.find_out(&committer, commit, staging, error),
                Err(_) if has_changed.load(Ordering::Acquire) => continue,
                Err(error) => return Err(error),
            };
            return answer.map(|accepted| self.settled(&committer, accepted));
        }
        Err(Error::stale("its files keep changing while it is being accepted; try again"))
    }

    /// The database works: what was in doubt can be brought to its end, perhaps
    /// this commit among it.
    fn settled(&self, committer: &Committer, accepted: Accepted) -> Accepted {
        self.settle_doubts(committer, Seen::Written);
        if accepted.applied {
            return accepted;
        }
        let now = self.get(&accepted.id).map(|job| Accepted { existing: false, ..described(&job) });
        now.unwrap_or(accepted)
    }

    /// A COMMIT that failed may have happened. Submitted again it is found, or
    /// accepted now; if that fails, too, the caller has to know.
    fn find_out(
        &self,
        committer: &Committer,
        commit: Commit,
        staging: Staging<'_>,
        unknown: Error,
    ) -> Result<Accepted> {
        let id = commit.files.id.clone();
        match self.store().commit(commit) {
            Ok(Committed::New { lease, jobs }) => self.apply_accepted(committer, lease, accepted(&id, jobs), staging),
            Ok(Committed::Existing(known)) if known.locked_by.as_ref() == Some(&committer.owner().locked_by) => {
                let lease = Lease { id, seq: known.seq, token: known.token };
                let accepted = Accepted { jobs: described(&known).jobs, ..accepted(&known.id, Vec::new()) };
                self.apply_accepted(committer, lease, accepted, staging)
            }
            _ => {
                committer.doubt(Doubt { id, staged: staging.keep() });
                Err(unknown)
            }
        }
    }

    fn apply_accepted(
        &self,
        committer: &Committer,
        lease: Lease,
        accepted: Accepted,
        staging: Staging<'_>,
    ) -> Result<Accepted> {
        let id = lease.id.clone();
        let step = Step::ApplyOrWithdraw(committer.applier());
        let later =
            |reason| Ok(Accepted { status: Status::Claimed, applied: false, reason: Some(reason), ..accepted.clone() });
        match self.store().one(lease, step).map(Settled::application) {
            Ok(Application::Completed) => Ok(accepted),
            Ok(Application::Withdrawn(why)) => {
                Err(Error::stale(format!("{why}; nothing was written and nothing is queued")))
            }
            // From here on the staged contents are needed by whoever goes on with it.
            Ok(Application::Conflict(why)) => {
                staging.keep();
                Err(Error::new(ErrorKind::Conflict, format!("{why}; until then its jobs wait")))
            }
            Ok(Application::Deferred(why)) => {
                staging.keep();
                later(why)
            }
            Err(error) if error.is_lease_lost() => {
                // Frozen for a whole lease, and somebody else has gone on with it.
                staging.keep();
                self.get(&id).map(|job| Accepted { existing: false, ..described(&job) })
            }
            Err(error) => {
                committer.doubt(Doubt { id, staged: staging.keep() });
                later(error.to_string())
            }
        }
    }

    /// The commit of this id, if there is one; refused if it is another.
    fn known(&self, job: &EnqueueJob) -> Result<Option<Job>> {
        let known = match self.get(&job.id) {
            Ok(known) => known,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        if known.job_type == job.job_type && same_meaning(known.payload.as_str(), &job.payload) {
            return Ok(Some(known));
        }
        let why = format!("the id already names a {} job with other content; use another id", known.job_type);
        Err(Error::new(ErrorKind::Conflict, why))
    }

    /// Accepted before, by this process or another. If it is still to be applied
    /// and its owner is gone, that is done now.
    fn existing(&self, known: &Job) -> Result<Accepted> {
        if known.status != Status::Claimed {
            return Ok(described(known));
        }
        self.roll_forward()?;
        self.get(&known.id).map(|job| described(&job))
    }
}

#[cfg(test)]
mod tests;
