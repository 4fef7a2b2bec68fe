//! How many jobs of a type may run at once.

use jobq::Payload as _;
use jobq::store::{ClaimRequest, ClaimedJob, Lease, Limits, Store as _};

use super::Harness;
use super::draft::{Create, Note, create, note, put};
use super::world::{World, owner};

fn types() -> Vec<String> {
    vec![Create::TYPE.to_owned(), Note::TYPE.to_owned()]
}

fn notes(limit: u32) -> Limits {
    Limits::from([(Note::TYPE.to_owned(), limit)])
}

/// A claim by someone who lets so many notes run at once.
fn claim<H: Harness>(world: &World<H>, worker: &str, limit: u32, most: u32) -> Vec<ClaimedJob> {
    let request = ClaimRequest { owner: owner(worker), types: types(), limit, limits: notes(most) };
    world.store.claim(request).unwrap()
}

fn ids(claims: &[ClaimedJob]) -> Vec<&str> {
    claims.iter().map(|claim| claim.lease.id.as_str()).collect()
}

fn claimable<H: Harness>(world: &World<H>, most: u32) -> bool {
    world.store.outlook(&types(), &notes(most)).unwrap().claimable
}

pub fn no_more_than_the_limit_run_at_once_whoever_runs_them<H: Harness>() {
    let world = World::<H>::new();
    for id in ["a", "b", "c", "d"] {
        world.add(note(id));
    }
    assert!(claimable(&world, 2));
    assert_eq!(ids(&claim(&world, "w1", 1, 2)), ["a"]);
    assert!(claimable(&world, 2) && !claimable(&world, 1));
    let second = claim(&world, "w2", 10, 2);
    assert_eq!(ids(&second), ["b"]);
    assert!(!claimable(&world, 2), "what no claim would find is not promised");
    assert!(claim(&world, "w1", 10, 2).is_empty() && claim(&world, "w3", 10, 2).is_empty());
    world.complete(&second[0].lease);
    assert!(claimable(&world, 2));
    assert_eq!(ids(&claim(&world, "w3", 10, 2)), ["c"]);
    assert_eq!(ids(&claim(&world, "w4", 10, 9)), ["d"], "everyone goes by what they were told");
}

pub fn other_types_do_not_count_and_go_on<H: Harness>() {
    let world = World::<H>::new();
    world.add(create("file", "x", "y"));
    world.add(note("low"));
    world.add(note("high").priority(5));
    world.add(create("urgent file", "z", "y").priority(9));
    world.add(create("late file", "q", "y").priority(-1));
    assert_eq!(ids(&claim(&world, "w1", 1, 1)), ["urgent file"]);
    // Of the type with a limit the best one, in its place among the others.
    assert_eq!(ids(&claim(&world, "w1", 10, 1)), ["high", "file", "late file"]);
    assert!(!claimable(&world, 1));
    world.add(create("more", "m", "y"));
    assert!(claimable(&world, 1));
    assert_eq!(ids(&claim(&world, "w2", 10, 1)), ["more"]);
}

/// A way to bring a run to its end.
type End<H> = fn(&World<H>, &Lease);

pub fn any_end_of_a_run_makes_room<H: Harness>() {
    let ways: [(&str, End<H>); 6] = [
        ("complete", |world, lease| world.complete(lease)),
        ("fail", |world, lease| world.fail(lease)),
        ("release", |world, lease| world.release(lease)),
        ("reschedule", |world, lease| {
            world.reschedule(lease, 60_000);
        }),
        ("reclaim", |world, _| drop(world.reclaim_from("w1"))),
        // What is decided does not run any more, although it is still claimed.
        ("decide", |world, lease| {
            world.decide(lease, vec![put("x")]).unwrap();
        }),
    ];
    for (way, end) in ways {
        let world = World::<H>::new();
        world.add(note("first"));
        let first = claim(&world, "w1", 10, 1);
        world.add(note("second").priority(1));
        assert!(claim(&world, "w2", 10, 1).is_empty(), "{way}");
        end(&world, &first[0].lease);
        assert!(claimable(&world, 1), "{way}");
        assert_eq!(ids(&claim(&world, "w2", 10, 1)), ["second"], "{way}");
    }
}

pub fn a_type_that_is_asked_for_twice_has_one_limit<H: Harness>() {
    let world = World::<H>::new();
    for id in ["a", "b", "c"] {
        world.add(note(id));
    }
    let types = [types(), types()].concat();
    let request = ClaimRequest { owner: owner("w1"), types, limit: 10, limits: notes(2) };
    assert_eq!(ids(&world.store.claim(request).unwrap()), ["a", "b"]);
}
