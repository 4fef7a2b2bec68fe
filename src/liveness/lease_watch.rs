//! Leases of owners that cannot be judged by a lock: on another machine, or
//! frozen. A lease is lost only when the watcher's own monotonic clock has seen
//! the same token and heartbeat for a whole lease. No wall clock is compared,
//! so a clock that jumps neither steals a lease nor freezes one.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::store::{HeldLease, LapsedLease, Started};

/// What has been seen of each lease, and since when.
#[derive(Debug, Default)]
pub struct LeaseWatch {
    seen: HashMap<i64, Sight>,
}

#[derive(Debug)]
struct Sight {
    token: i64,
    heartbeat: i64,
    since: Instant,
}

impl LeaseWatch {
    /// Takes a look; returns the leases that have stood still for a whole
    /// `lease`. Whether their jobs had started is not known here.
    pub fn look(&mut self, leases: &[HeldLease], lease: Duration, now: Instant) -> Vec<LapsedLease> {
        self.look_with(leases, lease, now, |_| lease)
    }

    /// The same, for owners that may be silent for longer than `lease`. How long
    /// is asked only about those that have been silent for that.
    pub(crate) fn look_with(
        &mut self,
        leases: &[HeldLease],
        lease: Duration,
        now: Instant,
        mut longer: impl FnMut(&HeldLease) -> Duration,
    ) -> Vec<LapsedLease> {
        let mut before = std::mem::take(&mut self.seen);
        let mut lapsed = Vec::new();
        for held in leases {
            let fresh = || Sight { token: held.lease.token, heartbeat: held.heartbeat, since: now };
            let sight = match before.remove(&held.lease.seq) {
                Some(sight) if (sight.token, sight.heartbeat) == (held.lease.token, held.heartbeat) => sight,
                _ => fresh(),
            };
            let silent = now.duration_since(sight.since);
            if silent >= lease && silent >= longer(held) {
                lapsed.push(LapsedLease {
                    lease: held.lease.clone(),
                    heartbeat: held.heartbeat,
                    started: Started::Unknown,
                });
            }
            self.seen.insert(held.lease.seq, sight);
        }
        lapsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Lease;

    fn held(token: i64, heartbeat: i64) -> Vec<HeldLease> {
        let lease = Lease { id: "j".into(), seq: 1, token };
        vec![HeldLease { lease, heartbeat, decided: false, locked_by: "w".into(), owner: None }]
    }

    #[test]
    fn only_a_whole_lease_of_silence_counts() {
        let lease = Duration::from_secs(300);
        let start = Instant::now();
        let after = |secs| start + Duration::from_secs(secs);
        let mut watch = LeaseWatch::default();
        assert!(watch.look(&held(1, 0), lease, start).is_empty());
        assert!(watch.look(&held(1, 0), lease, after(299)).is_empty());
        assert!(watch.look(&held(1, 1), lease, after(301)).is_empty(), "it stirred");
        assert!(watch.look(&held(2, 1), lease, after(400)).is_empty(), "a new claim");
        assert_eq!(watch.look(&held(2, 1), lease, after(700)).len(), 1);
        let longer = |_: &HeldLease| Duration::from_secs(400);
        assert!(
            watch.look_with(&held(2, 1), lease, after(799), longer).is_empty(),
            "its owner may be silent for longer"
        );
        assert_eq!(watch.look_with(&held(2, 1), lease, after(800), longer).len(), 1);
    }
}
