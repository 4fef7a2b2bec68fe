//! Files to write and the jobs that wait on them, accepted as one.

use std::sync::Arc;

use jobq::state::{Gate, Status};
use jobq::store::{
    AcceptedPath, Application, Applier, ApplyReport, Commit, Committed, Enqueued, FileStamp, Lease, PlannedEffect,
    Precondition, Settled, Step, Store as _,
};
use jobq::{EnqueueOutcome, Error, ErrorKind, Result};

use super::Harness;
use super::draft::{Draft, create, note, path_key, put, remove};
use super::world::{Disk, World, conflict, kind, owner};

/// A commit of this id that does this to files; the disk is as it was planned.
fn commit(id: &str, effects: Vec<PlannedEffect>, jobs: Vec<Draft>) -> Commit {
    let paths: Vec<&str> = effects.iter().map(|effect| effect.path.as_str()).collect();
    let payload = serde_json::json!({ "text": paths.join(",") });
    let keys: Vec<String> = paths.iter().map(|path| path_key(path)).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let files = note(id).given().payload(&payload.to_string()).holds(&keys);
    let jobs = jobs.into_iter().map(|job| job.after(id).build()).collect();
    Commit { owner: owner("app"), files: files.build(), effects, jobs, still_so: Arc::new(|| Ok(())) }
}

fn accept<H: Harness>(world: &World<H>, commit: Commit) -> (Lease, Vec<Enqueued>) {
    match world.store.commit(commit).unwrap() {
        Committed::New { lease, jobs } => (lease, jobs),
        Committed::Existing(job) => panic!("{job:?}"),
    }
}

fn apply_or_withdraw<H: Harness>(world: &World<H>, lease: &Lease, disk: Arc<dyn Applier>) -> Application {
    match world.store.one(lease.clone(), Step::ApplyOrWithdraw(disk)).unwrap() {
        Settled::Applied(application) => application,
        Settled::Ended(ending) => panic!("{ending:?}"),
    }
}

fn refused<H: Harness>(world: &World<H>, commit: Commit) -> Error {
    world.unchanged("a refused commit", || world.store.commit(commit).unwrap_err())
}

pub fn a_commit_is_claimed_and_decided_from_the_start<H: Harness>() {
    let world = World::<H>::new();
    let (lease, jobs) = accept(&world, commit("c", vec![put("x"), remove("y")], vec![note("a"), note("b")]));
    let job = world.get("c");
    assert_eq!((job.status, job.token, job.attempts), (Status::Claimed, 1, 1));
    assert_eq!(job.locked_by.as_deref(), Some("app"));
    assert!(job.outcome.is_some() && lease.token == 1 && lease.seq == job.seq);
    assert_eq!(world.event_types("c"), ["queued", "claimed", "decided"]);
    assert_eq!(jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    for id in ["a", "b"] {
        assert_eq!((world.gate(id), world.get(id).seq > job.seq), (Some(Gate::Waiting), true));
    }
    assert_eq!(world.claim(10), [""; 0], "nothing runs before the files are there");
    let disk = Disk::obedient();
    assert_eq!(apply_or_withdraw(&world, &lease, disk.clone()), Application::Completed);
    assert_eq!(disk.asked.lock().unwrap()[0].1, [put("x"), remove("y")]);
    assert_eq!(world.claim(10), ["a", "b"]);
}

pub fn what_makes_a_commit_impossible_leaves_no_trace_of_it<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("taken"));
    let mut unsound = commit("c", vec![put("x")], vec![note("a"), note("b")]);
    unsound.jobs[1].waiting_on = Some("nobody".into());
    let error = refused(&world, unsound);
    assert_eq!((error.kind(), error.item()), (ErrorKind::NotFound, Some(1)));
    let mut changed = commit("c", vec![put("x")], vec![note("a")]);
    changed.still_so = Arc::new(|| Err(Error::new(ErrorKind::Conflict, "another file")));
    assert_eq!(refused(&world, changed).kind(), ErrorKind::Conflict);
    assert_eq!(refused(&world, commit("taken", vec![put("x")], vec![])).kind(), ErrorKind::Conflict);
    assert_eq!(world.claim(10), ["taken"]);
}

