//! How Claude Code is called: what it is told, what it is not, and who else hears.

use jobq::Status;
use serde_json::json;

use super::world::{World, ask, completed};

const SECRET: &str = "the merger with our friends";

#[test]
fn the_prompt_comes_by_stdin_and_is_told_to_nobody_else() {
    let world = World::new("success");
    let id = world.enqueue(ask(&format!("what follows from {SECRET}?\n")));
    let output = world.command(&["-vv", "worker", "--drain", "--json"]).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && !said.contains(SECRET), "{said}");
    completed(&world.queue.get(&id).unwrap());
    let call = &world.calls()[0];
    assert_eq!(call["argv"], json!(["-p", "--output-format", "json"]));
    assert_eq!(call["stdin"], format!("what follows from {SECRET}?\n"), "to the letter");
    let root = world.root().canonicalize().unwrap();
    assert_eq!(call["cwd"], root.to_str().unwrap());
}

#[test]
fn it_gets_its_own_settings_and_no_other_secrets() {
    let world = World::new("success");
    world.enqueue(ask("p"));
    let mut worker = world.command(&["worker", "--drain", "--json"]);
    worker.env("ANTHROPIC_API_KEY", "k").env("CLAUDE_CONFIG_DIR", "/c").env("https_proxy", "http://p");
    worker.env("NODE_EXTRA_CA_CERTS", "/ca").env("AWS_SECRET_ACCESS_KEY", "s").env("DATABASE_PASSWORD", "s");
    assert!(worker.output().unwrap().status.success());
    let env = world.calls()[0]["env"].clone();
    for (name, value) in [
        ("ANTHROPIC_API_KEY", json!("k")),
        ("CLAUDE_CONFIG_DIR", json!("/c")),
        ("https_proxy", json!("http://p")),
        ("NODE_EXTRA_CA_CERTS", json!("/ca")),
        ("AWS_SECRET_ACCESS_KEY", json!(null)),
        ("DATABASE_PASSWORD", json!(null)),
    ] {
        assert_eq!(env[name], value, "{name}");
    }
    assert!(env["PATH"].is_string() && env["HOME"].is_string());
}

#[test]
fn a_program_that_is_not_there_is_named_with_how_to_get_it() {
    let world = World::new("success");
    let id = world.enqueue(ask("p"));
    let mut worker = world.command(&["worker", "--drain", "--json"]);
    // A folder in which there is no program at all.
    assert!(worker.env("PATH", world.root()).output().unwrap().status.success());
    let job = world.queue.get(&id).unwrap();
    let error = job.last_error.unwrap_or_default();
    assert_eq!((job.status, job.attempts), (Status::Failed, 1), "{error}");
    assert!(error.contains("program_missing") && error.contains("npm install -g @anthropic-ai/claude-code"), "{error}");
}
