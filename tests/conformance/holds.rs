//! Holds: one holder of a key at a time, in order of acceptance.

use jobq::state::{Gate, Status};
use jobq::store::{Ending, Lease, Store as _};

use super::Harness;
use super::draft::{Draft, note};
use super::world::World;

fn on(id: &str, keys: &[&str]) -> Draft {
    note(id).holds(keys)
}

pub fn holders_of_a_key_run_one_at_a_time_in_order<H: Harness>() {
    let world = World::<H>::new();
    for id in ["a", "b", "c"] {
        world.add(on(id, &["lane:x"]));
    }
    world.add(on("elsewhere", &["lane:y"]));
    assert_eq!((world.gate("a"), world.gate("b")), (Some(Gate::Ready), Some(Gate::Held)));
    let first = world.claim_as("w1", 10);
    assert_eq!(first.iter().map(|c| c.lease.id.as_str()).collect::<Vec<_>>(), ["a", "elsewhere"]);
    assert_eq!(world.claim(10), [""; 0]);
    world.complete(&first[0].lease);
    let second = world.claim_only("b");
    world.complete(&second);
    world.claim_only("c");
}

pub fn hold_order_beats_priority<H: Harness>() {
    let world = World::<H>::new();
    world.add(on("low", &["lane:x"]).priority(-100));
    world.add(on("high", &["lane:x"]).priority(100));
    world.add(note("middle"));
    let claims = world.claim_as("w1", 10);
    assert_eq!(claims.iter().map(|c| c.lease.id.as_str()).collect::<Vec<_>>(), ["middle", "low"]);
    world.complete(&claims[1].lease);
    world.claim_only("high");
}

pub fn a_delayed_head_blocks_what_is_behind_it<H: Harness>() {
    let world = World::<H>::new();
    world.add(on("head", &["lane:x"]).run_at(world.now() + 1_000));
    world.add(on("behind", &["lane:x"]).priority(9));
    assert_eq!(world.claim(10), [""; 0]);
    assert_eq!(world.get("behind").blocked.as_deref(), Some("behind head on lane:x"));
    world.clock.advance(1_000);
    let head = world.claim_only("head");
    world.complete(&head);
    world.claim_only("behind");
}

pub fn a_waiting_head_blocks_what_is_behind_it<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("parent"));
    world.add(on("head", &["lane:x"]).after("parent"));
    world.add(on("behind", &["lane:x"]));
    let parent = world.claim_only("parent");
    world.complete(&parent);
    let head = world.claim_only("head");
    world.complete(&head);
    world.claim_only("behind");
}

pub fn a_job_runs_when_it_is_first_on_all_its_keys<H: Harness>() {
    let world = World::<H>::new();
    world.add(on("x", &["lane:x"]));
    world.add(on("y", &["lane:y"]));
    world.add(on("both", &["lane:x", "lane:y"]));
    world.add(on("after", &["lane:y"]));
    let claims = world.claim_as("w1", 10);
    assert_eq!(claims.iter().map(|c| c.lease.id.as_str()).collect::<Vec<_>>(), ["x", "y"]);
    world.complete(&claims[1].lease);
    assert_eq!(world.claim(10), [""; 0], "first on one key is not enough, and nobody overtakes");
    world.complete(&claims[0].lease);
    let both = world.claim_only("both");
    world.complete(&both);
    world.claim_only("after");
}

/// Each way back to pending leaves a job where it was in line.
pub fn a_head_that_comes_back_keeps_its_place<H: Harness>() {
    type Way<H> = fn(&World<H>, &Lease);
    let ways: [(&str, Way<H>); 3] = [
        ("reschedule", |w, lease| assert_eq!(w.reschedule(lease, 1_000), Ending::Done)),
        ("release", |w, lease| w.release(lease)),
        ("reclaim", |w, _| drop(w.reclaim_from("w1"))),
    ];
    for (name, way) in ways {
        let world = World::<H>::new();
        let head = world.running(on("head", &["lane:x"]));
        world.add(on("behind", &["lane:x"]).priority(5));
        way(&world, &head);
        assert_eq!(world.gate("behind"), Some(Gate::Held), "{name}");
        world.clock.advance(1_000);
        let head = world.claim_only("head");
        world.complete(&head);
        world.claim_only("behind");
    }
}

pub fn any_end_of_the_head_lets_the_next_one_run<H: Harness>() {
    for end in [Status::Completed, Status::Failed, Status::Cancelled] {
        let world = World::<H>::new();
        let head = world.running(on("head", &["lane:x"]));
        world.add(on("next", &["lane:x"]));
        match end {
            Status::Completed => world.complete(&head),
            Status::Failed => world.fail(&head),
            _ => {
                world.cancel("head");
                assert_eq!(world.claim(10), [""; 0], "called off, but not stopped yet");
                world.store.acknowledge_cancel(head).unwrap();
            }
        }
        assert_eq!(world.status("head"), end);
        world.claim_only("next");
    }
}

pub fn cancelling_a_job_in_line_closes_the_gap<H: Harness>() {
    let world = World::<H>::new();
    for id in ["a", "b", "c"] {
        world.add(on(id, &["lane:x"]));
    }
    world.cancel("b");
    let head = world.claim_only("a");
    world.complete(&head);
    world.claim_only("c");

    let world = World::<H>::new();
    world.add(on("a", &["lane:x"]));
    world.add(on("b", &["lane:x"]));
    world.cancel("a");
    world.claim_only("b");
}

pub fn a_ring_of_shared_keys_does_not_lock_up<H: Harness>() {
    let world = World::<H>::new();
    world.add(on("a", &["lane:x", "lane:y"]));
    world.add(on("b", &["lane:y", "lane:z"]));
    world.add(on("c", &["lane:z", "lane:x"]));
    for id in ["a", "b", "c"] {
        let lease = world.claim_only(id);
        world.complete(&lease);
    }
}

/// Four jobs, each on any subset of two keys, later ones with more priority:
/// at every moment exactly those run that have nobody unfinished before them.
pub fn what_can_run_is_what_has_nobody_before_it<H: Harness>() {
    let world = World::<H>::new();
    let subsets: [&[&str]; 4] = [&[], &["lane:x"], &["lane:y"], &["lane:x", "lane:y"]];
    for plan in 0..4_usize.pow(4) {
        let keys: Vec<&[&str]> = (0..4).map(|job| subsets[plan / 4_usize.pow(job) % 4]).collect();
        let ids: Vec<String> = (0..4).map(|job| format!("p{plan}-{job}")).collect();
        for (number, id) in ids.iter().enumerate() {
            world.add(on(id, keys[number]).priority(i32::try_from(number).unwrap()));
        }
        let mut unfinished: Vec<usize> = (0..4).collect();
        let mut running: Vec<(usize, Lease)> = Vec::new();
        while !unfinished.is_empty() {
            for claim in world.claim_as("w1", 10) {
                running.push((ids.iter().position(|id| *id == claim.lease.id).unwrap(), claim.lease));
            }
            let mut actual: Vec<usize> = running.iter().map(|(job, _)| *job).collect();
            actual.sort_unstable();
            let alone = |job: &usize| {
                !unfinished.iter().any(|other| other < job && keys[*other].iter().any(|key| keys[*job].contains(key)))
            };
            let expected: Vec<usize> = unfinished.iter().copied().filter(alone).collect();
            assert_eq!(actual, expected, "plan {plan}");
            // Which of the running ones ends first differs from plan to plan.
            let (job, lease) = running.remove(plan % running.len());
            world.complete(&lease);
            unfinished.retain(|other| *other != job);
        }
    }
}
