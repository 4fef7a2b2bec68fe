//! Networks and services that fail: the job comes to its end all the same, and
//! nothing is done twice.

use serde_json::json;

use super::proxy::Fault;
use super::world::{BUCKET, World, bucket, completed, no_bucket};

const PASSING: [Fault; 6] = [
    Fault::Refuse(400, "ThrottlingException"),
    Fault::Refuse(500, "ServiceInternalErrorException"),
    Fault::Refuse(503, "ServiceUnavailable"),
    Fault::DropBefore,
    Fault::DropAfter,
    Fault::Refuse(400, "ConcurrentOperationException"),
];

/// More often than the SDK tries by itself, so that attempts of the job are used, too.
const TIMES: usize = 4;

fn broken(world: &World, action: &'static str, fault: Fault) {
    for _ in 0..TIMES {
        world.proxy.breaks(action, fault);
    }
}

#[test]
fn a_create_that_keeps_failing_makes_one_resource_with_one_token() {
    for fault in PASSING {
        for action in ["GetResource", "CreateResource", "GetResourceRequestStatus"] {
            let Some(world) = World::new() else { return };
            world.proxy.takes_its_time(2);
            broken(&world, action, fault);
            let job = world.sync(&bucket("b", json!({ "A": 1 })));
            completed(&job);
            // Who waits for a request waits for the network, too.
            let is_patient = action == "GetResourceRequestStatus";
            assert_eq!(job.attempts == 1, is_patient, "{action} {fault:?}: {} attempts", job.attempts);
            assert_eq!(world.resources(BUCKET).len(), 1, "{action} {fault:?}");
            assert_eq!(world.proxy.distinct_tokens(), 1, "{action} {fault:?}");
        }
    }
}

#[test]
fn an_update_and_a_delete_that_keep_failing_are_done_once() {
    for fault in PASSING {
        let Some(world) = World::new() else { return };
        completed(&world.sync(&bucket("b", json!({ "A": 1 }))));
        broken(&world, "UpdateResource", fault);
        completed(&world.sync(&bucket("b", json!({ "A": 2 }))));
        assert_eq!(world.resources(BUCKET)[0].1["A"], json!(2), "{fault:?}");
        broken(&world, "DeleteResource", fault);
        completed(&world.sync(&no_bucket("b")));
        assert_eq!(world.resources(BUCKET), [], "{fault:?}");
        // A patch is for the resource as it was, so after a conflict another one is asked for.
        let is_conflict = fault == Fault::Refuse(400, "ConcurrentOperationException");
        let tokens = if is_conflict { 3 + TIMES } else { 3 };
        assert_eq!(world.proxy.distinct_tokens(), tokens, "{fault:?}");
    }
}

/// A moment's trouble is not worth an attempt of the job.
#[test]
fn one_fault_costs_no_attempt() {
    for fault in [Fault::Refuse(400, "ThrottlingException"), Fault::Refuse(500, "InternalFailure"), Fault::DropAfter] {
        let Some(world) = World::new() else { return };
        world.proxy.breaks("CreateResource", fault);
        let job = world.sync(&bucket("b", json!({})));
        completed(&job);
        assert_eq!((job.attempts, world.proxy.distinct_tokens()), (1, 1), "{fault:?}");
    }
}

#[test]
fn a_server_that_is_not_there_is_tried_again_and_named() {
    let Some(world) = World::new() else { return };
    // A port that was free a moment ago.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    world.configure(&format!("region = \"eu-central-1\"\nendpoint_url = \"http://{closed}\"\n"));
    let id = world.queue.enqueue(super::world::soon(&bucket("b", json!({}))).max_attempts(2)).unwrap().id;
    world.drain();
    let job = world.queue.get(&id).unwrap();
    assert_eq!((job.status, job.attempts), (jobq::Status::Failed, 2));
    let error = job.last_error.unwrap();
    assert!(error.starts_with("aws_unreachable: ") && error.contains("refused"), "{error}");
}
