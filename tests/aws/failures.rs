//! What AWS refuses, what it gives up, and what is done about it.

use jobq::handlers::Operation;
use jobq::{NewJob, Status};
use serde_json::json;

use super::proxy::Fault;
use super::world::{BUCKET, World, bucket, completed, no_bucket, text};

#[test]
fn what_no_other_attempt_can_help_fails_at_once() {
    for (action, code) in [
        ("CreateResource", "InvalidRequestException"),
        ("CreateResource", "AccessDeniedException"),
        ("CreateResource", "TypeNotFoundException"),
        ("GetResource", "TypeNotFoundException"),
        ("GetResource", "UnsupportedActionException"),
        ("GetResource", "UnrecognizedClientException"),
    ] {
        let Some(world) = World::new() else { return };
        world.proxy.breaks(action, Fault::Refuse(400, code));
        let job = world.sync(&bucket("b", json!({})));
        let error = job.last_error.unwrap();
        assert_eq!((job.status, job.attempts), (Status::Failed, 1), "{action} {code}");
        assert_eq!(error, format!("{code}: not now, or not like this"));
        // Somebody has put it right.
        world.queue.retry(&job.id).unwrap();
        world.drain();
        assert_eq!(completed(&world.queue.get(&job.id).unwrap()).operation, Operation::Created);
        assert_eq!(world.resources(BUCKET).len(), 1);
    }
}

#[test]
fn a_request_that_aws_gives_up_names_its_token_and_is_made_anew() {
    let Some(world) = World::new() else { return };
    world.proxy.takes_its_time(1);
    world.proxy.breaks("CreateResource", Fault::Fail("InvalidRequest"));
    let job = world.sync(&bucket("b", json!({})));
    let error = job.last_error.unwrap();
    assert_eq!((job.status, job.attempts), (Status::Failed, 1));
    let first = world.proxy.calls().iter().find_map(|call| call.client_token().map(str::to_owned)).unwrap();
    let expected = format!("InvalidRequest: it was not to be (request token failing-{first})");
    assert_eq!(error, expected);
    let told = world.events(&job.id).into_iter().find(|event| event.event_type == "failed").unwrap();
    assert!(told.data.unwrap().as_str().contains(&format!("\"request_token\":\"failing-{first}\"")));

    world.proxy.breaks("CreateResource", Fault::Fail("NotStabilized"));
    world.queue.retry(&job.id).unwrap();
    world.drain();
    let job = world.queue.get(&job.id).unwrap();
    completed(&job);
    assert_eq!(job.attempts, 2, "the first of them was given up by AWS");
    assert_eq!(world.proxy.distinct_tokens(), 3, "one for each request");
    assert_eq!(world.resources(BUCKET).len(), 1);
}

#[test]
fn a_resource_that_turns_up_meanwhile_is_taken_as_it_is() {
    let Some(world) = World::new() else { return };
    world.proxy.breaks("CreateResource", Fault::HoldBefore);
    let id = world.enqueue(&bucket("b", json!({ "A": 1 })));
    let worker = world.worker();
    world.proxy.wait_for_held();
    world.aside("CreateResource", &json!({ "TypeName": BUCKET, "DesiredState": r#"{"BucketName":"b","A":0}"# }));
    world.proxy.let_go();
    let job = world.ended(&id);
    assert_eq!(completed(&job).operation, Operation::Updated);
    assert_eq!(world.resources(BUCKET), [("b".to_owned(), json!({ "BucketName": "b", "A": 1 }))]);
    drop(worker);
}

#[test]
fn a_resource_that_goes_meanwhile_is_gone() {
    let Some(world) = World::new() else { return };
    completed(&world.sync(&bucket("b", json!({}))));
    world.proxy.breaks("DeleteResource", Fault::HoldBefore);
    let id = world.enqueue(&no_bucket("b"));
    let worker = world.worker();
    world.proxy.wait_for_held();
    world.remove("b");
    world.proxy.let_go();
    assert_eq!(completed(&world.ended(&id)).operation, Operation::Deleted);
    drop(worker);
    // And one whose deletion AWS gives up because of that.
    completed(&world.sync(&bucket("c", json!({}))));
    world.proxy.breaks("DeleteResource", Fault::Fail("NotFound"));
    assert_eq!(completed(&world.sync(&no_bucket("c"))).operation, Operation::Deleted);
}

#[test]
fn a_token_that_aws_has_for_something_else_is_not_used_again() {
    let Some(world) = World::new() else { return };
    world.proxy.breaks("CreateResource", Fault::Refuse(400, "ClientTokenConflictException"));
    let job = world.sync(&bucket("b", json!({})));
    completed(&job);
    assert_eq!((job.attempts, world.proxy.distinct_tokens()), (2, 2));
}

#[test]
fn without_credentials_or_a_region_it_says_what_to_do() {
    let Some(world) = World::new() else { return };
    let run = |world: &World, id: &str| {
        let mut command = world.command(&["worker", "--drain", "--json"]);
        for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"] {
            command.env_remove(name);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        world.queue.get(id).unwrap()
    };
    let id = world.queue.enqueue(NewJob::of(&bucket("b", json!({})))).unwrap().id;
    let job = run(&world, &id);
    let error = job.last_error.unwrap();
    assert_eq!((job.status, job.attempts), (Status::Failed, 1), "{error}");
    assert!(error.starts_with("no_credentials: ") && error.contains("AWS_ACCESS_KEY_ID"), "{error}");
    world.configure("");
    world.queue.retry(&id).unwrap();
    let error = run(&world, &id).last_error.unwrap();
    assert!(error.starts_with("no_region: ") && error.contains("AWS_REGION"), "{error}");
    // From a profile, as for everybody else.
    std::fs::create_dir(world.root().join(".aws")).unwrap();
    let secret = super::world::SECRET;
    let profile = format!("[team]\naws_access_key_id = {}\naws_secret_access_key = {secret}\n", world.account);
    std::fs::write(world.root().join(".aws/credentials"), profile).unwrap();
    std::fs::write(world.root().join(".aws/config"), "[profile team]\nregion = eu-central-1\n").unwrap();
    world.configure(&format!("profile = \"team\"\nendpoint_url = \"{}\"\n", world.proxy.url));
    world.queue.retry(&id).unwrap();
    completed(&run(&world, &id));
    assert_eq!(world.resources(BUCKET).len(), 1);
}
