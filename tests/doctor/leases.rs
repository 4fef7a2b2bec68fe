//! Claimed jobs whose owner does not get on with them.

use std::time::Duration;

use jobq::doctor::Verdict;
use jobq::liveness::OwnerLock;
use jobq::store::{ClaimRequest, Store as _};

use super::locked::{Child, Deed};
use super::world::World;
use crate::support::{claim, note};

const MINUTE: i64 = 60_000;

fn claimed_by(world: &World, lock: &OwnerLock) -> String {
    let queue = world.queue();
    let id = queue.enqueue(note("a")).unwrap().id;
    let request = ClaimRequest {
        owner: lock.owner().clone(),
        types: vec!["note".into()],
        limit: 1,
        limits: jobq::store::Limits::new(),
    };
    assert_eq!(queue.store().claim(request).unwrap().len(), 1);
    id
}

#[test]
fn a_dead_owner_is_told_until_its_jobs_are_taken_back() {
    let world = World::new();
    let lock = OwnerLock::acquire(&world.state().join("owners")).unwrap();
    claimed_by(&world, &lock);
    let owner = lock.owner().locked_by.clone();
    world.examine().says("leases", Verdict::Ok, &["1 job claimed"]);
    world.let_go(lock);
    world.examine().only("leases", Verdict::Warn, &[&owner, "1 job", "dead", "jobq reclaim"]);
    world.queue().reclaim().unwrap();
    assert_eq!(world.examine().troubles(), [""; 0]);
}

#[test]
fn an_owner_elsewhere_is_told_when_it_has_been_silent_for_a_lease() {
    let world = World::new();
    let queue = world.queue();
    queue.enqueue(note("a")).unwrap();
    assert_eq!(claim(queue.store(), 1).len(), 1);
    world.examine_after(4 * MINUTE).says("leases", Verdict::Ok, &[]);
    world.examine_after(6 * MINUTE).only("leases", Verdict::Warn, &["no sign of life for 6m", "--lease 5m"]);
}

#[test]
fn an_owner_that_has_promised_to_be_silent_for_longer_may_be() {
    let world = World::new();
    let lock = OwnerLock::acquire(&world.state().join("owners")).unwrap();
    lock.promise(Duration::from_secs(3600)).unwrap();
    claimed_by(&world, &lock);
    world.examine_after(59 * MINUTE).says("leases", Verdict::Ok, &[]);
    world.examine_after(61 * MINUTE).only("leases", Verdict::Warn, &["no sign of life"]);
}

#[test]
fn an_owner_that_is_stopped_is_told_at_once() {
    let world = World::new();
    world.queue().enqueue(note("a")).unwrap();
    let child = Child::start(&world, Deed::Claim);
    world.examine().says("leases", Verdict::Ok, &[]);
    child.stop();
    let go_on = format!("kill -CONT {}", child.pid());
    world.examine().only("leases", Verdict::Warn, &["which is stopped", &go_on]);
}
