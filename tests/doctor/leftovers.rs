//! Staged files that dead processes have left.

use jobq::doctor::Verdict;
use jobq::liveness::OwnerLock;

use super::jobs::accepted_and_not_applied;
use super::world::World;

#[test]
fn staged_files_that_nobody_needs_are_counted_and_left() {
    let world = World::new();
    // What this one has staged is still to be applied.
    let id = accepted_and_not_applied(&world);
    world.examine().only("decided", Verdict::Warn, &[&id]);
    let litter = world.state().join("stage/gone-1-abc");
    std::fs::create_dir_all(litter.join("01J.1.dir")).unwrap();
    std::fs::write(litter.join("01J.1.0"), "12345").unwrap();
    std::fs::write(litter.join("01J.1.dir/inner"), "123").unwrap();
    let findings = world.examine();
    findings.says("stage", Verdict::Warn, &["2 files (8 bytes)", "gone-1-abc", "jobq reclaim"]);
    assert!(litter.join("01J.1.0").exists());
    world.queue().roll_forward().unwrap();
    world.examine().says("stage", Verdict::Ok, &[]);
    assert!(!litter.exists());
}

#[test]
fn what_a_living_process_has_staged_is_no_litter() {
    let world = World::new();
    let lock = OwnerLock::acquire(&world.state().join("owners")).unwrap();
    let own = world.state().join("stage").join(&lock.owner().locked_by);
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("01J.1.0"), "x").unwrap();
    assert_eq!(world.examine().troubles(), [""; 0]);
    world.let_go(lock);
    world.examine().says("stage", Verdict::Warn, &["1 file (1 bytes)"]);
}
