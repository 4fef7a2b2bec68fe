//! Workers that are killed at every point between a call and its record: the next
//! one makes the same request, or waits for it, and never another.

use jobq::handlers::{Operation, SyncAws};
use serde_json::json;

use super::proxy::Fault;
use super::world::{BUCKET, World, bucket, completed, no_bucket};

/// Where the worker is when it dies.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// At this call …
    action: &'static str,
    /// … of the calls of this action since the job began, from 1 …
    number: usize,
    /// … before AWS hears of it, or before the worker hears of its answer.
    fault: Fault,
}

/// In the order in which an attempt passes them. `change` is the call that changes something.
fn points(change: &'static str, reads_back: bool) -> Vec<Point> {
    let point = |action, number, fault| Point { action, number, fault };
    let mut points = vec![
        point("GetResource", 1, Fault::HoldBefore),
        point("GetResource", 1, Fault::HoldAfter),
        // Its client token is on record, and nobody knows whether AWS has heard of it.
        point(change, 1, Fault::HoldBefore),
        point(change, 1, Fault::HoldAfter),
        // Its request token is on record.
        point("GetResourceRequestStatus", 1, Fault::HoldBefore),
        point("GetResourceRequestStatus", 2, Fault::HoldAfter),
    ];
    if reads_back {
        // AWS is done, and the job does not know.
        points.push(point("GetResource", 2, Fault::HoldBefore));
        points.push(point("GetResource", 2, Fault::HoldAfter));
    }
    points
}

/// Kills a worker at this point of a job and has another finish it.
fn killed_at(world: &World, sync: &SyncAws, point: Point) -> Operation {
    for _ in 1..point.number {
        // Calls before that one are let through: a fault that is none.
        world.proxy.breaks(point.action, Fault::None);
    }
    world.proxy.breaks(point.action, point.fault);
    let id = world.enqueue(sync);
    let worker = world.worker();
    world.proxy.wait_for_held();
    worker.kill();
    world.proxy.let_go();
    world.drain();
    let job = world.queue.get(&id).unwrap();
    let synced = completed(&job);
    assert_eq!(job.attempts, 2, "{point:?}");
    synced.operation
}

#[test]
fn a_create_is_one_resource_with_one_token_wherever_the_worker_dies() {
    for point in points("CreateResource", true) {
        let Some(world) = World::new() else { return };
        world.proxy.takes_its_time(2);
        let operation = killed_at(&world, &bucket("b", json!({ "A": 1 })), point);
        assert_eq!(operation, Operation::Created, "{point:?}");
        assert_eq!(world.proxy.distinct_tokens(), 1, "{point:?}");
        assert_eq!(world.resources(BUCKET), [("b".to_owned(), json!({ "A": 1, "BucketName": "b" }))], "{point:?}");
        // Once a request token is on record the call is not even repeated.
        let repeats = usize::from(point.action == "CreateResource");
        assert_eq!(world.proxy.count("CreateResource"), 1 + repeats, "{point:?}");
    }
}

/// The hard case: nobody could tell by its name that it is already there.
#[test]
fn a_resource_that_aws_names_is_made_once_wherever_the_worker_dies() {
    for point in points("CreateResource", true) {
        let Some(world) = World::new() else { return };
        world.proxy.takes_its_time(2);
        for _ in 1..point.number {
            world.proxy.breaks(point.action, Fault::None);
        }
        world.proxy.breaks(point.action, point.fault);
        let id = world.enqueue(&SyncAws::resource("AWS::EC2::VPC", "main", json!({ "CidrBlock": "10.0.0.0/16" })));
        let worker = world.worker();
        world.proxy.wait_for_held();
        worker.kill();
        world.proxy.let_go();
        world.drain();
        let error = world.queue.get(&id).unwrap().last_error.unwrap();
        assert!(error.starts_with("other_identifier: "), "{point:?}: {error}");
        assert_eq!((world.resources("AWS::EC2::VPC").len(), world.proxy.distinct_tokens()), (1, 1), "{point:?}");
    }
}

#[test]
fn an_update_is_made_once_wherever_the_worker_dies() {
    for point in points("UpdateResource", true) {
        let Some(world) = World::new() else { return };
        world.sync(&bucket("b", json!({ "A": 1, "B": [1] })));
        world.proxy.takes_its_time(2);
        let operation = killed_at(&world, &bucket("b", json!({ "A": 2, "B": [2] })), point);
        assert_eq!(operation, Operation::Updated, "{point:?}");
        assert_eq!(world.proxy.distinct_tokens(), 2, "{point:?}: one of them made it");
        assert_eq!(world.resources(BUCKET)[0].1, json!({ "A": 2, "B": [2], "BucketName": "b" }), "{point:?}");
    }
}

#[test]
fn a_delete_is_made_once_wherever_the_worker_dies() {
    for point in points("DeleteResource", false) {
        let Some(world) = World::new() else { return };
        world.sync(&bucket("b", json!({})));
        world.proxy.takes_its_time(2);
        let operation = killed_at(&world, &no_bucket("b"), point);
        assert_eq!(operation, Operation::Deleted, "{point:?}");
        assert_eq!(world.proxy.distinct_tokens(), 2, "{point:?}: one of them made it");
        assert_eq!(world.resources(BUCKET), [], "{point:?}");
    }
}

/// Nor when nobody could ask for a while what became of the first call.
#[test]
fn a_create_whose_caller_is_not_let_in_for_a_while_is_made_once() {
    let Some(world) = World::new() else { return };
    world.proxy.breaks("CreateResource", Fault::HoldAfter);
    world.proxy.breaks("CreateResource", Fault::Refuse(403, "AccessDeniedException"));
    let id = world.enqueue(&SyncAws::resource("AWS::EC2::VPC", "main", json!({})));
    let worker = world.worker();
    world.proxy.wait_for_held();
    worker.kill();
    world.proxy.let_go();
    for code in ["AccessDeniedException: ", "other_identifier: "] {
        world.drain();
        let error = world.queue.get(&id).unwrap().last_error.unwrap();
        assert!(error.starts_with(code), "{error}");
        world.queue.retry(&id).unwrap();
    }
    assert_eq!((world.resources("AWS::EC2::VPC").len(), world.proxy.distinct_tokens()), (1, 1));
}

/// AWS keeps requests for a week; a job may lie about for longer.
#[test]
fn a_request_that_aws_has_forgotten_is_judged_by_the_resource() {
    let Some(world) = World::new() else { return };
    world.proxy.takes_its_time(2);
    world.proxy.breaks("GetResourceRequestStatus", Fault::HoldBefore);
    let id = world.enqueue(&bucket("b", json!({ "A": 1 })));
    let worker = world.worker();
    world.proxy.wait_for_held();
    worker.kill();
    world.proxy.let_go();
    world.proxy.forgets_requests();
    world.drain();
    assert_eq!(completed(&world.queue.get(&id).unwrap()).operation, Operation::Unchanged);
    assert_eq!((world.proxy.count("CreateResource"), world.resources(BUCKET).len()), (1, 1));
}
