//! The same verb again by the same owner, because an answer did not arrive;
//! and verbs that the job's state does not allow.

use jobq::ErrorKind;
use jobq::store::{Lease, Store as _};

use super::Harness;
use super::draft::{note, put};
use super::fencing::lease_verbs;
use super::world::{Disk, World, kind};

/// What each verb says on a job in some state, none of them changing anything.
fn table<H: Harness>(world: &World<H>, lease: &Lease, allowed: &[(&str, &str)], refusal: ErrorKind) {
    for (name, verb) in lease_verbs::<H::S>() {
        let expected = allowed.iter().find(|(verb, _)| *verb == name).map(|(_, says)| (*says).to_owned());
        let answer = world.unchanged(name, || verb(&world.store, lease.clone()));
        assert_eq!(answer, expected.ok_or(refusal), "{name}");
    }
}

/// "Completed under my token" is success, whichever verb completes.
pub fn on_a_job_completed_under_this_token<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.complete(&lease);
    table(&world, &lease, &[("complete", "Done"), ("apply", "Completed")], ErrorKind::LeaseLost);

    let lease = world.decided(note("b"), vec![put("x")]);
    world.apply(&lease).unwrap();
    table(&world, &lease, &[("complete", "Done"), ("apply", "Completed")], ErrorKind::LeaseLost);
}

pub fn on_a_job_failed_under_this_token<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.fail(&lease);
    table(&world, &lease, &[("fail", "Done")], ErrorKind::LeaseLost);
}

pub fn on_a_job_cancelled_under_this_token<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    world.cancel("a");
    world.store.acknowledge_cancel(lease.clone()).unwrap();
    table(&world, &lease, &[], ErrorKind::LeaseLost);
}

/// A decided job can only be applied; deciding again is the same decision.
pub fn on_a_decided_job<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(note("a"), vec![put("x")]);
    for (name, verb) in lease_verbs::<H::S>() {
        let expected = match name {
            "decide" => Ok("Done".to_owned()),
            // These two are allowed and do change something.
            "heartbeat" | "apply" => continue,
            _ => Err(ErrorKind::WrongState),
        };
        let answer = world.unchanged(name, || verb(&world.store, lease.clone()));
        assert_eq!(answer, expected, "{name}");
    }
    let disk = Disk::obedient();
    world.store.apply(lease, disk.clone()).unwrap();
    let asked = disk.asked.lock().unwrap();
    assert_eq!(asked[0].1, [put("x")], "the first decision stands");
}

pub fn on_a_running_job_without_a_decision<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.running(note("a"));
    let disk = Disk::obedient();
    let answer = world.unchanged("apply", || kind(world.store.apply(lease.clone(), disk.clone())));
    assert_eq!(answer, ErrorKind::WrongState);
    assert_eq!(disk.asked.lock().unwrap().len(), 0);
    let answer = world.unchanged("acknowledge_cancel", || kind(world.store.acknowledge_cancel(lease.clone())));
    assert_eq!(answer, ErrorKind::WrongState, "nobody asked it to stop");
    world.complete(&lease);
}

pub fn verbs_by_id_do_not_invent_jobs<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a"));
    world.unchanged("a verb on an unknown id", || {
        assert_eq!(kind(world.store.get("nobody")), ErrorKind::NotFound);
        assert_eq!(kind(world.store.cancel("nobody")), ErrorKind::NotFound);
        assert_eq!(kind(world.store.retry("nobody")), ErrorKind::NotFound);
        assert_eq!(kind(world.store.resolve("nobody")), ErrorKind::NotFound);
        assert_eq!(world.events("nobody").len(), 0);
    });
}

/// Every verb that leads away from `pending` needs a claim first.
pub fn a_pending_job_has_no_lease_to_use<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a"));
    let lease = Lease { id: "a".to_owned(), seq: world.get("a").seq, token: 0 };
    table(&world, &lease, &[], ErrorKind::LeaseLost);
}
