//! What prune leaves of what jobs did to files.

use jobq::store::{ClaimRequest, Decision, EffectOp, Owner, PlannedEffect, Precondition, Store as _};

use super::act::act;
use super::days::{DAY, Place, delete, effect, write};

#[test]
fn the_latest_effect_of_each_path_outlives_its_job() {
    let place = Place::new();
    place.run(write("a", "1"));
    let second = place.run(write("a", "2"));
    place.run(write("b", "1"));
    let removed = place.run(delete("b"));
    place.clock.advance(1);
    place.prune(None, i64::MAX, false);
    assert!(place.is_gone(&second) && place.is_gone(&removed));
    assert_eq!(place.effects(), [effect("a", "put", &second), effect("b", "remove", &removed)]);
    // Once more, on top of what is left of jobs that are gone.
    let third = place.run(write("a", "3"));
    let again = place.run(write("b", "2"));
    place.clock.advance(1);
    place.prune(None, i64::MAX, false);
    assert_eq!(place.effects(), [effect("a", "put", &third), effect("b", "put", &again)]);
}

/// Without it, the older put would read as a file that is missing.
#[test]
fn a_remove_stays_whichever_job_goes_first() {
    for first in ["delete_file", "create_file"] {
        let place = Place::new();
        let put = place.run(write("a", "1"));
        let removed = place.run(delete("a"));
        place.clock.advance(1);
        place.prune(Some(first), i64::MAX, false);
        let left = place.effects();
        assert_eq!(left.last(), Some(&effect("a", "remove", &removed)), "{first} first");
        assert_eq!(left.len(), if place.is_gone(&put) { 1 } else { 2 });
        place.prune(None, i64::MAX, false);
        assert_eq!(place.effects(), [effect("a", "remove", &removed)], "{first} first");
    }
}

#[test]
fn to_forget_takes_whole_paths_of_jobs_that_are_gone() {
    for first in [None, Some("delete_file"), Some("create_file")] {
        let place = Place::new();
        place.run(write("a", "1"));
        place.run(delete("a"));
        place.run(write("b", "1"));
        place.clock.advance(DAY);
        if let Some(first) = first {
            // As a worker does, long before.
            place.prune(Some(first), place.now(), false);
        }
        let young = place.run(write("c", "1"));
        let horizon = place.now();
        place.prune(None, horizon, true);
        assert_eq!(place.effects(), [effect("c", "put", &young)], "{first:?} had gone before");
        place.clock.advance(1);
        place.prune(None, horizon, true);
        assert_eq!(place.effects().len(), 1, "it did not end before that time");
        place.prune(None, horizon + 1, true);
        assert_eq!(place.effects(), [] as [[String; 3]; 0]);
    }
}

#[test]
fn to_forget_skips_paths_on_which_something_is_planned_or_that_a_job_still_tells_of() {
    let place = Place::new();
    let planned = place.run(write("planned", "1"));
    let older = place.run(write("told", "1"));
    let newer = place.run(write("told", "2"));
    place.clock.advance(DAY);
    // A job that is decided and not applied.
    let id = place.queue.enqueue(act([])).unwrap().id;
    let owner = Owner {
        locked_by: "someone".to_owned(),
        machine_id: "elsewhere".to_owned(),
        boot_id: String::new(),
        pid: 1,
        lock_file: "none".to_owned(),
    };
    let request = ClaimRequest { owner, types: vec!["act".to_owned()], limit: 1, limits: jobq::store::Limits::new() };
    let claimed = place.queue.store().claim(request).unwrap().remove(0);
    let effects = vec![PlannedEffect {
        path: "planned".to_owned(),
        op: EffectOp::Remove,
        precondition: Precondition::Absent,
        observed: None,
    }];
    place.queue.store().decide(claimed.lease, Decision { effects, ..Decision::default() }).unwrap();
    // The newer job goes, the older one stays: it has not been so long for its type.
    place.world.sql().execute("UPDATE jobs SET completed_at = ?1 WHERE id = ?2", (place.now(), &older)).unwrap();
    place.prune(None, place.now(), true);
    assert!(place.is_gone(&planned) && place.is_gone(&newer) && !place.is_gone(&older));
    let expected = [
        effect("planned", "put", &planned),
        effect("planned", "remove", &id),
        effect("told", "put", &older),
        effect("told", "put", &newer),
    ];
    assert_eq!(place.effects(), expected);
}
