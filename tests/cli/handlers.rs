//! `jobq handlers`: what is known here, and what is wrong with it; and programs
//! that the settings name.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::harness::Scratch;

fn with_settings(text: &str) -> Scratch {
    let q = Scratch::new();
    std::fs::write(q.path().join(".jobq/config.toml"), text).unwrap();
    std::fs::create_dir(q.path().join(".jobq/handlers")).unwrap();
    q
}

fn put(q: &Scratch, name: &str, text: &str, mode: u32) {
    let path = q.path().join(".jobq/handlers").join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn listed(q: &Scratch, name: &str) -> Value {
    q.json(&["handlers"]).into_iter().find(|one| one["type"] == name).unwrap_or_else(|| panic!("{name} is not listed"))
}

#[test]
fn every_type_is_listed_with_where_it_comes_from() {
    let q = with_settings(
        "[handlers.resize]\ncommand = [\"python3\", \"tools/resize.py\"]\ntimeout = \"2m\"\nconcurrency = 2\n\
         [handlers.create_file]\nmax_attempts = 9\n",
    );
    put(&q, "greet", "#!/bin/sh\n", 0o755);
    put(&q, "greet.schema.json", "{}", 0o644);
    let built_in = listed(&q, "create_file");
    assert_eq!((&built_in["source"], &built_in["runs"]), (&json!("built-in"), &json!(true)));
    assert_eq!(built_in["max_attempts"], json!(9));
    assert_eq!(listed(&q, "claude_extraction")["timeout_ms"], json!(600_000));
    let resize = listed(&q, "resize");
    assert_eq!((&resize["source"], &resize["command"]), (&json!("program"), &json!(["python3", "tools/resize.py"])));
    assert_eq!((&resize["timeout_ms"], &resize["concurrency"]), (&json!(120_000), &json!(2)));
    let greet = listed(&q, "greet");
    assert!(greet["command"][0].as_str().unwrap().ends_with(".jobq/handlers/greet"));
    assert!(greet["schema"].as_str().unwrap().ends_with("greet.schema.json"));
    assert_eq!(greet["problem"], Value::Null);
    let text = q.ok(&["handlers"]);
    for word in ["create_file", "python3 resize.py", "greet.schema.json", "2m"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn what_cannot_be_used_is_listed_with_the_reason() {
    let q = with_settings("");
    put(&q, "not_yet", "#!/bin/sh\n", 0o644);
    put(&q, "broken.schema.json", "{", 0o644);
    put(&q, "delete_file", "#!/bin/sh\n", 0o755);
    put(&q, "bad name", "#!/bin/sh\n", 0o755);
    put(&q, "edited~", "#!/bin/sh\n", 0o755);
    for (name, word) in [
        ("not_yet", "chmod +x"),
        ("broken", "is not JSON"),
        ("delete_file", "comes with jobq"),
        ("bad name", "letters"),
    ] {
        let one = listed(&q, name);
        assert!(one["problem"].as_str().unwrap().contains(word), "{one}");
        assert_eq!(one["runs"], json!(name == "delete_file"), "{one}");
        assert!(q.ok(&["handlers"]).contains(word));
    }
    assert!(!q.ok(&["handlers"]).contains("edited"), "that is an editor's");
}

/// None of these hangs anybody, or is taken for "no schema".
#[test]
fn schemas_and_handlers_that_are_no_files_are_listed_and_refuse() {
    let q = with_settings("");
    let place = |name: &str| q.path().join(".jobq/handlers").join(name);
    put(&q, "linked", "#!/bin/sh\n", 0o755);
    std::os::unix::fs::symlink("/no/such/file", place("linked.schema.json")).unwrap();
    std::os::unix::fs::symlink("/no/such/file", place("gone")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", place("endless.schema.json")).unwrap();
    std::fs::create_dir(place("folder.schema.json")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(place("pipe.schema.json")).status().unwrap().success());
    for (name, word) in [
        ("linked", "linked.schema.json is a link to nothing"),
        ("gone", "gone is a link to nothing"),
        ("endless", "is not a file"),
        ("folder", "is not a file"),
        ("pipe", "is not a file"),
    ] {
        let one = listed(&q, name);
        assert!(one["problem"].as_str().unwrap().contains(word), "{one}");
        assert_eq!(one["runs"], json!(false), "{one}");
        if name != "gone" {
            let said = q.run(&["enqueue", name, "{}"]);
            assert!(said.code == 2 && said.stderr.contains(word), "{}", said.stderr);
        }
    }
    // Nor is another type's job any business of theirs.
    let id = q.enqueue(&["create_file", r#"{"path":"a.txt","content":"a"}"#]);
    q.ok(&["worker", "--drain"]);
    assert_eq!(q.json(&["show", &id])[0]["status"], json!("completed"));
}

#[test]
fn a_program_runs_as_the_settings_say() {
    let q = with_settings(
        "[handlers.shows]\ncommand = [\"sh\", \"tools/show.sh\", \"an argument; echo\"]\n\
         env = { MODE = \"fast\" }\npass_env = [\"KEPT_*\"]\npermanent_exit_codes = [3]\nmax_attempts = 5\n",
    );
    std::fs::create_dir(q.path().join("tools")).unwrap();
    let script = "echo \"{\\\"said\\\":\\\"$1 $MODE $KEPT_A ${LOST:-nothing}\\\"}\"; [ ! -e fail ] || exit 3";
    std::fs::write(q.path().join("tools/show.sh"), script).unwrap();
    let worker = || {
        let mut command = q.command(&["worker", "--drain"]);
        assert!(command.env("KEPT_A", "kept").env("LOST", "lost").output().unwrap().status.success());
    };
    let done = q.enqueue(&["shows", "{}"]);
    worker();
    let job = &q.json(&["show", &done])[0];
    assert_eq!(job["result"], json!({"said": "an argument; echo fast kept nothing"}), "{job}");
    std::fs::write(q.path().join("fail"), "").unwrap();
    let failed = q.enqueue(&["shows", "{\"n\":2}"]);
    worker();
    let job = &q.json(&["show", &failed])[0];
    assert_eq!((&job["status"], &job["attempts"]), (&json!("failed"), &json!(1)), "3 is said to be permanent");
    assert_eq!(job["max_attempts"], json!(5));
}

#[test]
fn a_pause_is_ended_by_hand() {
    let q = with_settings("");
    let said = q.run(&["handlers", "--resume", "create_file"]);
    assert_eq!((said.code, said.stdout.as_str()), (1, "create_file is not paused\n"));
    let now = jobq::clock::millis(std::time::SystemTime::now());
    let pause = "INSERT INTO type_pauses (type, until, since, reason) VALUES ('create_file', ?1, ?2, 'wait')";
    q.sql().execute(pause, [now + 3_600_000, now - 1_000]).unwrap();
    assert!(listed(&q, "create_file")["paused_until"].is_string());
    assert!(q.ok(&["handlers"]).contains("--resume create_file"));
    assert_eq!(q.json(&["handlers", "--resume", "create_file"]), [json!({"type": "create_file", "resumed": true})]);
    assert_eq!(listed(&q, "create_file")["paused_until"], Value::Null);
}
