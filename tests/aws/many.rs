//! Many resources, and what that takes.

use std::process::Stdio;

use jobq::NewJob;
use serde_json::{Value, json};

use super::proxy::Fault;
use super::world::{Worker, World, bucket, completed, text};

/// Buckets that jobs have made, the last one first.
fn made(world: &World, number: usize) -> Vec<String> {
    let names: Vec<String> = (0..number).map(|n| format!("b{n}")).collect();
    let jobs = names.iter().map(|name| NewJob::of(&bucket(name, json!({}))));
    world.queue.enqueue_many(jobs).unwrap();
    world.drain();
    names.into_iter().rev().collect()
}

#[test]
fn several_resources_are_read_at_once_and_told_of_in_order() {
    let Some(world) = World::new() else { return };
    let names = made(&world, 20);
    for name in &names[..10] {
        world.remove(name);
    }
    for _ in 0..8 {
        world.proxy.breaks("GetResource", Fault::PauseAfter);
    }
    let mut command = world.command(&["reconcile", "--remote", "--json"]);
    let mut reconciling = Worker(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    world.proxy.wait_for_many_held(8);
    world.proxy.let_go();
    let stdout = std::io::read_to_string(reconciling.0.stdout.take().unwrap()).unwrap();
    assert_eq!(reconciling.0.wait().unwrap().code(), Some(1));
    let lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let paths: Vec<&str> = lines.iter().filter_map(|line| line["path"].as_str()).collect();
    assert_eq!(paths, names[..10].iter().map(|name| format!("aws:AWS::S3::Bucket/{name}")).collect::<Vec<_>>());
    assert_eq!((&lines[10]["checked"], &lines[10]["ok"]), (&json!(20), &json!(10)));
}

/// Nobody knows whether it has changed, and a moment later one may know.
#[test]
fn a_read_that_aws_puts_off_is_no_finding() {
    for fault in [Fault::Refuse(400, "ThrottlingException"), Fault::DropBefore] {
        let Some(world) = World::new() else { return };
        made(&world, 2);
        // More often than the SDK tries by itself.
        for _ in 0..7 {
            world.proxy.breaks("GetResource", fault);
        }
        let output = world.run(&["reconcile", "--remote", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{fault:?}: {}", text(&output));
    }
}

#[test]
fn when_nobody_is_there_it_ends() {
    let Some(world) = World::new() else { return };
    made(&world, 30);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    world.configure(&format!("region = \"eu-central-1\"\nendpoint_url = \"http://{closed}\"\n"));
    let output = world.run(&["reconcile", "--remote", "--json"]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output));
    assert!(text(&output).contains("AWS cannot be reached"), "{}", text(&output));
    assert!(String::from_utf8_lossy(&output.stdout).lines().count() < 10, "the others are not tried");
}

/// A program for credentials may ask a person, and a role is asked for at a service that counts.
#[test]
fn jobs_that_begin_at_once_share_their_credentials() {
    let Some(world) = World::new() else { return };
    std::fs::create_dir(world.root().join(".aws")).unwrap();
    let keys = format!(r#"{{"Version":1,"AccessKeyId":"{}","SecretAccessKey":"s"}}"#, world.account);
    std::fs::write(world.root().join("keys"), keys).unwrap();
    std::fs::write(world.root().join("ask"), "echo asked >> asked; sleep 0.3; cat keys").unwrap();
    let profile = "[profile p]\nregion = eu-central-1\ncredential_process = sh ask\n";
    std::fs::write(world.root().join(".aws/config"), profile).unwrap();
    world.configure(&format!("profile = \"p\"\nendpoint_url = \"{}\"\n", world.proxy.url));
    let jobs: Vec<_> = (0..8).map(|n| world.enqueue(&bucket(&format!("b{n}"), json!({})))).collect();
    let output = world.run(&["worker", "--drain", "--json", "--concurrency", "8"]);
    assert!(output.status.success(), "{}", text(&output));
    for id in jobs {
        completed(&world.queue.get(&id).unwrap());
    }
    // Once to see that there are any, once by the client that all of them use.
    let asked = std::fs::read_to_string(world.root().join("asked")).unwrap().lines().count();
    assert!(asked <= 2, "asked {asked} times");
}
