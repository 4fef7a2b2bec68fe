//! What the disk should hold, and what jobs did to a path.

use std::sync::Arc;

use jobq::state::{Gate, Status};
use jobq::store::{
    Application, Confirmation, ExpectedQuery, ExpectedStamp, PlannedEffect, PruneRequest, Store as _, Suspicion,
};

use super::Harness;
use super::draft::{create, note, put, remove, sha256};
use super::world::{Disk, World};

/// Everything expected, read in pages of this many effects.
fn expected<H: Harness>(world: &World<H>, limit: u32, job_type: Option<&str>) -> Vec<ExpectedStamp> {
    let job_type = job_type.map(str::to_owned);
    let mut query = ExpectedQuery { after: String::new(), job_type, hashes: true, limit };
    let mut all = Vec::new();
    loop {
        let page = world.store.expected(&query).unwrap();
        all.extend(page.files);
        match page.next {
            Some(next) => query.after = next,
            None => return all,
        }
    }
}

/// Runs a job that does this.
pub fn applied<H: Harness>(world: &World<H>, id: &str, effects: Vec<PlannedEffect>) {
    let lease = world.decided(note(id), effects);
    assert_eq!(world.apply(&lease).unwrap(), Application::Completed);
}

pub fn the_latest_applied_effect_of_each_path_is_expected<H: Harness>() {
    let world = World::<H>::new();
    // Later jobs have smaller names: the order of application counts, not that of ids.
    applied(&world, "z", vec![put("a"), put("b/c"), put("d")]);
    for id in ["y", "x", "w"] {
        applied(&world, id, vec![put("b/c")]);
    }
    applied(&world, "v", vec![remove("a")]);
    let pending = world.decided(note("u"), vec![put("d"), put("never")]);
    let paths: Vec<_> = ["a", "b/c", "d"].map(str::to_owned).into();
    for limit in [1, 2, 3, 4, 5, 6, 7, 100] {
        let all = expected(&world, limit, None);
        assert_eq!(all.iter().map(|file| file.path.clone()).collect::<Vec<_>>(), paths, "{limit} at a time");
        assert_eq!(all.iter().map(|file| file.superseded).collect::<Vec<_>>(), [1, 3, 0], "{limit} at a time");
        assert_eq!(all.iter().map(|file| file.size).collect::<Vec<_>>(), [None, Some(12), Some(12)]);
        assert_eq!(all[1].sha256, Some(sha256("b/c")));
        assert_eq!(expected(&world, limit, Some("note")), all);
        assert!(expected(&world, limit, Some("create")).is_empty());
    }
    let file = world.store.expected_file("d").unwrap().unwrap();
    assert_eq!((file.job_id.as_str(), file.planned), ("z", vec![Some(sha256("d"))]), "what is planned is as good");
    assert_eq!(world.store.expected_file("never").unwrap(), None);
    world.apply(&pending).unwrap();
    assert_eq!(world.store.expected_file("d").unwrap().unwrap().job_id, "u");
    assert_eq!(expected(&world, 3, None).len(), 4);
}

pub fn what_a_failed_job_planned_is_not_expected<H: Harness>() {
    let world = World::<H>::new();
    applied(&world, "a", vec![put("x")]);
    let lease = world.decided(note("b"), vec![put("x")]);
    world.store.apply(lease, Disk::in_conflict()).unwrap();
    let file = world.store.expected_file("x").unwrap().unwrap();
    assert_eq!((file.job_id.as_str(), file.planned.len()), ("a", 0));
}

pub fn a_suspicion_is_confirmed_only_if_nothing_has_changed<H: Harness>() {
    let world = World::<H>::new();
    applied(&world, "a", vec![put("x")]);
    let confirm = |job: &str, still_so: bool| {
        let suspicion = Suspicion { path: "x".into(), job_id: job.into(), still_so: Arc::new(move || still_so) };
        world.unchanged("a confirmation", || world.store.confirm(suspicion)).unwrap()
    };
    assert_eq!(confirm("a", true), Confirmation::Confirmed { in_flight: None });
    assert_eq!(confirm("a", false), Confirmation::Changed { by: None });
    assert_eq!(confirm("another", true), Confirmation::Changed { by: Some("a".into()) });
    world.add(create("next", "x", "1"));
    assert_eq!(confirm("a", true), Confirmation::Confirmed { in_flight: Some("next".into()) });
    assert_eq!(confirm("a", false), Confirmation::Changed { by: Some("next".into()) });
    let lease = world.claim_only("next");
    world.decide(&lease, vec![put("x")]).unwrap();
    world.apply(&lease).unwrap();
    assert_eq!(confirm("a", true), Confirmation::Changed { by: Some("next".into()) }, "another job was there");
}

pub fn a_confirmation_admits_first<H: Harness>() {
    let world = World::<H>::new();
    applied(&world, "a", vec![put("x")]);
    world.add(create("unchecked", "x", "1").no_key().unadmitted());
    world.add(create("elsewhere", "y", "1").no_key().unadmitted());
    let suspicion = Suspicion { path: "x".into(), job_id: "a".into(), still_so: Arc::new(|| true) };
    let in_flight = Some("unchecked".to_owned());
    assert_eq!(world.store.confirm(suspicion).unwrap(), Confirmation::Confirmed { in_flight });
    for id in ["unchecked", "elsewhere"] {
        assert_eq!(world.gate(id), Some(Gate::Ready));
    }
}

pub fn the_history_of_a_path_begins_with_the_newest<H: Harness>() {
    let world = World::<H>::new();
    applied(&world, "z", vec![put("x"), put("other")]);
    applied(&world, "a", vec![remove("x")]);
    world.decided(note("m"), vec![put("x")]);
    let history = world.store.history("x").unwrap();
    assert_eq!(history.iter().map(|effect| effect.job_id.as_str()).collect::<Vec<_>>(), ["m", "a", "z"]);
    assert_eq!(history.iter().map(|effect| effect.applied).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(history[0].job, Some(("note".to_owned(), Status::Claimed)));
    assert_eq!((history[1].sha256.as_ref(), history[1].before.clone()), (None, Some(sha256("old"))));
    assert_eq!((history[2].sha256.clone(), history[2].size), (Some(sha256("x")), Some(12)));
    assert_eq!((history[1].at, history[2].before.clone()), (Some(world.now()), None));
    let applied_at = world.now();
    world.clock.advance(10);
    world
        .store
        .prune(PruneRequest { job_type: None, ended_before: world.now(), failed: false, forget: false })
        .unwrap();
    let history = world.store.history("x").unwrap();
    assert_eq!(history.iter().map(|effect| effect.job_id.as_str()).collect::<Vec<_>>(), ["m", "a"], "the latest stays");
    assert!(history[1].job.is_none() && history[1].payload.is_none());
    assert_eq!(history[1].at, Some(applied_at), "when it happened is known without the job");
    assert!(world.store.history("nowhere").unwrap().is_empty());
}
