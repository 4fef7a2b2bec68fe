//! Which job a claim takes, and when a job's time has come.

use jobq::state::{Gate, Status};
use jobq::store::{ClaimRequest, Ending, Store as _};

use super::Harness;
use super::draft::note;
use super::world::{World, owner};

const NOTHING: [&str; 0] = [];

pub fn higher_priority_first_then_order_of_acceptance<H: Harness>() {
    let world = World::<H>::new();
    let jobs = [("a", 0), ("b", i32::MIN), ("c", 5), ("d", i32::MAX), ("e", 5), ("f", 0), ("g", -1)];
    for (id, priority) in jobs {
        world.add(note(id).priority(priority));
    }
    assert_eq!(world.claim(3), ["d", "c", "e"]);
    assert_eq!(world.claim(10), ["a", "f", "g", "b"]);
    assert_eq!(world.claim(10), NOTHING, "a job is claimed once");
}

pub fn the_order_holds_across_types<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a").of_type("delete"));
    world.add(note("b").of_type("create").priority(1));
    world.add(note("c"));
    world.add(note("d").of_type("delete").priority(1));
    assert_eq!(world.claim(10), ["b", "d", "a", "c"]);
}

pub fn only_the_types_asked_for_are_claimed<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a"));
    world.add(note("b").of_type("create").priority(9));
    let claim = |types: &[&str], limit| {
        let types = types.iter().map(|&t| t.to_owned()).collect();
        let claims = world
            .store
            .claim(ClaimRequest { owner: owner("w1"), types, limit, limits: jobq::store::Limits::new() })
            .unwrap();
        claims.into_iter().map(|c| c.lease.id).collect::<Vec<_>>()
    };
    world.unchanged("a claim that finds nothing", || {
        assert_eq!(claim(&[], 10), NOTHING);
        assert_eq!(claim(&["unheard_of"], 10), NOTHING);
        assert_eq!(claim(&["note", "create"], 0), NOTHING);
    });
    assert_eq!(claim(&["note"], 10), ["a"]);
    assert_eq!(claim(&["unheard_of", "create"], 10), ["b"]);
}

pub fn any_number_of_types_can_be_claimed_at_once<H: Harness>() {
    let world = World::<H>::new();
    for (id, job_type, priority) in [("a", "note", 0), ("b", "create", 1), ("c", "delete", 0), ("d", "note", 2)] {
        world.add(note(id).of_type(job_type).priority(priority));
    }
    let mut types: Vec<String> = (0..600).map(|number| format!("unheard_of_{number}")).collect();
    types.insert(0, "note".to_owned());
    types.insert(300, "create".to_owned());
    // One of them twice.
    types.extend(["delete", "note"].map(str::to_owned));
    let claim = |limit| {
        let claims = world
            .store
            .claim(ClaimRequest { owner: owner("w1"), types: types.clone(), limit, limits: jobq::store::Limits::new() })
            .unwrap();
        claims.into_iter().map(|c| c.lease.id).collect::<Vec<_>>()
    };
    assert_eq!(claim(3), ["d", "b", "a"], "the best of all of them");
    assert_eq!(claim(3), ["c"]);
}

/// They would all be in memory at once.
pub fn a_claim_of_large_payloads_takes_fewer<H: Harness>() {
    let world = World::<H>::new();
    let large = format!("{{\"n\":\"{}\"}}", "x".repeat(11 << 20));
    for id in ["a", "b", "c", "d"] {
        world.add(note(id).payload(&large));
    }
    assert_eq!(world.claim(10), ["a", "b", "c"], "until there are 32 MiB");
    assert_eq!(world.claim(10), ["d"]);
}

pub fn a_claim_says_who_has_the_job_and_since_when<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a"));
    world.clock.advance(700);
    let claim = world.claim_as("w7", 1).remove(0);
    assert_eq!((claim.lease.id.as_str(), claim.lease.seq, claim.lease.token), ("a", claim.job.seq, 1));
    assert_eq!(format!("{:?}", claim.job), format!("{:?}", world.get("a")), "the job as it is now");
    let job = claim.job;
    assert_eq!((job.status, job.gate, job.attempts, job.token), (Status::Claimed, None, 1, 1));
    assert_eq!(job.locked_by.as_deref(), Some("w7"));
    assert_eq!((job.locked_at, job.claimed_at), (Some(world.now()), Some(world.now())));
    let leases = world.store.leases().unwrap();
    assert_eq!(leases.len(), 1);
    assert_eq!((&leases[0].lease, leases[0].heartbeat), (&claim.lease, 0));
    assert_eq!((leases[0].locked_by.as_str(), &leases[0].owner), ("w7", &Some(owner("w7"))));
}

pub fn a_job_is_due_at_its_time_and_not_before<H: Harness>() {
    let world = World::<H>::new();
    let due = world.now() + 5_000;
    world.add(note("later").run_at(due).priority(9));
    world.add(note("past").run_at(world.now() - 1));
    world.add(note("now").run_at(world.now()));
    assert_eq!(world.gate("past"), Some(Gate::Ready));
    assert_eq!(world.claim(10), ["past", "now"]);
    assert_eq!(world.gate("later"), Some(Gate::Delayed));
    world.clock.advance(4_999);
    assert_eq!(world.claim(10), NOTHING);
    world.add(note("newer"));
    world.clock.advance(1);
    assert_eq!(world.claim(10), ["later", "newer"], "once due, it counts by priority like any other");
}

pub fn a_given_time_is_kept_when_the_clock_is_set_back<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a").run_at(world.now() + 1_000));
    world.clock.advance(-3_600_000);
    assert_eq!(world.claim(10), NOTHING, "the caller meant that very time");
    world.clock.advance(3_601_000);
    assert_eq!(world.claim(10), ["a"]);
}

pub fn a_rescheduled_job_comes_back_after_its_delay<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    let due = world.now() + 2_000;
    assert_eq!(world.reschedule(&lease, 2_000), Ending::Done);
    let job = world.get("a");
    assert_eq!((job.status, job.gate, job.run_at), (Status::Pending, Some(Gate::Backoff), Some(due)));
    assert_eq!((job.locked_by, job.locked_at), (None, None));
    assert_eq!(job.last_error.as_deref(), Some("handler_error: it broke"));
    world.clock.advance(1_999);
    assert_eq!(world.claim(10), NOTHING);
    world.clock.advance(1);
    assert_eq!(world.claim(10), ["a"]);
}

/// A backoff farther away than the longest one can only come from a clock that
/// was ahead, so such a job is due.
pub fn a_backoff_beyond_the_longest_one_is_due<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a").backoff_max(30_000));
    world.reschedule(&lease, 1_000);
    world.clock.advance(-29_000);
    assert_eq!(world.claim(10), NOTHING, "exactly the longest backoff away may be meant");
    world.clock.advance(-1);
    assert_eq!(world.claim(10), ["a"]);
}

pub fn a_delay_longer_than_the_policy_is_waited_for<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a").backoff_max(1_000));
    world.reschedule(&lease, 60_000);
    assert_eq!(world.claim(10), NOTHING, "asked for like this, not a clock that jumped");
    world.clock.advance(60_000);
    assert_eq!(world.claim(10), ["a"]);
}

pub fn a_delay_beyond_all_dates_is_still_only_a_delay<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    let forever = std::time::Duration::MAX;
    assert_eq!(world.store.reschedule(lease, super::world::failure(), forever).unwrap(), Ending::Done);
    assert_eq!(world.claim(10), NOTHING);
    assert_eq!(world.gate("a"), Some(Gate::Backoff));
}
