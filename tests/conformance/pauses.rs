//! Types of which nothing is claimed for a while.

use std::time::Duration;

use jobq::Payload as _;
use jobq::clock::{Millis, rfc3339};
use jobq::state::Status;
use jobq::store::{Ending, Failure, Lease, Limits, Outlook, Store as _};

use super::Harness;
use super::draft::{Note, create, note, put};
use super::world::{World, kind};

const HOUR: Millis = 3_600_000;

/// A failure that pauses the type of its job.
fn pausing(millis: Millis) -> Failure {
    let mut failure = Failure::new("rate_limited", "too many requests");
    failure.pause = Some(Duration::from_millis(millis.unsigned_abs()));
    failure
}

fn pause<H: Harness>(world: &World<H>, lease: &Lease, millis: Millis) -> Ending {
    world.store.reschedule(lease.clone(), pausing(millis), Duration::ZERO).unwrap()
}

/// When the pause of notes ends, if there is one.
fn paused_until<H: Harness>(world: &World<H>) -> Option<String> {
    world.store.stats().unwrap().paused.pop().map(|paused| paused.until)
}

/// A world in which notes are paused for that long by a job that has ended since.
fn paused<H: Harness>(millis: Millis) -> World<H> {
    let world = World::<H>::new();
    let lease = world.running(note("first"));
    assert_eq!(world.store.fail(lease, pausing(millis)).unwrap(), Ending::Done);
    world
}

fn look<H: Harness>(world: &World<H>) -> Outlook {
    world.store.outlook(&[Note::TYPE.to_owned()], &Limits::new()).unwrap()
}

pub fn a_paused_type_is_not_claimed_until_its_pause_is_over<H: Harness>() {
    let world = paused::<H>(5_000);
    world.add(note("note").priority(9));
    world.add(create("other", "x", "y"));
    assert_eq!(world.claim(10), ["other"], "other types go on");
    assert!(world.claim_as("w2", 10).is_empty(), "and it holds for every worker");
    world.clock.advance(4_999);
    assert_eq!(world.claim(10), [""; 0]);
    world.clock.advance(1);
    assert_eq!(world.claim(10), ["note"]);
    world.clock.advance(-1);
    world.add(note("later"));
    assert_eq!(world.claim(10), ["later"], "what is over is gone, whatever the clock does");
}

pub fn a_pause_is_written_with_the_end_of_any_kind<H: Harness>() {
    for ending in [Ending::Done, Ending::Cancelled] {
        let world = World::<H>::new();
        let lease = world.running(note("job"));
        if ending == Ending::Cancelled {
            world.cancel("job");
        }
        assert_eq!(pause(&world, &lease, 5_000), ending);
        assert_eq!(paused_until(&world), Some(rfc3339(world.now() + 5_000)), "{ending:?}");
    }
    let world = World::<H>::new();
    let lease = world.running(note("job"));
    assert_eq!(world.store.fail(lease.clone(), pausing(5_000)).unwrap(), Ending::Done);
    let until = rfc3339(world.now() + 5_000);
    assert_eq!((world.status("job"), paused_until(&world)), (Status::Failed, Some(until.clone())));
    let told = world.events("job").pop().unwrap().data.unwrap();
    assert!(told.as_str().contains(&format!("\"type_paused_until\":\"{until}\"")), "{}", told.as_str());
    world.clock.advance(1_000);
    world.unchanged("the same end again", || world.store.fail(lease, pausing(60_000)).unwrap());
    assert_eq!(paused_until(&world), Some(until));
}

pub fn an_attempt_that_pauses_its_type_does_not_count<H: Harness>() {
    let world = World::<H>::new();
    let mut lease = world.running(note("job").max_attempts(1));
    for token in 2..=5 {
        assert_eq!(pause(&world, &lease, 5_000), Ending::Done, "although it was the last one");
        let job = world.get("job");
        assert_eq!((job.status, job.attempts, job.token), (Status::Pending, 0, token - 1));
        assert_eq!(job.last_error.as_deref(), Some("rate_limited: too many requests"));
        world.clock.advance(5_000);
        lease = world.claim_only("job");
        assert_eq!(lease.token, token, "a token is never given back");
    }
    assert_eq!(pause(&world, &lease, 0), Ending::Failed, "a pause of no time is none");
}

/// A claim that is given back has not run; this one has.
pub fn a_job_that_paused_its_type_has_run_all_the_same<H: Harness>() {
    let world = World::<H>::new();
    let failed = world.running(note("earlier").holds(&["lane"]));
    world.store.fail(failed, Failure::new("x", "y")).unwrap();
    let lease = world.running(note("later").holds(&["lane"]));
    pause(&world, &lease, 5_000);
    assert_eq!(kind(world.store.retry("earlier")), jobq::ErrorKind::WrongState);
}

pub fn a_longer_pause_is_never_shortened<H: Harness>() {
    let world = World::<H>::new();
    let leases: Vec<Lease> = ["a", "b", "c"].iter().map(|id| world.running(note(id))).collect();
    let until = rfc3339(world.now() + 60_000);
    pause(&world, &leases[0], 60_000);
    world.clock.advance(1_000);
    pause(&world, &leases[1], 2_000);
    assert_eq!(paused_until(&world), Some(until));
    pause(&world, &leases[2], 60_000);
    assert_eq!(paused_until(&world), Some(rfc3339(world.now() + 60_000)), "but it grows");
}

