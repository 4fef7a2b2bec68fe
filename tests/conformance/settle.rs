//! Many claimed jobs one step further, in one transaction: each whole or not at
//! all, each with an answer of its own.

use std::sync::Arc;
use std::time::Duration;

use jobq::state::Status::{self, Cancelled, Claimed, Completed, Failed, Pending};
use jobq::store::{
    Application, Applier, ApplyReport, Decision, Ending, Failure, FileStamp, Lease, PlannedEffect, SYNC_FAILED,
    Settled, Step, Store as _,
};
use jobq::{ErrorKind, Result};

use super::Harness;
use super::draft::{note, put};
use super::world::{Disk, World, failure, kind};

fn complete() -> Step {
    Step::Complete { result: None, follow_ups: Vec::new() }
}

fn done() -> Settled {
    Settled::Ended(Ending::Done)
}

pub fn every_kind_of_step_fits_in_one_transaction<H: Harness>() {
    let world = World::<H>::new();
    let decided = world.decided(note("decided"), vec![put("x")]);
    for id in ["complete", "decide", "reschedule", "fail", "release", "cancel"] {
        world.add(note(id));
    }
    let leases: Vec<Lease> = world.claim_as("w1", 100).into_iter().map(|claim| claim.lease).collect();
    world.cancel("cancel");
    let steps = [
        complete(),
        Step::Decide(Decision { effects: vec![put("y")], ..Decision::default() }),
        Step::Reschedule { failure: failure(), delay: Duration::from_secs(1) },
        Step::Fail(failure()),
        Step::Release,
        Step::AcknowledgeCancel,
    ];
    let mut all: Vec<(Lease, Step)> = leases.into_iter().zip(steps).collect();
    all.push((decided, Step::Apply(Disk::obedient())));
    let answers: Vec<Settled> = world.store.settle(all).unwrap().into_iter().map(Result::unwrap).collect();
    let cancelled = Settled::Ended(Ending::Cancelled);
    let applied = Settled::Applied(Application::Completed);
    assert_eq!(answers, [done(), done(), done(), done(), done(), cancelled, applied]);
    let status: Vec<Status> = ["complete", "decide", "reschedule", "fail", "release", "cancel", "decided"]
        .into_iter()
        .map(|id| world.status(id))
        .collect();
    assert_eq!(status, [Completed, Claimed, Pending, Failed, Pending, Cancelled, Completed]);
}

pub fn one_who_is_refused_does_not_stop_the_others<H: Harness>() {
    let world = World::<H>::new();
    for id in ["first", "lost", "last"] {
        world.add(note(id));
    }
    let leases: Vec<Lease> = world.claim_as("w1", 100).into_iter().map(|claim| claim.lease).collect();
    world.release(&leases[1]);
    let steps = leases.into_iter().map(|lease| (lease, complete())).collect();
    let answers = world.store.settle(steps).unwrap();
    let kinds: Vec<_> = answers.into_iter().map(|answer| answer.map_err(|error| error.kind())).collect();
    assert_eq!(kinds, [Ok(done()), Err(ErrorKind::LeaseLost), Ok(done())]);
    assert_eq!(world.status("lost"), Pending);
}

/// More than go into one statement, with all that can follow from an end, and one of them asked for twice.
pub fn many_ends_in_one_transaction_have_each_its_own_consequences<H: Harness>() {
    let world = World::<H>::new();
    let ids: Vec<String> = (0..40).map(|number| format!("job-{number:02}")).collect();
    for (number, id) in ids.iter().enumerate() {
        let job = note(id);
        world.add(if number == 20 { job.holds(&["lane:l"]) } else { job });
    }
    world.add(note("behind").holds(&["lane:l"]));
    world.add(note("waits").after("job-30"));
    let mut leases: Vec<Lease> = world.claim_as("w1", 100).into_iter().map(|claim| claim.lease).collect();
    assert_eq!(leases.iter().map(|lease| lease.id.clone()).collect::<Vec<_>>(), ids);
    world.cancel("job-05");
    leases.insert(3, leases[2].clone());
    leases.push(Lease { token: leases[0].token + 1, ..leases[0].clone() });
    let result = |lease: &Lease| Some(format!("\"{}\"", lease.id));
    let steps =
        leases.iter().map(|lease| (lease.clone(), Step::Complete { result: result(lease), follow_ups: Vec::new() }));
    let answers = world.store.settle(steps.collect()).unwrap();
    for (lease, answer) in leases.iter().zip(&answers).take(41) {
        let expected = if lease.id == "job-05" { Ending::Cancelled } else { Ending::Done };
        assert_eq!(answer.as_ref().ok(), Some(&Settled::Ended(expected)), "{}", lease.id);
    }
    assert_eq!(answers[41].as_ref().map_err(jobq::Error::kind), Err(ErrorKind::LeaseLost), "a token of nobody's");
    let mut last = 0;
    for id in ids.iter().filter(|id| *id != "job-05") {
        assert_eq!(world.get(id).result.map(|text| text.0), Some(format!("\"{id}\"")));
        let events = world.events(id);
        let types: Vec<_> = events.iter().map(|event| event.event_type.as_str()).collect();
        assert_eq!(types, ["queued", "claimed", "completed"], "{id}");
        assert!(events[2].id > last, "as they were given");
        last = events[2].id;
    }
    assert_eq!(world.claim(100), ["behind", "waits"]);
}

