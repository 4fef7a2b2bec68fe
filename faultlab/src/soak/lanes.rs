//! In which order jobs of a lane may run.

use std::collections::HashMap;

/// Jobs of a lane run in order, and none before the one ahead of it has ended. One that
/// was killed has no end; then it is the one that begins next. An attempt that is not a job's
/// last, because its worker was taken for frozen, may begin or end whenever it goes on.
#[derive(Default)]
pub struct Lanes<'t> {
    /// Of each lane the last that has begun, as seq and attempt, and whether it has ended.
    last: HashMap<&'t str, (i64, u32, bool)>,
    pub troubles: Vec<String>,
}

impl<'t> Lanes<'t> {
    pub fn began(&mut self, lane: &'t str, seq: i64, attempt: u32, stale: bool) {
        if stale && self.last.get(lane).is_some_and(|last| (last.0, last.1) > (seq, attempt)) {
            return;
        }
        match self.last.insert(lane, (seq, attempt, false)) {
            Some((before, ..)) if before > seq => self.troubles.push(format!("{lane}: seq {seq} ran after {before}")),
            Some((before, _, false)) if before < seq => {
                self.troubles.push(format!("{lane}: seq {seq} began when {before} had not ended"));
            }
            _ => {}
        }
    }

    pub fn ended(&mut self, lane: &'t str, seq: i64, attempt: u32, stale: bool) {
        match self.last.get_mut(lane) {
            Some(last) if (last.0, last.1) == (seq, attempt) => last.2 = true,
            Some(last) if stale && (last.0, last.1) > (seq, attempt) => {}
            last => self.troubles.push(format!("{lane}: attempt {attempt} of seq {seq} ended beside {last:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each is a begin or an end (`true`), by seq and attempt.
    fn troubles(steps: &[(bool, i64, u32)]) -> Vec<String> {
        let mut lanes = Lanes::default();
        for (has_ended, seq, attempt) in steps {
            // The third attempt of each is its last.
            let stale = *attempt == 2;
            if *has_ended { lanes.ended("a", *seq, *attempt, stale) } else { lanes.began("a", *seq, *attempt, stale) }
        }
        lanes.troubles
    }

    #[test]
    fn one_after_the_other_is_right_and_so_is_one_that_was_killed() {
        let right = [(false, 1, 1), (true, 1, 1), (false, 2, 1), (false, 2, 2), (true, 2, 2), (false, 3, 1)];
        assert_eq!(troubles(&right), Vec::<String>::new());
    }

    #[test]
    fn one_that_was_frozen_may_go_on_when_another_has_done_its_job() {
        let late =
            [(false, 1, 2), (false, 1, 3), (true, 1, 2), (true, 1, 3), (false, 2, 1), (true, 1, 2), (false, 1, 2)];
        assert_eq!(troubles(&late), Vec::<String>::new());
        assert_eq!(troubles(&[(false, 1, 2), (false, 1, 3), (true, 1, 2), (false, 2, 1)]).len(), 1, "1 has not ended");
    }

    #[test]
    fn two_at_a_time_are_seen() {
        assert_eq!(troubles(&[(false, 1, 1), (false, 2, 1)]), ["a: seq 2 began when 1 had not ended"]);
        let late = troubles(&[(false, 1, 1), (false, 1, 2), (true, 1, 1)]);
        assert_eq!(late, ["a: attempt 1 of seq 1 ended beside Some((1, 2, false))"]);
    }

    #[test]
    fn the_wrong_order_is_seen() {
        assert_eq!(troubles(&[(false, 2, 1), (true, 2, 1), (false, 1, 1)]), ["a: seq 1 ran after 2"]);
    }
}
