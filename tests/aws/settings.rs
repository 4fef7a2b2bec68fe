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
