//! Requests that take their time: they are waited for, and those who wait can be
//! told to stop.

use std::time::Duration;

use jobq::Status;
use jobq::handlers::Operation;
use serde_json::json;

use super::proxy::Fault;
use super::world::{BUCKET, PATIENCE, World, bucket, completed, soon, until};

/// More looks than anybody waits for.
const FOR_EVER: u32 = 1_000_000;

#[test]
fn a_request_in_progress_is_waited_for_and_told_of() {
    let Some(world) = World::new() else { return };
    world.proxy.takes_its_time(3);
    let job = world.sync(&bucket("b", json!({})));
    assert_eq!(completed(&job).operation, Operation::Created);
    assert_eq!((job.attempts, world.proxy.count("CreateResource")), (1, 1));
    assert_eq!(world.proxy.count("GetResourceRequestStatus"), 3);
    let told: Vec<String> = world
        .events(&job.id)
        .into_iter()
        .filter(|event| event.event_type == "progress")
        .map(|event| event.data.unwrap().as_str().to_owned())
        .collect();
    assert!(told.iter().any(|line| line.contains("creating: IN_PROGRESS: ")), "{told:?}");
}

/// Nobody is there for longer than all attempts of a job would take; AWS has the request all the same.
#[test]
fn an_outage_while_it_waits_costs_no_attempt() {
    let Some(world) = World::new() else { return };
    world.proxy.takes_its_time(1);
    for _ in 0..15 {
        world.proxy.breaks("GetResourceRequestStatus", Fault::DropBefore);
    }
    let id = world.queue.enqueue(soon(&bucket("b", json!({}))).max_attempts(1)).unwrap().id;
    world.drain();
    let job = world.queue.get(&id).unwrap();
    assert_eq!(completed(&job).operation, Operation::Created);
    assert_eq!((job.attempts, world.proxy.count("CreateResource")), (1, 1));
}

#[test]
fn a_job_that_waits_can_be_cancelled() {
    let Some(world) = World::new() else { return };
    world.proxy.takes_its_time(FOR_EVER);
    let id = world.enqueue(&bucket("b", json!({})));
    let worker = world.worker();
    until("it waits", || world.proxy.count("GetResourceRequestStatus") > 0);
    world.queue.cancel(&id).unwrap();
    assert_eq!(world.ended(&id).status, Status::Cancelled);
    drop(worker);
}

/// Also in the middle of a call that nobody answers.
#[test]
fn a_job_whose_call_is_not_answered_can_be_cancelled() {
    let Some(world) = World::new() else { return };
    world.proxy.breaks("GetResource", Fault::HoldBefore);
    let id = world.enqueue(&bucket("b", json!({})));
    let worker = world.worker();
    world.proxy.wait_for_held();
    world.queue.cancel(&id).unwrap();
    assert_eq!(world.ended(&id).status, Status::Cancelled);
    assert_eq!(world.proxy.count("CreateResource"), 0);
    world.proxy.let_go();
    drop(worker);
}

#[test]
fn a_worker_that_is_told_to_end_leaves_the_request_to_the_next() {
    let Some(world) = World::new() else { return };
    world.proxy.takes_its_time(5);
    let id = world.enqueue(&bucket("b", json!({})));
    let mut worker = world.worker();
    until("it waits", || world.proxy.count("GetResourceRequestStatus") > 0);
    let pid = rustix::process::Pid::from_raw(i32::try_from(worker.0.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(worker.0.wait().unwrap().success());
    let job = world.queue.get(&id).unwrap();
    assert_eq!((job.status, job.attempts), (Status::Pending, 0), "it has gone back");
    world.drain();
    completed(&world.queue.get(&id).unwrap());
    assert_eq!((world.proxy.count("CreateResource"), world.resources(BUCKET).len()), (1, 1));
}

#[test]
fn an_attempt_that_takes_too_long_is_followed_by_one_that_goes_on_waiting() {
    let Some(world) = World::new() else { return };
    world.proxy.takes_its_time(5);
    let job = soon(&bucket("b", json!({}))).timeout(Duration::from_secs(1));
    let id = world.queue.enqueue(job).unwrap().id;
    let worker = world.worker();
    let job = world.queue.wait(&id, PATIENCE).unwrap().expect("it has not ended");
    completed(&job);
    assert!(job.attempts > 1, "the first was given up");
    assert_eq!((world.proxy.count("CreateResource"), world.resources(BUCKET).len()), (1, 1));
    drop(worker);
}
