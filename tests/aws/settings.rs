//! As whom and where AWS is called, and what is said when that cannot be.

use jobq::handlers::SyncAws;
use jobq::{Job, Status};
use serde_json::json;

use super::world::{SECRET, World, bucket, completed, text};

/// Runs a job with more in the environment; tells how it ended and what was printed.
fn sync_with(world: &World, sync: &SyncAws, more: &[(&str, &str)]) -> (Job, String) {
    let id = world.enqueue(sync);
    let output = world.command(&["worker", "--drain", "--json"]).envs(more.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    (world.queue.get(&id).unwrap(), text(&output))
}

fn profiles(world: &World, config: &str) {
    std::fs::create_dir_all(world.root().join(".aws")).unwrap();
    std::fs::write(world.root().join(".aws/config"), config).unwrap();
}

/// It says in which account to work, and nobody may end up in another one.
#[test]
fn a_profile_that_the_settings_name_wins_over_keys_of_the_environment() {
    let Some(world) = World::new() else { return };
    let keys = format!("aws_access_key_id = 999999999999\naws_secret_access_key = {SECRET}\n");
    profiles(&world, &format!("[profile team]\nregion = eu-central-1\n{keys}"));
    world.configure(&format!("profile = \"team\"\nendpoint_url = \"{}\"\n", world.proxy.url));
    completed(&sync_with(&world, &bucket("b", json!({})), &[]).0);
    assert!(world.proxy.calls().iter().all(|call| call.account == "999999999999"));
    // Of an unknown one it says so, whatever else there is.
    world.configure("profile = \"nobody\"\nregion = \"eu-central-1\"\n");
    let (job, _) = sync_with(&world, &bucket("c", json!({})), &[]);
    let error = job.last_error.unwrap();
    assert_eq!((job.status, job.attempts), (Status::Failed, 1), "{error}");
    assert!(error.starts_with("no_credentials: ") && error.contains("nobody"), "{error}");
}

#[test]
fn an_endpoint_of_the_environment_is_used_unless_the_settings_have_one() {
    let Some(world) = World::new() else { return };
    let (proxy, nobody) = (world.proxy.url.clone(), "http://127.0.0.1:1".to_owned());
    for (name, settings, environment) in [("a", None, &proxy), ("b", Some(&proxy), &nobody)] {
        let settings = settings.map(|url| format!("endpoint_url = \"{url}\"\n")).unwrap_or_default();
        world.configure(&format!("region = \"eu-central-1\"\n{settings}"));
        completed(&sync_with(&world, &bucket(name, json!({})), &[("AWS_ENDPOINT_URL", environment)]).0);
    }
}

/// Not trouble of the network, which another attempt may help.
#[test]
fn settings_that_cannot_be_are_named_at_once() {
    let Some(world) = World::new() else { return };
    let secret = bucket("b", json!({ "Password": "hunter2" }));
    for (region, variable, endpoint, named) in [
        ("EU central", "AWS_ENDPOINT_URL", "", "region"),
        ("eu-central-1", "AWS_ENDPOINT_URL", "127.0.0.1:4566", "endpoint"),
        ("eu-central-1", "AWS_ENDPOINT_URL_CLOUDCONTROL", "http://no where", "endpoint"),
    ] {
        world.configure(&format!("region = \"{region}\"\n"));
        let more: Vec<_> = Some((variable, endpoint)).filter(|(_, url)| !url.is_empty()).into_iter().collect();
        let (job, said) = sync_with(&world, &secret, &more);
        let error = job.last_error.unwrap();
        assert_eq!((job.status, job.attempts), (Status::Failed, 1), "{error}");
        assert!(error.starts_with("bad_settings: the call came to nothing: "), "{error}");
        assert!(error.contains(named) && !error.contains("Request {"), "{error}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn what_a_program_for_credentials_prints_is_told_to_nobody() {
    let Some(world) = World::new() else { return };
    for script in ["echo out-of-it; echo out-of-it >&2; exit 3", "echo out-of-it"] {
        profiles(&world, &format!("[profile p]\nregion = eu-central-1\ncredential_process = sh -c \"{script}\"\n"));
        world.configure("profile = \"p\"\n");
        let (job, said) = sync_with(&world, &bucket("b", json!({})), &[("JOBQ_LOG", "trace")]);
        let error = job.last_error.unwrap();
        assert!(error.starts_with("aws_unreachable: AWS credentials could not be had"), "{error}");
        assert!(!error.contains("out-of-it") && !said.contains("out-of-it"), "{error}\n{said}");
    }
}

#[cfg(not(feature = "aws-sso"))]
#[test]
fn a_profile_that_needs_another_build_says_which() {
    let Some(world) = World::new() else { return };
    let sso = "sso_start_url = https://x\nsso_region = eu-west-1\nsso_account_id = 1\nsso_role_name = r\n";
    profiles(&world, &format!("[profile p]\nregion = eu-central-1\n{sso}"));
    world.configure("profile = \"p\"\n");
    let error = sync_with(&world, &bucket("b", json!({})), &[]).0.last_error.unwrap();
    assert!(error.starts_with("no_credentials: ") && error.contains("--features aws-sso"), "{error}");
}
