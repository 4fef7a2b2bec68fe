//! Creates of which AWS can no longer say what became of them. A resource that AWS
//! names is found by no id, so in doubt none is made.

use jobq::Status;
use jobq::handlers::{Operation, SyncAws};
use serde_json::json;

use super::proxy::Fault;
use super::world::{BUCKET, World, bucket, completed};

const VPC: &str = "AWS::EC2::VPC";
/// AWS knows client tokens for 36 hours, and requests for a week.
const TOKEN_IS_OLD: i64 = 37;
const REQUEST_IS_OLD: i64 = 8 * 24;

fn vpc() -> SyncAws {
    SyncAws::resource(VPC, "main", json!({ "CidrBlock": "10.0.0.0/16" }))
}

/// A worker is killed at a call; the job is left to the next one.
fn left_behind(world: &World, sync: &SyncAws, action: &'static str, fault: Fault) -> String {
    world.proxy.takes_its_time(2);
    world.proxy.breaks(action, fault);
    let id = world.enqueue(sync);
    let worker = world.worker();
    world.proxy.wait_for_held();
    worker.kill();
    world.proxy.let_go();
    id
}

/// Runs it and tells its error.
#[track_caller]
fn fails(world: &World, id: &str) -> String {
    world.drain();
    let job = world.queue.get(id).unwrap();
    assert_eq!(job.status, Status::Failed, "{:?}", job.last_error);
    job.last_error.unwrap()
}

const FORGOTTEN: [(&str, Fault, i64); 2] = [
    ("CreateResource", Fault::HoldAfter, TOKEN_IS_OLD),
    ("GetResourceRequestStatus", Fault::HoldBefore, REQUEST_IS_OLD),
];

#[test]
fn a_create_that_aws_has_forgotten_is_not_repeated_for_a_resource_that_it_names() {
    for (action, fault, age) in FORGOTTEN {
        let Some(world) = World::new() else { return };
        let id = left_behind(&world, &vpc(), action, fault);
        world.age(&id, age);
        world.proxy.forgets_requests();
        let token = world.proxy.calls().iter().find_map(|call| call.client_token().map(str::to_owned)).unwrap();
        for _ in 0..2 {
            let error = fails(&world, &id);
            assert!(error.starts_with("create_in_doubt: ") && error.contains(&token), "{action}: {error}");
            world.queue.retry(&id).unwrap();
        }
        assert_eq!((world.resources(VPC).len(), world.proxy.distinct_tokens()), (1, 1), "{action}");
    }
}

/// Somebody has looked, found none, and asks for it again.
#[test]
fn another_job_is_in_no_doubt() {
    let Some(world) = World::new() else { return };
    let id = left_behind(&world, &vpc(), "CreateResource", Fault::HoldBefore);
    world.age(&id, TOKEN_IS_OLD);
    assert!(fails(&world, &id).starts_with("create_in_doubt: "));
    assert_eq!(world.resources(VPC), []);
    let again = world.enqueue(&vpc());
    assert!(fails(&world, &again).starts_with("other_identifier: "));
    assert_eq!(world.resources(VPC).len(), 1);
}

#[test]
fn a_create_that_aws_has_forgotten_is_judged_by_the_resource_if_that_is_there() {
    for (action, fault, age) in FORGOTTEN {
        let Some(world) = World::new() else { return };
        let id = left_behind(&world, &bucket("b", json!({ "A": 1 })), action, fault);
        world.age(&id, age);
        world.proxy.forgets_requests();
        world.meddle("b", &json!([{ "op": "replace", "path": "/A", "value": 7 }]));
        world.drain();
        assert_eq!(completed(&world.queue.get(&id).unwrap()).operation, Operation::Updated, "{action}");
        assert_eq!(world.resources(BUCKET), [("b".to_owned(), json!({ "A": 1, "BucketName": "b" }))], "{action}");
        assert_eq!(world.proxy.count("CreateResource"), 1, "{action}");
    }
}

