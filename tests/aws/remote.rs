//! `jobq reconcile --remote`: what completed jobs left at AWS beside what is there.

use jobq::NewJob;
use serde_json::{Value, json};

use super::proxy::Fault;
use super::world::{World, bucket, completed, no_bucket, soon, text};

/// What it says, line by line, and how it ends.
fn reconcile(world: &World, more: &[&str]) -> (i32, Vec<Value>) {
    let mut args = vec!["reconcile", "--json"];
    args.extend(more);
    let output = world.run(&args);
    let lines = String::from_utf8_lossy(&output.stdout);
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output.status.code().unwrap_or(-1), lines)
}

fn sums(lines: &[Value], names: [&str; 5]) -> [u64; 5] {
    names.map(|name| lines.last().unwrap()[name].as_u64().unwrap())
}

const SUMS: [&str; 5] = ["checked", "ok", "findings", "superseded", "in_flight"];

#[test]
fn findings_equal_the_damage() {
    let Some(world) = World::new() else { return };
    world.sync(&bucket("same", json!({ "A": 1, "Deep": { "B": [2] } })));
    world.sync(&bucket("missing", json!({ "A": 1 })));
    world.sync(&bucket("changed", json!({ "A": 0 })));
    let changed = world.sync(&bucket("changed", json!({ "A": 1 })));
    world.sync(&bucket("back", json!({})));
    let back = world.sync(&no_bucket("back"));
    world.sync(&no_bucket("never"));
    let (code, lines) = reconcile(&world, &["--remote"]);
    assert_eq!((code, lines.len()), (0, 1), "{lines:?}");
    assert_eq!(sums(&lines, SUMS), [5, 5, 0, 2, 0]);

    world.remove("missing");
    world.meddle("changed", &json!([{ "op": "replace", "path": "/A", "value": 7 }]));
    // Nobody's business.
    world.meddle("same", &json!([{ "op": "add", "path": "/Other", "value": 7 }]));
    world
        .aside("CreateResource", &json!({ "TypeName": "AWS::S3::Bucket", "DesiredState": r#"{"BucketName":"back"}"# }));
    let (code, lines) = reconcile(&world, &["--remote"]);
    assert_eq!((code, sums(&lines, SUMS)), (1, [5, 2, 3, 2, 0]), "{lines:?}");
    let finding = |id: &str| lines.iter().find(|line| line["path"] == format!("aws:AWS::S3::Bucket/{id}")).unwrap();
    assert_eq!((&finding("missing")["finding"], &finding("missing")["actual"]), (&json!("missing"), &Value::Null));
    assert_eq!(
        (&finding("changed")["finding"], &finding("changed")["job_id"]),
        (&json!("changed"), &json!(changed.id))
    );
    assert_eq!(finding("changed")["expected"], json!(completed(&changed).properties_sha256));
    assert_eq!(finding("changed")["actual"].as_str().unwrap().len(), 64);
    assert_eq!((&finding("back")["finding"], &finding("back")["job_id"]), (&json!("present"), &json!(back.id)));
    assert_eq!(finding("back")["expected"], Value::Null);

    let people = text(&world.run(&["reconcile", "--remote"]));
    assert!(people.contains("missing    aws:AWS::S3::Bucket/missing") && people.contains("3 differ"), "{people}");
    let (code, lines) = reconcile(&world, &["--remote", "--path", "aws:AWS::S3::Bucket/s*"]);
    assert_eq!((code, sums(&lines, SUMS)), (0, [1, 1, 0, 0, 0]));
    let (code, lines) = reconcile(&world, &["--remote", "--type", "create_file"]);
    assert_eq!((code, sums(&lines, SUMS)), (0, [0; 5]));

    // What is synced again is in order again.
    world.sync(&bucket("missing", json!({ "A": 1 })));
    world.sync(&bucket("changed", json!({ "A": 1 })));
    world.sync(&no_bucket("back"));
    assert_eq!(reconcile(&world, &["--remote"]).0, 0);
}

#[test]
fn files_and_resources_are_summed_and_only_remote_calls_anybody() {
    let Some(world) = World::new() else { return };
    world.sync(&bucket("b", json!({})));
    world.queue.commit(|tx| tx.write("a.txt", "a")).unwrap();
    let before = world.proxy.calls().len();
    let (code, lines) = reconcile(&world, &[]);
    assert_eq!((code, sums(&lines, SUMS)), (0, [1, 1, 0, 0, 0]));
    // A worker compares when it starts, files only.
    world.drain();
    assert_eq!(world.proxy.calls().len(), before, "nobody was called");
    let (code, lines) = reconcile(&world, &["--remote"]);
    assert_eq!((code, sums(&lines, SUMS)), (0, [2, 2, 0, 0, 0]));
    assert_eq!(world.proxy.actions()[before..], ["GetResource"]);
    for with in ["--watch", "--requeue"] {
        assert_eq!(world.run(&["reconcile", "--remote", with]).status.code(), Some(2), "{with}");
    }
}

#[test]
fn work_in_flight_is_not_drift() {
    let Some(world) = World::new() else { return };
    world.sync(&bucket("b", json!({ "A": 1 })));
    let next = world.queue.enqueue(soon(&bucket("b", json!({ "A": 2 })))).unwrap().id;
    let (code, lines) = reconcile(&world, &["--remote"]);
    assert_eq!((code, sums(&lines, SUMS)), (0, [1, 1, 0, 0, 0]), "it is still as it was left");
    world.meddle("b", &json!([{ "op": "replace", "path": "/A", "value": 7 }]));
    let (code, lines) = reconcile(&world, &["--remote"]);
    assert_eq!((code, sums(&lines, SUMS)), (0, [1, 0, 0, 0, 1]));
    assert_eq!(lines[0]["in_flight"], json!(next));
    world.queue.cancel(&next).unwrap();
    assert_eq!(reconcile(&world, &["--remote"]).0, 1);
    // Inserted by another program, and not admitted yet.
    let payload = r#"{"resourceType":"AWS::S3::Bucket","resourceId":"b","config":{"A":3}}"#;
    let conn = rusqlite::Connection::open(world.root().join(".jobq/jobq.db")).unwrap();
    conn.execute("INSERT INTO jobs (id, type, payload) VALUES ('plain', 'sync_aws', ?1)", [payload]).unwrap();
    drop(conn);
    let (code, lines) = reconcile(&world, &["--remote"]);
    assert_eq!((code, &lines[0]["in_flight"]), (0, &json!("plain")));
}

/// While the resource is read, another job begins and ends.
#[test]
fn what_a_job_changes_meanwhile_is_compared_again() {
    let Some(world) = World::new() else { return };
    world.sync(&bucket("b", json!({ "A": 1 })));
    world.meddle("b", &json!([{ "op": "replace", "path": "/A", "value": 7 }]));
    world.proxy.breaks("GetResource", Fault::PauseAfter);
    let reconciling = std::thread::scope(|scope| {
        let reconciling = scope.spawn(|| reconcile(&world, &["--remote"]));
        world.proxy.wait_for_held();
        world.sync(&bucket("b", json!({ "A": 2 })));
        world.proxy.let_go();
        reconciling.join().unwrap()
    });
    let (code, lines) = reconciling;
    assert_eq!((code, sums(&lines, SUMS)), (0, [1, 1, 0, 0, 0]), "{lines:?}");
}

#[test]
fn what_cannot_be_read_is_said_and_no_credentials_end_it_all() {
    let Some(world) = World::new() else { return };
    world.sync(&bucket("b", json!({})));
    world.sync(&bucket("c", json!({})));
    world.proxy.breaks("GetResource", Fault::Refuse(400, "AccessDeniedException"));
    let (code, lines) = reconcile(&world, &["--remote"]);
    assert_eq!((code, sums(&lines, SUMS)), (1, [2, 1, 1, 0, 0]), "{lines:?}");
    assert_eq!(lines[0]["finding"], json!("unreadable"));
    assert_eq!(lines[0]["actual"], json!("AccessDeniedException: not now, or not like this"));
    let mut command = world.command(&["reconcile", "--remote"]);
    let output = command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("no AWS credentials"), "{}", text(&output));
}

/// Failed jobs do not count, nor do lanes of the caller's.
#[test]
fn the_latest_completed_job_of_a_resource_counts() {
    let Some(world) = World::new() else { return };
    world.queue.enqueue(NewJob::of(&bucket("b", json!({ "A": 1 }))).lane("mine")).unwrap();
    world.drain();
    world.proxy.breaks("UpdateResource", Fault::Refuse(400, "InvalidRequestException"));
    world.sync(&bucket("b", json!({ "A": 2 })));
    let (code, lines) = reconcile(&world, &["--remote"]);
    assert_eq!((code, sums(&lines, SUMS)), (0, [1, 1, 0, 0, 0]), "{lines:?}");
}
