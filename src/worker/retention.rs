//! What is kept for how long, and how the rest goes: by wall-clock age, a little
//! at a time, so that jobs never wait for it longer than for one another.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::dispatch::Dispatcher;
use crate::clock::Millis;
use crate::error::Result;
use crate::handlers::WriteFiles;
use crate::payload::{JobTypes, Keep, Payload as _};
use crate::state::Status;
use crate::store::{EndedAt, PruneEvents, PruneRequest, Store as _};

/// How often old jobs are looked for, when there were none the last time.
const EVERY: Duration = Duration::from_secs(600);
/// The pause after each part of what there was, which takes some 10 ms.
const PAUSE: Duration = Duration::from_millis(100);
/// A wall clock that has run ahead of time by more than this since the last look
/// is not believed before the next one.
const LEAP: Millis = 3_600_000;

/// How often events are looked for from the beginning. Jobs that end while a clock
/// is set back are behind where the last look has come to.
const AFRESH: Duration = Duration::from_secs(86_400);

/// How long finished jobs and their events are kept; `None` is for ever. Failed
/// jobs always stay, with their events, until someone prunes them. A worker
/// applies this to the types its queue knows and to those that are named here.
///
/// ```
/// use std::time::Duration;
/// use jobq::Retention;
/// let a_day = Some(Duration::from_secs(86_400));
/// let retention = Retention { types: [("thumbnail".to_owned(), a_day)].into(), ..Retention::default() };
/// assert_ne!(retention, Retention::forever());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Completed and cancelled jobs.
    pub completed: Option<Duration>,
    /// Events of completed and cancelled jobs that are themselves kept longer.
    pub events: Option<Duration>,
    /// Completed and cancelled jobs of these types; it counts before what the
    /// type says for itself ([`Defaults::retention`](crate::Defaults::retention)).
    pub types: BTreeMap<String, Option<Duration>>,
}

impl Default for Retention {
    fn default() -> Self {
        let two_weeks = Some(Duration::from_secs(14 * 86_400));
        Self { completed: two_weeks, events: two_weeks, types: BTreeMap::new() }
    }
}

impl Retention {
    /// Nothing goes by itself.
    #[must_use]
    pub fn forever() -> Self {
        Self { completed: None, events: None, types: BTreeMap::new() }
    }

    /// How long jobs of this type are kept.
    fn of(&self, job_type: &str, own: Keep) -> Option<Duration> {
        match (self.types.get(job_type), own) {
            (Some(kept), _) => *kept,
            (None, Keep::Usual) => self.completed,
            (None, Keep::For(kept)) => Some(kept),
            (None, Keep::Forever) => None,
        }
    }

    /// Everything there is to look for.
    fn parts(&self, known: &JobTypes) -> VecDeque<Part> {
        let mut types: BTreeSet<&str> = self.types.keys().map(String::as_str).collect();
        let known_names = known.names();
        types.extend(known_names.iter().map(String::as_str));
        // Every process can commit.
        types.insert(WriteFiles::TYPE);
        let mut parts = VecDeque::new();
        for name in types {
            let kept = self.of(name, known.defaults(name).retention);
            parts.extend(kept.map(|kept| Part::Jobs { job_type: name.to_owned(), kept }));
            let Some(events) = self.events.filter(|events| kept.is_none_or(|kept| kept > *events)) else { continue };
            for status in [Status::Completed, Status::Cancelled] {
                parts.push_back(Part::Events { job_type: name.to_owned(), status, kept: events });
            }
        }
        parts
    }
}

enum Part {
    Jobs { job_type: String, kept: Duration },
    Events { job_type: String, status: Status, kept: Duration },
}

/// Where the sweep for old jobs is.
pub(super) struct Sweep {
    pub(super) next: Instant,
    parts: VecDeque<Part>,
    /// When this sweep began, by the wall clock, and by one that never jumps.
    began: Option<(Millis, Instant)>,
    /// Up to where events have been removed. Jobs stay behind without theirs, and
    /// need not be looked at again.
    without_events: HashMap<(String, &'static str), EndedAt>,
    /// Since when that is remembered.
    afresh: Instant,
}

impl Sweep {
    pub(super) fn new(now: Instant) -> Self {
        Self { next: now, parts: VecDeque::new(), began: None, without_events: HashMap::new(), afresh: now }
    }

