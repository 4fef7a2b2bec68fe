//! Jobs that wait on others: released with them, blocked with them, called off
//! with them.

use jobq::ErrorKind;
use jobq::state::{Gate, Status};
use jobq::store::{CancelOutcome, Store as _};

use super::Harness;
use super::draft::note;
use super::world::{World, kind};

pub fn a_waiter_runs_when_what_it_waits_on_has_completed<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("parent"));
    world.add(note("child").after("parent").priority(9));
    let child = world.get("child");
    assert_eq!((child.gate, child.waiting_on.as_deref()), (Some(Gate::Waiting), Some("parent")));
    assert_eq!(child.blocked.as_deref(), Some("waits on parent (pending)"));
    let parent = world.claim_only("parent");
    assert_eq!(world.get("child").blocked.as_deref(), Some("waits on parent (claimed)"));
    world.complete(&parent);
    let child = world.get("child");
    assert_eq!((child.gate, child.waiting_on), (Some(Gate::Ready), None));
    world.claim_only("child");
}

pub fn a_waiter_still_has_its_time_and_its_holds<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("parent"));
    world.add(note("holder").holds(&["lane:x"]).run_at(world.now() + 9_000));
    world.add(note("timed").after("parent").run_at(world.now() + 1_000));
    world.add(note("held").after("parent").holds(&["lane:x"]));
    let parent = world.claim_only("parent");
    world.complete(&parent);
    assert_eq!((world.gate("timed"), world.gate("held")), (Some(Gate::Delayed), Some(Gate::Held)));
    assert_eq!(world.claim(10), [""; 0]);
    world.clock.advance(1_000);
    world.claim_only("timed");
}

pub fn waiting_on_a_completed_job_is_not_waiting<H: Harness>() {
    let world = World::<H>::new();
    let parent = world.running(note("parent"));
    world.complete(&parent);
    world.add(note("child").after("parent"));
    let child = world.get("child");
    assert_eq!((child.gate, child.waiting_on), (Some(Gate::Ready), None));
}

pub fn one_can_only_wait_on_an_earlier_job<H: Harness>() {
    let world = World::<H>::new();
    assert_eq!(world.refuse(note("a").after("nobody")), ErrorKind::NotFound);
    assert_eq!(world.refuse(note("a").after("a")), ErrorKind::NotFound);
    let later = vec![note("a").after("b").build(), note("b").build()];
    assert_eq!(world.unchanged("waiting on a later job", || kind(world.store.enqueue(later))), ErrorKind::NotFound);
    let earlier = vec![note("b").build(), note("a").after("b").build()];
    assert_eq!(world.store.enqueue(earlier).unwrap().len(), 2);
    assert_eq!(world.claim(10), ["b"]);
}

pub fn one_cannot_wait_on_what_will_not_complete<H: Harness>() {
    let world = World::<H>::new();
    let failed = world.running(note("failed"));
    world.fail(&failed);
    world.add(note("cancelled"));
    world.cancel("cancelled");
    assert_eq!(world.refuse(note("a").after("failed")), ErrorKind::WrongState);
    assert_eq!(world.refuse(note("a").after("cancelled")), ErrorKind::WrongState);
}

/// A failure is not the end of the line: the operator retries or cancels.
pub fn a_failed_job_leaves_its_waiters_waiting<H: Harness>() {
    let world = World::<H>::new();
    let parent = world.running(note("parent"));
    world.add(note("child").after("parent"));
    world.fail(&parent);
    let child = world.get("child");
    assert_eq!((child.status, child.gate), (Status::Pending, Some(Gate::Waiting)));
    assert_eq!(child.blocked.as_deref(), Some("waits on parent, which failed: retry or cancel that one"));
    assert_eq!(world.claim(10), [""; 0]);
    world.store.retry("parent").unwrap();
    let parent = world.claim_only("parent");
    world.complete(&parent);
    world.claim_only("child");
}

pub fn cancelling_a_failed_job_cancels_what_waits_on_it<H: Harness>() {
    let world = World::<H>::new();
    let parent = world.running(note("parent"));
    world.add(note("child").after("parent"));
    world.add(note("grandchild").after("child"));
    world.fail(&parent);
    let answer = world.cancel("parent");
    assert_eq!((answer.id.as_str(), answer.outcome), ("parent", CancelOutcome::WaitersOnly));
    assert_eq!(answer.cancelled_waiters, ["child", "grandchild"]);
    assert_eq!(world.status("parent"), Status::Failed);
    assert_eq!((world.status("child"), world.status("grandchild")), (Status::Cancelled, Status::Cancelled));
    let again = world.unchanged("cancelling a failed job without waiters", || kind(world.store.cancel("parent")));
    assert_eq!(again, ErrorKind::WrongState);
}

pub fn cancelling_a_pending_job_cancels_the_whole_chain<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a"));
    world.add(note("b").after("a"));
    world.add(note("c").after("b").holds(&["lane:x"]));
    world.add(note("d").after("a"));
    world.add(note("bystander").holds(&["lane:x"]));
    let answer = world.cancel("a");
    let mut waiters = answer.cancelled_waiters;
    waiters.sort();
    assert_eq!((answer.outcome, waiters), (CancelOutcome::Cancelled, vec!["b".into(), "c".into(), "d".into()]));
    for id in ["b", "c", "d"] {
        assert_eq!(world.status(id), Status::Cancelled);
        assert_eq!(world.event_types(id), ["queued", "cancelled"]);
    }
    let told = world.events("c")[1].data.clone().unwrap();
    assert_eq!(told.as_str(), r#"{"waited_on":"b"}"#);
    world.claim_only("bystander");
}

/// Until the running job has really stopped it may still be too late.
pub fn waiters_of_a_running_job_follow_when_it_has_stopped<H: Harness>() {
    let world = World::<H>::new();
    let parent = world.running(note("parent"));
    world.add(note("child").after("parent"));
    world.add(note("grandchild").after("child"));
    let answer = world.cancel("parent");
    assert_eq!((answer.outcome, answer.cancelled_waiters), (CancelOutcome::Requested, vec![]));
    assert_eq!(world.status("child"), Status::Pending);
    world.store.acknowledge_cancel(parent).unwrap();
    assert_eq!((world.status("child"), world.status("grandchild")), (Status::Cancelled, Status::Cancelled));
}

pub fn a_long_chain_is_called_off_whole<H: Harness>() {
    let world = World::<H>::new();
    let length = 500;
    let jobs = (0..length).map(|n| {
        let job = note(&format!("n{n}"));
        if n == 0 { job.build() } else { job.after(&format!("n{}", n - 1)).build() }
    });
    world.store.enqueue(jobs.collect()).unwrap();
    assert_eq!(world.cancel("n0").cancelled_waiters.len(), length - 1);
    assert_eq!(world.status(&format!("n{}", length - 1)), Status::Cancelled);
}

pub fn a_retried_waiter_waits_again<H: Harness>() {
    let world = World::<H>::new();
    let parent = world.running(note("parent"));
    world.add(note("child").after("parent"));
    world.cancel("child");
    assert_eq!(world.store.retry("child").unwrap().gate, Some(Gate::Waiting));
    world.cancel("child");
    world.complete(&parent);
    let child = world.store.retry("child").unwrap();
    assert_eq!((child.gate, child.waiting_on), (Some(Gate::Ready), None), "what it waited for is done");
}
