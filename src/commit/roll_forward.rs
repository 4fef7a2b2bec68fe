//! Bringing to its end what dead processes have accepted: whoever opens the
//! queue next does it, before anything else.

use std::collections::{BTreeMap, HashSet};

use super::committer::{Committer, Doubt};
use crate::effects;
use crate::error::{ErrorKind, Result};
use crate::liveness::{self, Verdict};
use crate::queue::Queue;
use crate::state::Status;
use crate::store::{
    Application, ClaimedJob, HeldLease, LapsedLease, Lease, Limits, Reclaim, Settled, Started, Step, Store as _,
};

/// Applied in one transaction: the folders they touch are synced once for all of
/// them, and other writers wait no longer than some 20 ms.
const AT_ONCE: u32 = 64;

/// How it is known that the database works again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// It can be read. What a failed COMMIT has left may still come back with the next restart.
    Read,
    /// It was written to, so what is not there now never will be.
    Written,
}

impl Queue {
    /// Applies what dead processes had accepted or decided and not lived to
    /// apply, and what this one could not because the database failed; and removes what they left in the stage. Opening a queue does this;
    /// a long-lived process may do it whenever it likes. Returns how many jobs
    /// are completed by it.
    ///
    /// Whoever is alive is left alone. A job that cannot be applied stays as it
    /// is, visible and with its reason, and does not keep others from being so.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// assert_eq!(queue.roll_forward()?, 0, "nobody has died");
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn roll_forward(&self) -> Result<usize> {
        let mut applied = self.known_committer().map_or(0, |own| self.settle_doubts(&own, Seen::Read));
        self.free_decided()?;
        if self.store().outlook(&[], &Limits::new())?.decided {
            applied += self.apply_free(&*self.committer()?)?;
        }
        let own = self.known_committer().map_or(String::new(), |own| own.owner().locked_by.clone());
        liveness::remove_idle_locks(self.store(), &self.owners_folder())?;
        effects::sweep_stage(self.state_folder(), &own, &mut |job, stage| self.store().is_planned(job, stage))?;
        Ok(applied)
    }

    /// Takes decided jobs from owners that are dead. What these had not decided
    /// is a worker's affair: it counts attempts and tells hooks.
    fn free_decided(&self) -> Result<()> {
        let mut owners: BTreeMap<String, Vec<HeldLease>> = BTreeMap::new();
        for held in self.store().leases()? {
            if held.decided {
                owners.entry(held.locked_by.clone()).or_default().push(held);
            }
        }
        let mut lapsed = Vec::new();
        for leases in owners.into_values() {
            let Some(owner) = &leases[0].owner else { continue };
            match liveness::judge(owner, &self.owners_folder()) {
                Ok(Verdict::Dead(_)) => {}
                Ok(Verdict::Alive | Verdict::Unknown) => continue,
                Err(error) => {
                    tracing::warn!(owner = owner.locked_by, %error, "cannot judge an owner; its lease decides");
                    continue;
                }
            }
            let free = |HeldLease { lease, heartbeat, .. }| LapsedLease { lease, heartbeat, started: Started::Unknown };
            lapsed.extend(leases.into_iter().map(free));
        }
        if !lapsed.is_empty() {
            self.store().reclaim(Reclaim { dead: Vec::new(), lapsed })?;
        }
        Ok(())
    }

    /// Applies decided jobs that nobody owns.
    fn apply_free(&self, committer: &Committer) -> Result<usize> {
        let mut applied = 0;
        let mut seen = HashSet::new();
        loop {
            let taken = self.store().take_over(committer.owner().clone(), AT_ONCE)?;
            let leases: Vec<Lease> = taken.into_iter().map(|ClaimedJob { lease, .. }| lease).collect();
            // One that had to be put off may have fallen due again meanwhile.
            let mut new = false;
            for lease in &leases {
                new |= seen.insert(lease.id.clone());
                // What cannot be read now is told when it is applied.
                committer.files().look_over(&self.store().planned(&lease.id).unwrap_or_default());
            }
            let (done, undone) = self.apply_all(committer, leases);
            applied += done;
            for lease in undone {
                committer.doubt(Doubt { id: lease.id, staged: Vec::new() });
            }
            if !new {
                return Ok(applied);
            }
        }
    }

    /// Returns how many are completed, and those whose end could not be recorded.
    fn apply_all(&self, committer: &Committer, leases: Vec<Lease>) -> (usize, Vec<Lease>) {
        let step = |lease: &Lease| (lease.clone(), Step::Apply(committer.applier()));
        let answers = match self.store().settle(leases.iter().map(step).collect()) {
            Ok(answers) => answers,
            // One of several makes the whole transaction fail, maybe only at its COMMIT: each by itself.
            // What was durable all the same is then found to be nobody's any more.
            Err(error) if error.is_about_one() || (leases.len() > 1 && error.kind() == ErrorKind::OutcomeUnknown) => {
                leases.iter().map(step).map(|(lease, step)| self.store().one(lease, step)).collect()
            }
            Err(error) => {
                tracing::warn!(jobs = leases.len(), %error, "what was accepted cannot be applied now");
                return (0, leases);
            }
        };
        let (mut applied, mut undone) = (0, Vec::new());
        for (lease, answer) in leases.into_iter().zip(answers) {
            let job_id = lease.id.as_str();
            match answer {
                Ok(Settled::Applied(Application::Completed)) => applied += 1,
                Ok(Settled::Applied(Application::Conflict(why) | Application::Withdrawn(why))) => {
                    tracing::warn!(job_id, "what was accepted cannot be applied: {}", crate::printable(&why));
                }
                Ok(Settled::Applied(Application::Deferred(why))) => {
                    tracing::warn!(job_id, "what was accepted cannot be applied now: {}", crate::printable(&why));
                }
                Ok(Settled::Ended(_)) => {}
                Err(error) if matches!(error.kind(), ErrorKind::LeaseLost | ErrorKind::NotFound) => {}
                Err(error) => {
                    tracing::warn!(job_id, %error, "what was accepted cannot be applied now");
                    undone.push(lease);
                }
            }
        }
        (applied, undone)
    }

    /// Commits whose acceptance or end this process could not see, because the
    /// database was in trouble. Returns how many are completed by this.
    pub(super) fn settle_doubts(&self, committer: &Committer, seen: Seen) -> usize {
        let mut applied = 0;
        for doubt in committer.take_doubts() {
            let job = match self.get(&doubt.id) {
                Ok(job) => Some(job),
                Err(error) if error.is_not_found() => None,
                Err(_) => {
                    committer.doubt(doubt);
                    continue;
                }
            };
            match job {
                Some(job) if job.status == Status::Claimed => {
                    let own = job.locked_by.as_deref() == Some(&committer.owner().locked_by);
                    if own {
                        let lease = Lease { id: job.id, seq: job.seq, token: job.token };
                        let (done, undone) = self.apply_all(committer, vec![lease]);
                        applied += done;
                        if !undone.is_empty() {
                            committer.doubt(doubt);
                        }
                    }
                }
                // It failed, and its content is still needed for a retry.
                Some(job) if job.status == Status::Failed => {}
                None if seen == Seen::Read => committer.doubt(doubt),
                // It was not accepted, or it is done.
                Some(_) | None => doubt.staged.iter().for_each(|staged| committer.files().unstage(staged)),
            }
        }
        applied
    }
}