    /// Whether the clock can be believed; notes what it says.
    fn begin(&mut self, wall: Millis, now: Instant) -> bool {
        if now.saturating_duration_since(self.afresh) >= AFRESH {
            self.afresh = now;
            self.without_events.clear();
        }
        let last = self.began.replace((wall, now));
        last.is_none_or(|(then, at)| {
            let passed = i64::try_from(now.saturating_duration_since(at).as_millis()).unwrap_or(i64::MAX);
            wall.saturating_sub(then) <= passed.saturating_add(LEAP)
        })
    }
}

impl Dispatcher {
    /// One part of what is too old, and then a pause.
    pub(super) fn prune(&mut self, now: Instant) -> Result<()> {
        if now < self.upkeep.retention.next || self.is_stopping() {
            return Ok(());
        }
        if self.upkeep.retention.parts.is_empty() {
            if self.upkeep.retention.begin(self.shared.queue.now(), now) {
                self.upkeep.retention.parts = self.options.retention.parts(self.shared.queue.types());
            } else {
                tracing::warn!("the clock has leapt ahead; old jobs are kept until it has been so for a while");
            }
        }
        let wall = self.upkeep.retention.began.map_or(Millis::MIN, |(wall, _)| wall);
        while let Some(part) = self.upkeep.retention.parts.front() {
            let more = match part {
                Part::Jobs { job_type, kept } => self.prune_jobs(job_type, before(wall, *kept))?,
                Part::Events { job_type, status, kept } => {
                    let (job_type, status, ended_before) = (job_type.clone(), *status, before(wall, *kept));
                    self.prune_events(job_type, status, ended_before)?
                }
            };
            // Only now: what failed is tried again.
            let part = self.upkeep.retention.parts.pop_front();
            if more {
                self.upkeep.retention.parts.extend(part);
                self.upkeep.retention.next = now + PAUSE;
                return Ok(());
            }
        }
        self.upkeep.retention.next = now + EVERY;
        Ok(())
    }

    /// Whether there was something.
    fn prune_jobs(&self, job_type: &str, ended_before: Millis) -> Result<bool> {
        let job_type = Some(job_type.to_owned());
        let request = PruneRequest { job_type, ended_before, failed: false, forget: false };
        Ok(self.shared.queue.store().prune(request)? > 0)
    }

    /// Whether there may be more.
    fn prune_events(&mut self, job_type: String, status: Status, ended_before: Millis) -> Result<bool> {
        let name = (job_type.clone(), status.as_str());
        let after = self.upkeep.retention.without_events.get(&name).copied().unwrap_or_default();
        let last = self.shared.queue.store().prune_events(PruneEvents { job_type, status, ended_before, after })?;
        if let Some(last) = last {
            self.upkeep.retention.without_events.insert(name, last);
        }
        Ok(last.is_some())
    }
}

fn before(wall: Millis, kept: Duration) -> Millis {
    wall.saturating_sub(i64::try_from(kept.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_type_counts_before_what_is_said_of_all() {
        let day = Duration::from_secs(86_400);
        let mut retention = Retention::default();
        retention.types.insert("kept".to_owned(), None);
        retention.types.insert("short".to_owned(), Some(day));
        assert_eq!(retention.of("kept", Keep::For(day)), None);
        assert_eq!(retention.of("short", Keep::Forever), Some(day));
        assert_eq!(retention.of("other", Keep::Forever), None);
        assert_eq!(retention.of("other", Keep::For(day)), Some(day));
        assert_eq!(retention.of("other", Keep::Usual), Some(14 * day));
        assert_eq!(Retention::forever().of("other", Keep::Usual), None);
    }

    #[test]
    fn a_clock_that_leaps_ahead_is_believed_the_second_time() {
        let start = Instant::now();
        let mut sweep = Sweep::new(start);
        assert!(sweep.begin(1_000_000, start), "the first time there is nothing to compare it with");
        assert!(sweep.begin(1_600_000, start + EVERY));
        assert!(sweep.begin(2_200_000 + LEAP, start + 2 * EVERY));
        assert!(!sweep.begin(2_800_001 + 2 * LEAP, start + 3 * EVERY));
        assert!(sweep.begin(3_400_001 + 2 * LEAP, start + 4 * EVERY));
        assert!(sweep.begin(1, start + 5 * EVERY), "set back, it makes nothing old");
    }
}