pub fn a_path_that_another_job_has_is_busy<H: Harness>() {
    let world = World::<H>::new();
    for (holder, started) in [("waits", false), ("runs", true)] {
        world.add(create(holder, "x", "1"));
        let lease = started.then(|| world.claim_only(holder));
        let error = refused(&world, commit("c", vec![put("w"), put("x")], vec![]));
        assert_eq!(error.kind(), ErrorKind::PathBusy);
        assert!(error.to_string().contains(holder) && error.to_string().contains('x'), "{error}");
        let lease = lease.unwrap_or_else(|| world.claim_only(holder));
        world.complete(&lease);
    }
    let (lease, _) = accept(&world, commit("c", vec![put("x")], vec![create("own", "x", "2")]));
    assert_eq!(
        kind(world.store.commit(commit("d", vec![remove("x")], vec![]))),
        ErrorKind::PathBusy,
        "by a commit too"
    );
    world.add(create("later", "x", "3"));
    assert_eq!(world.claim(10), [""; 0]);
    apply_or_withdraw(&world, &lease, Disk::obedient());
    world.complete(&world.claim_only("own"));
    world.claim_only("later");
}

pub fn the_same_commit_again_is_answered_with_what_is_there<H: Harness>() {
    let world = World::<H>::new();
    let again = |world: &World<H>| {
        // Neither the disk nor busy paths are looked at: it has been accepted.
        let mut commit = commit("c", vec![put("x")], vec![note("a")]);
        commit.still_so = Arc::new(|| -> Result<()> { panic!("expectations are not looked at") });
        match world.unchanged("a repeated commit", || world.store.commit(commit)).unwrap() {
            Committed::Existing(job) => job,
            Committed::New { lease, .. } => panic!("{lease:?}"),
        }
    };
    let (lease, _) = accept(&world, commit("c", vec![put("x")], vec![note("a")]));
    assert_eq!(again(&world).status, Status::Claimed);
    apply_or_withdraw(&world, &lease, Disk::obedient());
    assert_eq!(again(&world).status, Status::Completed);
    world.add(create("later", "x", "1"));
    let outcome = again(&world).outcome.unwrap();
    assert!(outcome.as_str().contains(r#""id":"a""#), "its jobs are known: {}", outcome.as_str());
    assert_eq!(refused(&world, commit("c", vec![put("y")], vec![note("a")])).kind(), ErrorKind::Conflict);
}

pub fn a_key_that_is_taken_is_answered_with_its_job<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("first").key("k"));
    let (_, jobs) = accept(&world, commit("c", vec![put("x")], vec![note("second").key("k"), note("third")]));
    assert_eq!((jobs[0].id.as_str(), jobs[0].outcome), ("first", EnqueueOutcome::Existing));
    assert_eq!((jobs[1].id.as_str(), jobs[1].outcome), ("third", EnqueueOutcome::Inserted));
    world.claim_only("first");
}

pub fn a_conflict_before_the_first_change_takes_all_of_it_back<H: Harness>() {
    let world = World::<H>::new();
    let (lease, _) = accept(&world, commit("c", vec![put("x")], vec![note("a"), note("b")]));
    world.add(note("c2").after("a"));
    let answer = apply_or_withdraw(&world, &lease, Disk::in_conflict());
    assert_eq!(answer, Application::Withdrawn("the file is another one".into()));
    assert_eq!(world.get("c").last_error.as_deref(), Some("withdrawn: the file is another one"));
    for id in ["a", "b", "c2"] {
        assert_eq!(world.status(id), Status::Cancelled, "{id}");
    }
    assert!(world.store.planned("c").unwrap().is_empty(), "nobody needs what was staged");
    assert_eq!(world.unchanged("a retry", || kind(world.store.retry("c"))), ErrorKind::WrongState);
    world.add(create("next", "x", "1"));
    world.claim_only("next");
}