/// The machine that is asked may not have heard of it yet.
#[test]
fn a_request_that_aws_does_not_know_for_a_moment_is_asked_for_again() {
    for known in [0, 1] {
        let Some(world) = World::new() else { return };
        world.proxy.takes_its_time(3);
        for _ in 0..known {
            world.proxy.breaks("GetResourceRequestStatus", Fault::None);
        }
        for _ in 0..2 {
            world.proxy.breaks("GetResourceRequestStatus", Fault::Refuse(400, "RequestTokenNotFoundException"));
        }
        let id = world.enqueue(&vpc());
        let error = fails(&world, &id);
        assert!(error.starts_with("other_identifier: "), "{error}");
        assert_eq!((world.resources(VPC).len(), world.proxy.count("CreateResource")), (1, 1));
    }
}

/// Whoever repeats a call and is refused has not heard what became of the first.
#[test]
fn a_refusal_says_nothing_of_the_call_before() {
    for code in ["OptInRequired", "MissingAuthenticationTokenException", "TypeNotFoundException", "NotAuthorized"] {
        let Some(world) = World::new() else { return };
        let id = left_behind(&world, &vpc(), "CreateResource", Fault::HoldAfter);
        world.proxy.breaks("CreateResource", Fault::Refuse(400, code));
        let error = fails(&world, &id);
        assert!(error.starts_with(code), "{error}");
        world.queue.retry(&id).unwrap();
        let error = fails(&world, &id);
        assert!(error.starts_with("other_identifier: "), "{code}: {error}");
        assert_eq!((world.resources(VPC).len(), world.proxy.distinct_tokens()), (1, 1), "{code}");
    }
}

/// That AWS knows the token means that it has accepted the first call, whatever it takes the second for.
#[test]
fn a_token_that_aws_knows_already_is_no_reason_to_make_another_one() {
    let Some(world) = World::new() else { return };
    let id = left_behind(&world, &vpc(), "CreateResource", Fault::HoldAfter);
    world.proxy.breaks("CreateResource", Fault::Refuse(400, "ClientTokenConflictException"));
    let error = fails(&world, &id);
    assert!(error.starts_with("create_in_doubt: "), "{error}");
    assert_eq!((world.resources(VPC).len(), world.proxy.distinct_tokens()), (1, 1));
}

#[test]
fn a_create_that_has_failed_halfway_and_left_something_is_not_repeated() {
    let Some(world) = World::new() else { return };
    world.proxy.breaks("CreateResource", Fault::FailHalfway("NotStabilized"));
    let id = world.enqueue(&vpc());
    let error = fails(&world, &id);
    let made = world.resources(VPC);
    let [(identifier, _)] = made.as_slice() else { panic!("{made:?}") };
    assert!(error.starts_with("other_identifier: ") && error.contains(identifier), "{error}");
    assert!(error.contains("NotStabilized"), "{error}");
    // Somebody has removed what was left.
    world.aside("DeleteResource", &json!({ "TypeName": VPC, "Identifier": identifier }));
    let again = world.enqueue(&vpc());
    world.proxy.breaks("CreateResource", Fault::Fail("NotStabilized"));
    assert!(fails(&world, &again).starts_with("other_identifier: "), "it has left nothing, and is repeated");
    assert_eq!(world.resources(VPC).len(), 1);
}

/// An id that AWS would never give may be one that it does not even look for.
#[test]
fn the_name_that_aws_has_given_is_told_also_if_it_refuses_the_one_that_was_asked_for() {
    let Some(world) = World::new() else { return };
    world.proxy.breaks("GetResource", Fault::None);
    world.proxy.breaks("GetResource", Fault::Refuse(400, "InvalidRequestException"));
    let id = world.enqueue(&vpc());
    let error = fails(&world, &id);
    let made = world.resources(VPC);
    assert!(error.starts_with("other_identifier: ") && error.contains(&made[0].0), "{error}");
}
