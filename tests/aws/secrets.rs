//! What is needed to call AWS is kept nowhere and told to nobody.

use serde_json::json;

use super::proxy::Fault;
use super::world::{SECRET, SESSION, World, bucket, text};

#[test]
fn credentials_are_in_no_output_and_in_no_file() {
    let Some(world) = World::new() else { return };
    for fault in [
        Fault::Refuse(400, "AccessDeniedException"),
        Fault::Refuse(500, "InternalFailure"),
        Fault::DropAfter,
        Fault::Fail("InvalidRequest"),
        Fault::None,
    ] {
        for _ in 0..3 {
            world.proxy.breaks("CreateResource", fault);
        }
        let id = format!("b-{fault:?}").to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        world.enqueue(&bucket(&id, json!({})));
        let output = world.command(&["worker", "--drain", "--json"]).env("JOBQ_LOG", "trace").output().unwrap();
        let said = text(&output) + &text(&world.run(&["reconcile", "--remote", "-vvv"]));
        for secret in [SECRET, SESSION, &world.account, "AWS4-HMAC"] {
            assert!(!said.contains(secret), "{fault:?}: {secret} is in the output");
        }
    }
    let mut files = vec![world.root().to_owned()];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let content = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        for secret in [SECRET, SESSION, &world.account] {
            assert!(!content.contains(secret), "{secret} is in {}", path.display());
        }
    }
}
