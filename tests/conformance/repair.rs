//! Putting back what a job left, and never over what has come after it.

use jobq::state::Status;
use jobq::store::{Application, Enqueued, RepairJob, Requeued, Store as _};

use super::Harness;
use super::draft::{Draft, create, note, put, remove};
use super::expected::applied;
use super::world::{Disk, World};

/// Asks for what `left_by` left at `x` to be put back.
fn repair<H: Harness>(world: &World<H>, job: Draft, left_by: &str) -> Requeued {
    let (path, left_by) = ("x".to_owned(), left_by.to_owned());
    world.store.repair(RepairJob { job: job.build(), path, left_by }).unwrap()
}

/// The same, where it has to be refused and to leave no trace.
fn overtaken_by<H: Harness>(world: &World<H>, left_by: &str) -> Option<String> {
    match world.unchanged("a refused repair", || repair(world, create("repair", "x", "1"), left_by)) {
        Requeued::Overtaken { by } => by,
        queued @ Requeued::Queued(_) => panic!("{queued:?}"),
    }
}

pub fn a_repair_is_an_ordinary_job_on_its_path<H: Harness>() {
    let world = World::<H>::new();
    applied(&world, "a", vec![put("x")]);
    let answer = repair(&world, create("repair", "x", "1"), "a");
    assert!(matches!(&answer, Requeued::Queued(Enqueued { id, .. }) if id == "repair"), "{answer:?}");
    assert_eq!(world.event_types("repair"), ["queued"]);
    assert_eq!(overtaken_by(&world, "a"), Some("repair".into()), "asked for once more, there is one already");
    let lease = world.claim_only("repair");
    world.decide(&lease, vec![put("x")]).unwrap();
    assert_eq!(world.apply(&lease).unwrap(), Application::Completed);
    assert_eq!(world.store.expected_file("x").unwrap().unwrap().job_id, "repair");
}

pub fn a_repair_is_refused_when_another_job_has_the_path<H: Harness>() {
    let world = World::<H>::new();
    applied(&world, "a", vec![put("x")]);
    world.add(create("next", "x", "2"));
    assert_eq!(overtaken_by(&world, "a"), Some("next".into()));
    let lease = world.claim_only("next");
    assert_eq!(overtaken_by(&world, "a"), Some("next".into()));
    world.decide(&lease, vec![put("x")]).unwrap();
    assert_eq!(overtaken_by(&world, "a"), Some("next".into()));
}

/// What was inserted without a check has no holds before it is admitted.
pub fn a_repair_admits_first<H: Harness>() {
    let world = World::<H>::new();
    applied(&world, "a", vec![put("x")]);
    world.add(create("unchecked", "x", "2").no_key().unadmitted());
    let answer = repair(&world, create("repair", "x", "1"), "a");
    assert_eq!(answer, Requeued::Overtaken { by: Some("unchecked".into()) });
    world.claim_only("unchecked");
}

pub fn a_repair_is_refused_when_another_job_has_changed_the_path<H: Harness>() {
    let world = World::<H>::new();
    applied(&world, "a", vec![put("x")]);
    applied(&world, "b", vec![remove("x")]);
    assert_eq!(overtaken_by(&world, "a"), Some("b".into()));
    assert_eq!(overtaken_by(&world, "never was"), Some("b".into()));
    assert!(matches!(repair(&world, create("repair", "x", "1"), "b"), Requeued::Queued(_)));
}

pub fn a_repair_of_what_nobody_knows_is_refused<H: Harness>() {
    let world = World::<H>::new();
    assert_eq!(overtaken_by(&world, "a"), None);
    // What was planned and never applied is not known either.
    let lease = world.decided(note("a"), vec![put("x")]);
    world.store.apply(lease, Disk::in_conflict()).unwrap();
    assert_eq!((world.status("a"), overtaken_by(&world, "a")), (Status::Failed, None));
}

pub fn what_jobs_did_below_a_folder_is_known<H: Harness>() {
    let world = World::<H>::new();
    let touched = |folder: &str| world.store.touched_below(folder).unwrap();
    // The characters before and after the slash, and the same beginning.
    applied(&world, "a", vec![put("a/b/c"), put("ab/c"), put("q.b"), put("q0b")]);
    assert_eq!(["a", "a/b", "ab"].map(touched), [true; 3]);
    assert_eq!(["a/b/c", "q", "q.b", "b", "nowhere", "A"].map(touched), [false; 6], "the path itself is not below");
    world.decided(note("b"), vec![put("planned/x")]);
    assert!(touched("planned"), "what is only planned counts");
    let lease = world.decided(note("c"), vec![remove("a/b/c")]);
    world.apply(&lease).unwrap();
    assert!(touched("a/b"), "that it was removed counts, too");
}
