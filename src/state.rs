//! The state machine: one enum, one pure function.
//!
//! ```text
//!                       claim
//!  enqueue ──► pending ─────────► claimed ──complete──► completed
//!                │ ▲ ▲               │ │ ▲
//!         cancel │ │ └── reschedule ─┘ │ └── take over (decided only)
//!                │ │     release       │
//!                │ │     reclaim       ├──fail──► failed ──retry──► claimed
//!                ▼ │                   │            │               (decided)
//!            cancelled ◄────cancel─────┘            │
//!                │ └── retry ──► pending ◄──retry───┘
//! ```
//!
//! A claimed job is either running or *decided*: once what it will do is
//! durable, it is never run again, cancelled or given back; it is applied, by
//! whoever comes. `schema.sql` mirrors this table in its triggers, and a test
//! compares the two for every pair.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Where a job is in its life, as the `status` column says it.
///
/// ```
/// use jobq::Status;
/// assert!(Status::Failed.is_finished() && !Status::Claimed.is_finished());
/// assert_eq!("pending".parse::<Status>()?, Status::Pending);
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Accepted, not owned by anyone.
    Pending,
    /// Owned by a worker, or decided and about to be applied.
    Claimed,
    /// Done. Nothing leads away from here.
    Completed,
    /// Given up; the error is kept. Only an operator's retry leads back.
    Failed,
    /// Called off. Only an operator's retry leads back.
    Cancelled,
}

impl Status {
    /// Every status, in the order of a job's life.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Claimed, Self::Completed, Self::Failed, Self::Cancelled];

    /// The word in the `status` column.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Claimed => "claimed",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Completed, failed or cancelled: no work is left to do.
    #[must_use]
    pub fn is_finished(self) -> bool {
        !matches!(self, Self::Pending | Self::Claimed)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Status {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|s| s.as_str() == word)
            .ok_or_else(|| Error::invalid("status", "is one of pending, claimed, completed, failed, cancelled"))
    }
}

/// A status, and whether what the job will do has been decided.
///
/// ```
/// use jobq::state::{State, Status, Verb, transition};
/// let new = State { status: Status::Pending, decided: false };
/// assert_eq!(transition(new, Verb::Claim).unwrap().status, Status::Claimed);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The `status` column.
    pub status: Status,
    /// Whether the `outcome` column is set.
    pub decided: bool,
}

/// What can be done to a job.
///
/// ```
/// use jobq::state::{State, Status, Verb, transition};
/// let done = State { status: Status::Completed, decided: false };
/// assert!(Verb::ALL.into_iter().all(|verb| transition(done, verb).is_none()), "completed is final");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Take a pending job.
    Claim,
    /// Record durably what a claimed job will do.
    Decide,
    /// Take a decided job from an owner that is gone.
    TakeOver,
    /// The work is done (for a decided job: applied).
    Complete,
    /// Give up.
    Fail,
    /// Back to pending after a failed attempt; given back if it pauses the type.
    Reschedule,
    /// Back to pending, the attempt given back.
    Release,
    /// Back to pending, because the owner is gone.
    Reclaim,
    /// Call it off.
    Cancel,
    /// The operator brings a failed or cancelled job back.
    Retry,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 10] = [
        Self::Claim,
        Self::Decide,
        Self::TakeOver,
        Self::Complete,
        Self::Fail,
        Self::Reschedule,
        Self::Release,
        Self::Reclaim,
        Self::Cancel,
        Self::Retry,
    ];
}

/// The whole state machine: where a verb leads from a state, or `None` if it
/// is not allowed there.
///
/// ```
/// use jobq::state::{State, Status, Verb, transition};
/// let running = State { status: Status::Claimed, decided: false };
/// let decided = State { status: Status::Claimed, decided: true };
/// assert_eq!(transition(running, Verb::Decide), Some(decided));
/// assert_eq!(transition(decided, Verb::Cancel), None, "too late");
/// ```
#[must_use]
pub fn transition(from: State, verb: Verb) -> Option<State> {
    use Status::{Cancelled, Claimed, Completed, Failed, Pending};
    let State { status, decided } = from;
    let to = |status| Some(State { status, decided });
    match (status, decided, verb) {
        (Pending, false, Verb::Claim) => to(Claimed),
        (Pending, false, Verb::Cancel) => to(Cancelled),
        (Claimed, false, Verb::Decide) => Some(State { status: Claimed, decided: true }),
        (Claimed, true, Verb::TakeOver) => to(Claimed),
        (Claimed, _, Verb::Complete) => to(Completed),
        (Claimed, _, Verb::Fail) => to(Failed),
        (Claimed, false, Verb::Reschedule | Verb::Release | Verb::Reclaim) => to(Pending),
        (Claimed, false, Verb::Cancel) => to(Cancelled),
        (Failed | Cancelled, false, Verb::Retry) => to(Pending),
        (Failed, true, Verb::Retry) => to(Claimed),
        _ => None,
    }
}

/// Why a pending job is not running yet, as the `gate` column says it.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use std::time::Duration;
/// use jobq::{Gate, NewJob, handlers::CreateFile};
/// let later = NewJob::of(&CreateFile::text("a.txt", "a")).delay(Duration::from_secs(60));
/// let id = queue.enqueue(later)?.id;
/// assert_eq!(queue.get(&id)?.gate, Some(Gate::Delayed));
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Inserted by plain SQL and not yet admitted.
    New,
    /// Waits for another job to complete.
    Waiting,
    /// Its `run_at` has not come.
    Delayed,
    /// Its backoff after a failure has not passed.
    Backoff,
    /// Another job is before it on one of its holds.
    Held,
    /// Claimable now.
    Ready,
}

impl Gate {
    /// The word in the `gate` column.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Waiting => "waiting",
            Self::Delayed => "delayed",
            Self::Backoff => "backoff",
            Self::Held => "held",
            Self::Ready => "ready",
        }
    }
}

impl FromStr for Gate {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self, Error> {
        [Self::New, Self::Waiting, Self::Delayed, Self::Backoff, Self::Held, Self::Ready]
            .into_iter()
            .find(|g| g.as_str() == word)
            .ok_or_else(|| Error::invalid("gate", "is not a known word"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_is_final_and_a_decided_job_only_goes_forward() {
        for verb in Verb::ALL {
            for decided in [false, true] {
                assert_eq!(transition(State { status: Status::Completed, decided }, verb), None);
            }
            let decided = State { status: Status::Claimed, decided: true };
            if let Some(to) = transition(decided, verb) {
                assert!(to.decided && matches!(to.status, Status::Claimed | Status::Completed | Status::Failed));
            }
        }
    }

    #[test]
    fn words_read_back() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse::<Status>().unwrap(), status);
        }
        assert!("done".parse::<Status>().is_err());
    }
}