pub fn a_pause_is_a_week_at_most<H: Harness>() {
    let world = paused::<H>(1_000 * HOUR);
    assert_eq!(paused_until(&world), Some(rfc3339(world.now() + 168 * HOUR)));
    world.add(note("note"));
    world.clock.advance(168 * HOUR);
    assert_eq!(world.claim(10), ["note"]);
}

pub fn a_pause_can_be_ended<H: Harness>() {
    let world = paused::<H>(HOUR);
    world.add(note("note"));
    assert_eq!(world.claim(10), [""; 0]);
    assert!(world.store.resume("note").unwrap());
    assert_eq!((world.claim(10), paused_until(&world)), (vec!["note".to_owned()], None));
    assert!(!world.store.resume("note").unwrap(), "there is none any more");
}

pub fn a_pause_that_begins_later_because_the_clock_was_set_back_is_not_believed<H: Harness>() {
    let world = World::<H>::new();
    let leases: Vec<Lease> = ["a", "b"].iter().map(|id| world.running(note(id))).collect();
    let fail = |n: usize, millis| world.store.fail(leases[n].clone(), pausing(millis)).unwrap();
    fail(0, HOUR);
    world.add(note("note"));
    world.clock.advance(-1);
    assert!(look(&world).claimable && paused_until(&world).is_none());
    assert_eq!(world.get("note").blocked, None);
    fail(1, 1_000);
    assert_eq!(paused_until(&world), Some(rfc3339(world.now() + 1_000)), "a shorter one takes its place");
    world.clock.advance(-HOUR);
    assert_eq!(world.claim(10), ["note"]);
}

pub fn what_is_decided_is_applied_although_its_type_is_paused<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("other").max_attempts(1));
    world.decided(note("decided"), vec![put("x")]);
    pause(&world, &lease, 60_000);
    world.reclaim_from("w1");
    assert!(look(&world).decided);
    let taken = world.take_over("w2").remove(0).lease;
    world.apply(&taken).unwrap();
    assert_eq!(world.status("decided"), Status::Completed);
}

pub fn a_look_knows_of_a_pause_and_when_it_ends<H: Harness>() {
    let world = paused::<H>(5_000);
    let until = world.now() + 5_000;
    world.add(note("note"));
    let nothing = Outlook { claimable: false, decided: false, next_at: Some(until) };
    assert_eq!(look(&world), nothing);
    world.add(note("soon").run_at(until - 1_000));
    assert_eq!(look(&world).next_at, Some(until - 1_000), "whatever comes first");
    world.clock.advance(4_000);
    assert!(look(&world).claimable, "it is to be promoted");
    assert_eq!(world.claim(10), [""; 0]);
    assert_eq!(look(&world), nothing, "and nothing is left to do");
    let other = world.store.outlook(&["create".to_owned()], &Limits::new()).unwrap();
    assert_eq!(other.next_at, None, "of a type that was not asked for");
    world.clock.advance(1_000);
    assert!(look(&world).claimable);
    assert_eq!(world.claim(10), ["note", "soon"]);
    assert_eq!(look(&world).next_at, None);
}

pub fn rows_of_a_paused_type_are_admitted_once<H: Harness>() {
    let world = paused::<H>(5_000);
    world.add(note("plain").payload(r#"{"text":"x"}"#).unadmitted());
    assert!(look(&world).claimable, "a claim admits it");
    assert_eq!(world.claim(10), [""; 0]);
    assert!(!look(&world).claimable);
    world.clock.advance(5_000);
    assert_eq!(world.claim(10), ["plain"]);
}

pub fn a_job_says_that_its_type_is_paused<H: Harness>() {
    let world = paused::<H>(5_000);
    let until = rfc3339(world.now() + 5_000);
    let words = format!("paused until {until}: rate_limited: too many requests");
    world.add(note("ready"));
    world.add(note("soon").run_at(world.now() + 4_000));
    world.add(note("late").run_at(world.now() + 6_000));
    world.add(create("other", "x", "y"));
    let late = format!("runs at {}", rfc3339(world.now() + 6_000));
    for (id, blocked) in [("ready", Some(&words)), ("soon", Some(&words)), ("late", Some(&late)), ("other", None)] {
        assert_eq!(world.get(id).blocked.as_ref(), blocked, "{id}");
    }
    let listed = world.store.list(&jobq::Filter::default()).unwrap();
    assert_eq!(listed.iter().filter(|job| job.blocked.as_ref() == Some(&words)).count(), 2);
    assert_eq!(world.get("first").blocked, None, "what has ended waits for nothing");
    let paused = world.store.stats().unwrap().paused;
    assert_eq!(paused.len(), 1);
    assert_eq!((paused[0].job_type.as_str(), paused[0].until.as_str()), (Note::TYPE, until.as_str()));
    assert_eq!(paused[0].since, rfc3339(world.now()));
    assert_eq!(paused[0].reason.as_deref(), Some("rate_limited: too many requests"));
    world.clock.advance(5_000);
    assert_eq!(world.get("ready").blocked, None);
    assert!(world.store.stats().unwrap().paused.is_empty());
}

pub fn who_has_lost_its_lease_pauses_nothing<H: Harness>() {
    let world = World::<H>::new();
    let lost = world.running(note("job"));
    world.release(&lost);
    let answer = world.store.reschedule(lost.clone(), pausing(5_000), Duration::ZERO);
    assert_eq!(kind(answer), jobq::ErrorKind::LeaseLost);
    assert_eq!(kind(world.store.fail(lost, pausing(5_000))), jobq::ErrorKind::LeaseLost);
    assert_eq!(paused_until(&world), None);
}
