//! A resource is made what the payload says, with as few calls as that takes.

use jobq::handlers::{Operation, SyncAws};
use jobq::{Status, sha256_hex};
use serde_json::json;

use super::world::{BUCKET, World, bucket, completed, no_bucket};

#[test]
fn a_resource_is_created_left_alone_updated_and_deleted() {
    let Some(world) = World::new() else { return };
    let given = || bucket("b", json!({ "Tags": [{ "Key": "k", "Value": "v" }], "Deep": { "A": 1, "B": 2 } }));
    let created = completed(&world.sync(&given()));
    assert_eq!((created.identifier.as_str(), created.operation), ("b", Operation::Created));
    assert!(created.request_token.is_some());
    let text = r#"{"BucketName":"b",}"#;
    let hash = |text: &str| Some(sha256_hex(text.as_bytes()));
    assert_eq!(
        created.properties_sha256,
        hash(r#"{"BucketName":"b","Deep":{"A":1,"B":2,},"Tags":[{"Key":"k","Value":"v",},],}"#)
    );

    let before = world.proxy.calls().len();
    let unchanged = completed(&world.sync(&given()));
    assert_eq!((unchanged.operation, unchanged.request_token), (Operation::Unchanged, None));
    assert_eq!(unchanged.properties_sha256, created.properties_sha256);
    assert_eq!(world.proxy.actions()[before..], ["GetResource"], "nothing more was asked");

    // What is not given is left alone, what is null is removed.
    world.meddle("b", &json!([{ "op": "add", "path": "/Other", "value": "somebody's" }]));
    let updated = completed(&world.sync(&bucket("b", json!({ "Deep": { "A": 5 }, "Tags": null }))));
    assert_eq!(updated.operation, Operation::Updated);
    let there = json!({ "BucketName": "b", "Deep": { "A": 5, "B": 2 }, "Other": "somebody's" });
    assert_eq!(world.resources(BUCKET), [("b".to_owned(), there)]);
    let update = world.proxy.calls().into_iter().find(|call| call.action == "UpdateResource").unwrap();
    let patch: serde_json::Value = serde_json::from_str(update.body["PatchDocument"].as_str().unwrap()).unwrap();
    let expected = json!([{ "op": "replace", "path": "/Deep/A", "value": 5 }, { "op": "remove", "path": "/Tags" }]);
    assert_eq!(patch, expected);
    let only_name = completed(&world.sync(&bucket("b", json!({}))));
    assert_eq!((only_name.operation, only_name.properties_sha256), (Operation::Unchanged, hash(text)));

    let deleted = completed(&world.sync(&no_bucket("b")));
    assert_eq!((deleted.operation, deleted.properties_sha256), (Operation::Deleted, None));
    assert_eq!(world.resources(BUCKET), []);
    let absent = completed(&world.sync(&no_bucket("b")));
    assert_eq!(absent.operation, Operation::Unchanged);
    assert_eq!(world.proxy.count("DeleteResource"), 1);
    assert_eq!(world.proxy.distinct_tokens(), 3, "one for each change");
}

#[test]
fn syncs_of_one_resource_run_one_at_a_time_and_end_in_order() {
    let Some(world) = World::new() else { return };
    world.proxy.takes_its_time(1);
    let ids: Vec<String> = (0..4).map(|n| world.enqueue(&bucket("b", json!({ "N": n })))).collect();
    let last = world.enqueue(&no_bucket("b"));
    let again = world.enqueue(&bucket("b", json!({ "N": 9 })));
    world.drain();
    for id in ids.iter().chain([&last, &again]) {
        completed(&world.queue.get(id).unwrap());
    }
    assert_eq!(world.resources(BUCKET), [("b".to_owned(), json!({ "BucketName": "b", "N": 9 }))]);
    assert_eq!((world.proxy.count("CreateResource"), world.proxy.count("UpdateResource")), (2, 3));
}

/// A sync finds a resource by its id alone; under another it would be made again and again.
#[test]
fn a_resource_that_aws_names_itself_is_made_once_and_its_name_is_told() {
    let Some(world) = World::new() else { return };
    let vpc = SyncAws::resource("AWS::EC2::VPC", "main", json!({ "CidrBlock": "10.0.0.0/16" }));
    let job = world.sync(&vpc);
    let made = world.resources("AWS::EC2::VPC");
    let [(identifier, _)] = made.as_slice() else { panic!("{made:?}") };
    let error = job.last_error.as_deref().unwrap();
    assert_eq!((job.status, job.attempts), (Status::Failed, 1));
    assert!(error.starts_with("other_identifier: ") && error.contains(identifier), "{error}");
    let left: serde_json::Value = job.result.unwrap().parse().unwrap();
    assert_eq!(left["identifier"], json!(identifier));
    // Not even somebody who asks for it makes another one, and not when AWS has forgotten the request.
    for _ in 0..2 {
        world.queue.retry(&job.id).unwrap();
        world.drain();
        world.proxy.forgets_requests();
    }
    let job = world.queue.get(&job.id).unwrap();
    assert_eq!(job.status, Status::Failed);
    assert_eq!(world.resources("AWS::EC2::VPC").len(), 1);
    let named = SyncAws::resource("AWS::EC2::VPC", identifier.clone(), json!({ "CidrBlock": "10.0.0.0/16" }));
    assert_eq!(completed(&world.sync(&named)).operation, Operation::Unchanged);
}

#[test]
fn the_type_is_listed_as_one_that_jobq_runs() {
    let Some(world) = World::new() else { return };
    let listed = String::from_utf8(world.run(&["handlers", "--json"]).stdout).unwrap();
    let line = listed.lines().find(|line| line.contains("\"sync_aws\"")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((&line["source"], &line["runs"]), (&json!("built-in"), &json!(true)));
    assert_eq!(line["timeout_ms"], json!(3_600_000));
}
