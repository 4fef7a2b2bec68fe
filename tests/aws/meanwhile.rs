//! What others do to a resource between two calls of a job.

use jobq::handlers::Operation;
use serde_json::json;

use super::proxy::Fault;
use super::world::{BUCKET, World, bucket, completed};

/// Its patch is from before: what has come apart since then is not in it.
#[test]
fn an_update_that_is_finished_later_makes_true_all_that_is_given() {
    for (action, fault) in [
        ("UpdateResource", Fault::HoldBefore),
        ("UpdateResource", Fault::HoldAfter),
        ("GetResourceRequestStatus", Fault::HoldBefore),
    ] {
        let Some(world) = World::new() else { return };
        completed(&world.sync(&bucket("b", json!({ "A": 1, "B": 1 }))));
        world.proxy.takes_its_time(2);
        world.proxy.breaks(action, fault);
        let id = world.enqueue(&bucket("b", json!({ "A": 2, "B": 1 })));
        let worker = world.worker();
        world.proxy.wait_for_held();
        worker.kill();
        world.proxy.let_go();
        world.meddle("b", &json!([{ "op": "replace", "path": "/B", "value": 7 }]));
        world.drain();
        assert_eq!(completed(&world.queue.get(&id).unwrap()).operation, Operation::Updated);
        assert_eq!(world.resources(BUCKET)[0].1, json!({ "A": 2, "B": 1, "BucketName": "b" }), "{action} {fault:?}");
    }
}

/// A day and a half later it would be another request, for a resource that has changed.
#[test]
fn an_update_that_has_lain_too_long_is_made_for_what_is_there_now() {
    let Some(world) = World::new() else { return };
    completed(&world.sync(&bucket("b", json!({ "A": 1, "B": 1 }))));
    world.proxy.breaks("UpdateResource", Fault::HoldBefore);
    let id = world.enqueue(&bucket("b", json!({ "A": null, "B": 2 })));
    let worker = world.worker();
    world.proxy.wait_for_held();
    worker.kill();
    world.proxy.let_go();
    world.age(&id, 37);
    // The old patch would remove what is not there, and be refused for ever.
    world.meddle("b", &json!([{ "op": "remove", "path": "/A" }]));
    world.drain();
    completed(&world.queue.get(&id).unwrap());
    let last = world.proxy.calls().into_iter().rev().find(|call| call.action == "UpdateResource").unwrap();
    let patch: serde_json::Value = serde_json::from_str(last.body["PatchDocument"].as_str().unwrap()).unwrap();
    assert_eq!(patch, json!([{ "op": "replace", "path": "/B", "value": 2 }]));
}

#[test]
fn a_resource_that_goes_while_it_is_updated_is_made_again() {
    let Some(world) = World::new() else { return };
    completed(&world.sync(&bucket("b", json!({ "A": 1 }))));
    // What is there, and what it has become.
    world.proxy.breaks("GetResource", Fault::None);
    world.proxy.breaks("GetResource", Fault::HoldBefore);
    let id = world.enqueue(&bucket("b", json!({ "A": 2 })));
    let worker = world.worker();
    world.proxy.wait_for_held();
    world.remove("b");
    world.proxy.let_go();
    let job = world.ended(&id);
    assert_eq!(completed(&job).operation, Operation::Created);
    assert_eq!(world.resources(BUCKET), [("b".to_owned(), json!({ "A": 2, "BucketName": "b" }))]);
    drop(worker);
}

/// A resource is not patched by what cannot be one.
#[test]
fn an_answer_that_is_no_resource_is_not_believed() {
    for answer in [
        "{}",
        r#"{"ResourceDescription":{}}"#,
        r#"{"ResourceDescription":{"Identifier":"b","Properties":"{"}}"#,
        r#"{"ResourceDescription":{"Identifier":"b","Properties":"null"}}"#,
        r#"{"ResourceDescription":{"Identifier":"b","Properties":"[]"}}"#,
    ] {
        let Some(world) = World::new() else { return };
        completed(&world.sync(&bucket("b", json!({ "A": 1 }))));
        world.proxy.breaks("GetResource", Fault::Say(200, answer));
        let job = world.sync(&bucket("b", json!({ "A": 1, "B": null })));
        assert_eq!(completed(&job).operation, Operation::Unchanged, "{answer}");
        assert_eq!((job.attempts, world.proxy.count("UpdateResource")), (2, 0), "{answer}");
    }
}