pub fn what_was_taken_back_is_in_nobodys_way<H: Harness>() {
    let world = World::<H>::new();
    let (lease, _) = accept(&world, commit("failed", vec![put("x")], vec![note("a")]));
    world.store.apply(lease, Disk::in_conflict()).unwrap();
    let (lease, _) = accept(&world, commit("withdrawn", vec![put("x")], vec![]));
    apply_or_withdraw(&world, &lease, Disk::in_conflict());
    assert_eq!(world.store.retry("failed").unwrap().status, Status::Claimed, "nothing has overtaken it");
    let lease = world.take_over("w").remove(0).lease;
    assert_eq!(world.store.apply(lease, Disk::obedient()).unwrap(), Application::Completed);
    world.claim_only("a");
}

pub fn a_conflict_after_the_first_change_leaves_the_jobs_waiting<H: Harness>() {
    let world = World::<H>::new();
    let (lease, _) = accept(&world, commit("c", vec![put("x"), put("y")], vec![note("a")]));
    let applied = vec![(0, FileStamp { mtime: 5, inode: 6 })];
    let half = Disk::that_says(ApplyReport::Conflict { failure: conflict(), applied });
    assert!(matches!(apply_or_withdraw(&world, &lease, half), Application::Conflict(_)));
    assert_eq!((world.status("c"), world.gate("a")), (Status::Failed, Some(Gate::Waiting)));
    let blocked = world.store.stats().unwrap().blocked;
    assert_eq!((blocked.len(), blocked[0].id.as_str(), blocked[0].jobs), (1, "c", 1));
    assert!(blocked[0].last_error.as_deref().unwrap().starts_with("conflict: "));
    assert!(world.get("a").blocked.unwrap().contains("failed"));
    world.cancel("c");
    assert_eq!(world.status("a"), Status::Cancelled);
    assert!(world.store.stats().unwrap().blocked.is_empty());
}

/// With the disk as it is now, seen by an operator.
pub fn a_retry_can_be_told_what_it_comes_on_top_of<H: Harness>() {
    let world = World::<H>::new();
    let (lease, _) = accept(&world, commit("c", vec![put("x"), put("y")], vec![note("a")]));
    world.store.apply(lease, Disk::in_conflict()).unwrap();
    let seen = AcceptedPath {
        path: "x".into(),
        precondition: Precondition::Sha256("5e".repeat(32)),
        observed: Some("{}".into()),
    };
    let job = world.store.retry_on("c", vec![seen.clone()]).unwrap();
    assert_eq!((job.status, job.locked_by), (Status::Claimed, None), "decided again, not run again");
    let disk = Disk::obedient();
    let lease = world.take_over("w2").remove(0).lease;
    assert_eq!(world.store.apply(lease, disk.clone()).unwrap(), Application::Completed);
    let effects = disk.asked.lock().unwrap()[0].1.clone();
    assert_eq!(
        (effects[0].precondition.clone(), effects[0].observed.clone()),
        (seen.precondition.clone(), seen.observed.clone())
    );
    assert_eq!(effects[1], put("y"));
    world.claim_only("a");

    let failed = world.running(note("undecided"));
    world.fail(&failed);
    assert_eq!(kind(world.store.retry_on("undecided", vec![seen])), ErrorKind::WrongState);
}

pub fn a_dead_committers_work_is_taken_over_and_never_used_up<H: Harness>() {
    let world = World::<H>::new();
    let (lease, _) = accept(&world, commit("c", vec![put("x")], vec![note("a")]));
    let mut owner = "app".to_owned();
    for round in 0..10 {
        assert_eq!(world.reclaim_from(&owner).unowned, ["c"]);
        owner = format!("w{round}");
        let taken = world.take_over(&owner).remove(0);
        assert_eq!(taken.job.attempts, 1, "no handler ran");
    }
    assert_eq!(kind(world.store.one(lease, Step::ApplyOrWithdraw(Disk::obedient()))), ErrorKind::LeaseLost);
    assert_eq!(world.status("c"), Status::Claimed);
}
