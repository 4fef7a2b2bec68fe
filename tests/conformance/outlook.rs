//! What a worker looks at before it claims.

use jobq::store::{Limits, Outlook, Store as _};

use super::Harness;
use super::draft::{Note, create, note, put};
use super::world::{Disk, World, owner};
use jobq::Payload as _;

fn look<H: Harness>(world: &World<H>) -> Outlook {
    world.store.outlook(&[Note::TYPE.to_owned()], &Limits::new()).unwrap()
}

const NOTHING: Outlook = Outlook { claimable: false, decided: false, next_at: None };

pub fn there_is_something_to_claim_when_a_claim_would_find_it<H: Harness>() {
    let world = World::<H>::new();
    assert_eq!(look(&world), NOTHING);
    world.add(create("other", "x", "y"));
    assert_eq!(look(&world), NOTHING, "of a type that was not asked for");
    world.add(note("job"));
    assert!(look(&world).claimable);
    let lease = world.claim_as("w1", 100).into_iter().find(|claim| claim.lease.id == "job").unwrap().lease;
    assert_eq!(look(&world), NOTHING);
    world.release(&lease);
    assert!(look(&world).claimable);
}

pub fn what_is_not_admitted_can_be_claimed_too<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("plain").payload(r#"{"text":"x"}"#).unadmitted());
    assert!(look(&world).claimable);
}

pub fn the_next_time_is_that_of_the_first_to_fall_due<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("late").run_at(world.now() + 5_000));
    world.add(note("soon").run_at(world.now() + 1_000));
    assert_eq!(look(&world), Outlook { next_at: Some(world.now() + 1_000), ..NOTHING });
    world.clock.advance(1_000);
    assert!(look(&world).claimable);
    assert_eq!(world.claim(1), ["soon"]);
    assert_eq!(look(&world).next_at, Some(world.now() + 4_000));
}

pub fn a_backoff_that_a_clock_set_back_made_too_long_is_due<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("job"));
    world.reschedule(&lease, 1_000);
    assert!(!look(&world).claimable);
    world.clock.advance(-3_600_000);
    assert!(look(&world).claimable);
}

pub fn decided_jobs_that_nobody_owns_are_seen_when_they_are_due<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(note("job"), vec![put("x")]);
    assert_eq!(look(&world), NOTHING, "its owner applies it");
    world.store.apply(lease, Disk::full(1_000)).unwrap();
    assert_eq!(look(&world), Outlook { next_at: Some(world.now() + 1_000), ..NOTHING });
    world.clock.advance(1_000);
    assert!(look(&world).decided);
}

pub fn types_that_could_run_are_named_once<H: Harness>() {
    let world = World::<H>::new();
    assert!(world.store.waiting_types().unwrap().is_empty());
    for (number, job_type) in ["zebra", "apple", "zebra", "mango"].into_iter().enumerate() {
        world.add(note(&format!("unknown-{number}")).of_type(job_type).unadmitted());
    }
    world.add(note("ready"));
    world.add(note("late").of_type("later").run_at(world.now() + 1_000));
    assert_eq!(world.store.waiting_types().unwrap(), ["apple", "mango", Note::TYPE, "zebra"]);
}

pub fn an_owner_finds_out_which_of_its_jobs_were_cancelled<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("mine"));
    world.running(note("also mine"));
    world.cancel("mine");
    assert_eq!(world.store.cancel_requests("w1").unwrap(), [(lease.seq, lease.token)]);
    assert!(world.store.cancel_requests(&owner("w2").locked_by).unwrap().is_empty());
}

pub fn a_staged_file_is_needed_until_it_is_applied<H: Harness>() {
    let world = World::<H>::new();
    let planned = |job: &str, stage: &str| world.store.is_planned(job, stage).unwrap();
    assert!(!planned("job", "stage/x"));
    let lease = world.decided(note("job"), vec![put("x")]);
    assert!(planned("job", "stage/x") && !planned("job", "stage/y") && !planned("other", "stage/x"));
    world.store.apply(lease, Disk::in_conflict()).unwrap();
    assert!(planned("job", "stage/x"), "a retry would need it");
    world.store.retry("job").unwrap();
    let again = world.take_over("w2").remove(0).lease;
    world.apply(&again).unwrap();
    assert!(!planned("job", "stage/x"));
}