pub fn a_step_that_is_refused_half_way_leaves_nothing<H: Harness>() {
    let world = World::<H>::new();
    let holder = world.decided(note("holder"), vec![put("taken")]);
    let lease = world.running(note("other"));
    // The first path is free and would be held before the second is found to be taken.
    let both = Decision { effects: vec![put("free"), put("taken")], ..Decision::default() };
    let steps = vec![(lease.clone(), Step::Decide(both.clone()))];
    let refused = world.unchanged("a refused decision", || world.store.settle(steps).unwrap().pop().unwrap());
    assert_eq!(kind(refused), ErrorKind::PathBusy);
    world.apply(&holder).unwrap();
    assert_eq!(world.store.decide(lease, both).unwrap(), Ending::Done);
}

pub fn nothing_to_settle_is_answered_with_nothing<H: Harness>() {
    assert!(World::<H>::new().store.settle(Vec::new()).unwrap().is_empty());
}

/// A disk on which folders cannot be synced, for a while.
struct Unsynced {
    until: u32,
    syncs: std::sync::atomic::AtomicU32,
    afresh: std::sync::Mutex<Vec<bool>>,
}

impl Applier for Unsynced {
    fn apply(&self, _: &Lease, effects: &[PlannedEffect], afresh: bool) -> ApplyReport {
        self.afresh.lock().unwrap().push(afresh);
        ApplyReport::Applied(vec![FileStamp::default(); effects.len()])
    }

    fn sync(&self) -> Result<(), Failure> {
        let number = self.syncs.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        if number < self.until { Err(Failure::new(SYNC_FAILED, "the disk is on fire")) } else { Ok(()) }
    }
}

fn unsynced(until: u32) -> Arc<Unsynced> {
    Arc::new(Unsynced { until, syncs: 0.into(), afresh: std::sync::Mutex::default() })
}

pub fn folders_are_synced_once_for_all<H: Harness>() {
    let world = World::<H>::new();
    let leases = ["a", "b", "c"].map(|id| world.decided(note(id), vec![put(id)]));
    let disk = unsynced(0);
    let steps = leases.into_iter().map(|lease| (lease, Step::Apply(disk.clone()))).collect();
    assert!(world.store.settle(steps).unwrap().into_iter().all(|answer| answer.is_ok()));
    assert_eq!(disk.syncs.load(std::sync::atomic::Ordering::SeqCst), 1);
}

pub fn a_sync_that_fails_keeps_the_job_decided_and_what_is_there_is_written_afresh<H: Harness>() {
    let world = World::<H>::new();
    let lease = world.decided(note("job"), vec![put("x")]);
    // Once for the group, once for the job alone.
    let disk = unsynced(2);
    let deferred = world.store.apply(lease, disk.clone()).unwrap();
    assert!(matches!(&deferred, Application::Deferred(why) if why.contains("on fire")), "{deferred:?}");
    assert_eq!(world.status("job"), Claimed);
    assert_eq!(world.get("job").locked_by, None);
    world.clock.advance(60_000);
    let again = world.take_over("w2").remove(0).lease;
    assert_eq!(world.store.apply(again, disk.clone()).unwrap(), Application::Completed);
    assert_eq!(*disk.afresh.lock().unwrap(), [false, false, true]);
}
