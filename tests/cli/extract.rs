//! `jobq extract`: what scripts rely on.

#[path = "../support/answering.rs"]
mod answering;

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use self::answering::answer_all;
use super::harness::{Scratch, json_lines};

const TEMPLATE: &str = "What follows from\n{{ title }}?\n";
const ONE: [&str; 6] = ["extract", "req/1.json", "--template", "ask.md", "--target", "out/1.md"];
const ALL: [&str; 6] = ["extract", "req/*.json", "--template", "ask.md", "--target", "out/{{ id }}.md"];

/// A queue with a template and two requirements.
fn scratch() -> Scratch {
    let q = Scratch::new();
    write(&q, "ask.md", TEMPLATE);
    write(&q, "req/1.json", r#"{"id": "REQ-1", "title": "Invoices <are> numbered"}"#);
    write(&q, "req/2.json", "\u{feff}{\"id\": 2, \"title\": \"Numbers have no gaps\"}");
    q
}

fn write(q: &Scratch, path: &str, content: &str) {
    let path = q.path().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn with<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [args, more].concat()
}

fn outcomes(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["outcome"].as_str().unwrap()).collect()
}

#[test]
fn a_requirement_becomes_a_job_with_a_frozen_prompt() {
    let q = scratch();
    write(&q, ".jobq/config.toml", "[handlers.claude_extraction]\nmax_attempts = 9\n");
    let queued = q.json(&with(&ONE, &["--format", "json", "--priority", "-3", "--correlation-id", "batch-7"]));
    let prompt = "What follows from\nInvoices <are> numbered?";
    let hash = jobq::sha256_hex(prompt.as_bytes());
    let id = queued[0]["id"].as_str().unwrap();
    let expected = json!({"requirement": "req/1.json", "requirement_id": "REQ-1", "prompt_hash": hash,
                          "target_path": "out/1.md", "outcome": "inserted", "id": id, "same_payload": true});
    assert_eq!(queued, [expected]);
    // What is queued stays what it was.
    write(&q, "ask.md", "changed");
    let job = &q.json(&["show", id])[0];
    let payload = json!({"prompt": prompt, "targetPath": "out/1.md", "requirementId": "REQ-1", "promptHash": hash,
                         "format": "json"});
    assert_eq!((&job["type"], &job["payload"]), (&json!("claude_extraction"), &payload));
    assert_eq!((&job["priority"], &job["correlation_id"]), (&json!(-3), &json!("batch-7")));
    assert_eq!(job["max_attempts"], 9, "as the settings say");
}

#[test]
fn the_same_again_is_the_same_job_until_it_is_done() {
    let q = scratch();
    let first = q.json(&ONE).remove(0);
    let again = q.json(&ONE).remove(0);
    assert_eq!((&again["outcome"], &again["id"]), (&json!("existing"), &first["id"]));
    assert!(q.ok(&ONE).contains("existing"));
    let elsewhere = with(&ONE[..5], &["out/other.md"]);
    assert!(q.ok(&elsewhere).contains("yours was not queued"));
    assert_eq!(q.json(&elsewhere)[0]["same_payload"], false);
    assert_eq!(q.count(), 1);
}

#[test]
fn a_glob_queues_what_does_not_stand_already() {
    let q = scratch();
    write(&q, "req/.hidden.json", "not even JSON");
    write(&q, "req/folder.json/x", "");
    let queued = q.json(&ALL);
    assert_eq!(outcomes(&queued), ["inserted", "inserted"]);
    assert_eq!((&queued[1]["requirement_id"], &queued[1]["target_path"]), (&json!("2"), &json!("out/2.md")));
    answer_all(q.path());
    assert_eq!(
        std::fs::read_to_string(q.path().join("out/2.md")).unwrap().lines().nth(1),
        Some("Numbers have no gaps?")
    );

    let skipped = q.json(&ALL);
    assert_eq!(outcomes(&skipped), ["skipped", "skipped"]);
    assert_eq!(skipped[0]["id"], queued[0]["id"]);
    assert!(q.ok(&ALL).contains("skipped"));
    assert_eq!(q.count(), 2, "nothing was queued");

    // One is damaged, one has another prompt, one is new.
    write(&q, "out/REQ-1.md", "damaged");
    write(&q, "req/2.json", r#"{"id": 2, "title": "Numbers never change"}"#);
    write(&q, "req/3.json", r#"{"id": 3, "title": "Numbers are short"}"#);
    assert_eq!(outcomes(&q.json(&ALL)), ["inserted", "inserted", "inserted"]);
    answer_all(q.path());
    let forced = with(&ALL, &["--force"]);
    assert_eq!(outcomes(&q.json(&forced)), ["inserted", "inserted", "inserted"], "--force asks again");
    assert_eq!(outcomes(&q.json(&ALL)), ["existing", "existing", "existing"], "they are about to be asked again");
}

#[test]
fn all_are_queued_or_none_and_the_bad_one_is_named() {
    let q = scratch();
    for (content, named) in [
        ("{", "req/3.json is not JSON"),
        ("[]", "not a JSON object"),
        (r#"{"title": "T"}"#, "--id"),
        (r#"{"id": true, "title": "T"}"#, "--id"),
        (r#"{"id": 3}"#, "line 2: the template uses `title`"),
        (r#"{"id": "../3", "title": "T"}"#, "target"),
    ] {
        write(&q, "req/3.json", content);
        let error = q.refused(2, &ALL);
        assert!(error.contains("req/3.json") && error.contains(named), "{content}: {error}");
        assert_eq!(q.count(), 0, "{content}");
    }
}

#[test]
fn two_that_would_overwrite_each_other_are_refused() {
    let q = scratch();
    let one_target = with(&ALL[..5], &["out/all.md"]);
    let error = q.refused(2, &one_target);
    assert!(error.contains("req/1.json") && error.contains("req/2.json") && error.contains("out/all.md"), "{error}");
    let same = with(&["extract", "req/1.json", "req/../req/1.json"], &ALL[2..]);
    assert!(q.refused(2, &same).contains("req/../req/1.json"));
    write(&q, "req/2.json", r#"{"id": "REQ-1", "title": "Invoices <are> numbered", "n": 2}"#);
    write(&q, "req/1.json", r#"{"id": "REQ-1", "title": "Invoices <are> numbered", "n": 1}"#);
    let error = q.refused(2, &with(&ALL[..5], &["out/{{ n }}.md"]));
    assert!(error.contains("req/1.json") && error.contains("req/2.json") && error.contains("same id"), "{error}");
    assert_eq!(q.count(), 0);
    let twice = with(&["extract", "req/1.json", "req/[1].json"], &ALL[2..]);
    assert_eq!(q.json(&twice).len(), 1, "the same file, named twice");
}

#[test]
fn what_is_not_there_and_what_makes_no_sense() {
    let q = scratch();
    let files = |files: &[&'static str]| with(&with(&["extract"], files), &ONE[2..]);
    assert!(q.refused(3, &files(&["req/none.json"])).contains("req/none.json"));
    assert!(q.refused(3, &files(&["none/*.json"])).contains("none/*.json"));
    assert!(q.refused(3, &["extract", "req/1.json", "--template", "none.md", "--target", "a"]).contains("none.md"));
    assert!(q.refused(2, &files(&["req/[.json"])).contains("glob"));
    assert!(q.refused(2, &files(&["req"])).contains("req"));
    assert!(q.refused(2, &with(&ALL, &["--id", "x"])).contains("--id"));
    assert!(q.refused(2, &with(&ONE, &["--format", "yaml"])).contains("json"));
    assert!(q.refused(2, &["extract", "-", "--template", "-", "--target", "a"]).contains("--template"));
    write(&q, "ask.md", "ok\n{% if %}");
    let error = q.refused(2, &ONE);
    assert!(error.contains("ask.md") && error.contains("line 2"), "{error}");
    write(&q, "ask.md", "  {# nothing #}\n");
    assert!(q.refused(2, &ONE).contains("empty"));
    assert_eq!(q.count(), 0);
    let nowhere = Scratch::empty();
    write(&nowhere, "req/1.json", r#"{"id": 1}"#);
    write(&nowhere, "ask.md", "p");
    assert!(nowhere.refused(3, &ONE).contains("jobq init"));
}

#[test]
fn a_dry_run_prints_the_prompts_and_queues_nothing() {
    let q = scratch();
    assert_eq!(q.ok(&with(&ONE, &["--dry-run"])), "What follows from\nInvoices <are> numbered?\n");
    let all = q.ok(&with(&ALL, &["--dry-run"]));
    assert!(all.contains("==> req/1.json") && all.contains("==> req/2.json") && all.contains("no gaps?\n"), "{all}");
    let lines = q.json(&with(&ALL, &["--dry-run"]));
    let prompt = "What follows from\nNumbers have no gaps?";
    let expected = json!({"requirement": "req/2.json", "requirement_id": "2", "prompt": prompt, "format": "text",
                          "prompt_hash": jobq::sha256_hex(prompt.as_bytes()), "target_path": "out/2.md"});
    assert_eq!(lines[1], expected);
    assert_eq!(q.count(), 0);
    // Prompts can be tried out where there is no queue yet.
    std::fs::remove_dir_all(q.path().join(".jobq")).unwrap();
    q.ok(&with(&ONE, &["--dry-run"]));
}

#[test]
fn templates_and_requirements_come_from_stdin_too() {
    let q = scratch();
    let template = ["extract", "req/1.json", "--template", "-", "--target", "a", "--id", "mine", "--dry-run", "--json"];
    let said = q.run_with_input(&template, "ask {{ id }} {{ requirement.id }}");
    assert_eq!(json_lines(&said.stdout)[0]["prompt"], "ask mine REQ-1", "{}", said.stderr);
    let requirement = ["extract", "-", "--template", "ask.md", "--target", "a"];
    let said = q.run_with_input(&requirement, r#"{"id": "R", "title": "T"}"#);
    assert!(said.code == 0 && said.stdout.contains("queued"), "{}{}", said.stdout, said.stderr);
}

#[test]
fn files_are_found_from_here_and_targets_below_the_root() {
    let q = scratch();
    let mut command = q.command(&["extract", "1.json", "--template", "../ask.md", "--target", "out/1.md", "--json"]);
    let output = command.current_dir(q.path().join("req")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    answer_all(q.path());
    assert!(q.path().join("out/1.md").exists());
}

#[test]
fn a_prompt_has_integers_of_up_to_64_bits_unchanged_and_larger_ones_rounded() {
    let q = scratch();
    write(&q, "ask.md", "{{ n }}");
    let numbers = [
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("\"12345678901234567890123\"", "12345678901234567890123"),
        ("12345678901234567890123", "12345678901234568000000.0"),
    ];
    for (given, shown) in numbers {
        write(&q, "req/1.json", &format!(r#"{{"id": "R", "n": {given}}}"#));
        assert_eq!(q.ok(&with(&ONE, &["--dry-run"])).trim_end(), shown);
    }
}

/// Prompts go to a service: a link must bring nothing into them from outside, whoever has put it there.
#[test]
fn no_link_below_the_root_is_followed_into_a_prompt() {
    let (q, outside) = (scratch(), tempfile::tempdir().unwrap());
    let secret = outside.path().join("3.json");
    std::fs::write(&secret, r#"{"id": "SECRET", "title": "secret"}"#).unwrap();
    let link = |target: &std::path::Path, name: &str| symlink(target, q.path().join(name)).unwrap();
    let refused = |args: &[&str], name: &str| {
        for more in [&[][..], &["--dry-run"]] {
            let error = q.refused(2, &with(args, more));
            assert!(error.contains(name) && error.contains("symbolic link"), "{args:?}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    };
    let file = |name: &'static str| with(&["extract", name], &ALL[2..]);
    link(&secret, "req/3.json");
    link(std::path::Path::new("1.json"), "req/4.json");
    for args in
        [&ALL[..], &file("req/3.json"), &file("./req/../req/3.json"), &file("req/4.json"), &file("req/[3].json")]
    {
        let name = if args[1].contains('4') { "req/4.json" } else { "req/3.json" };
        refused(args, name);
    }
    std::fs::remove_file(q.path().join("req/4.json")).unwrap();
    refused(&ALL, "req/3.json");
    let absolute = q.path().join("req/3.json");
    refused(&with(&["extract", absolute.to_str().unwrap()], &ALL[2..]), "req/3.json");
    // A folder on the way, named or found.
    link(outside.path(), "linked");
    refused(&file("linked/3.json"), "linked");
    refused(&file("link*/*.json"), "linked");
    std::fs::remove_dir_all(q.path().join("req")).unwrap();
    link(outside.path(), "req");
    refused(&ALL, "req");
    // From another folder, and by another name of the root.
    std::fs::create_dir(q.path().join("sub")).unwrap();
    let from_sub = ["extract", "../req/3.json", "--template", "../ask.md", "--target", "out/3.md"];
    let output = q.command(&from_sub).current_dir(q.path().join("sub")).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && error.contains("symbolic link"), "{error}");
    symlink(q.path(), outside.path().join("root")).unwrap();
    let by_link = outside.path().join("root/req/3.json");
    refused(&with(&["extract", by_link.to_str().unwrap()], &ALL[2..]), "req");
    assert_eq!(q.count(), 0);
}

#[test]
fn no_template_is_read_through_a_link_below_the_root() {
    let (q, outside) = (scratch(), tempfile::tempdir().unwrap());
    std::fs::write(outside.path().join("key"), "the key").unwrap();
    std::fs::remove_file(q.path().join("ask.md")).unwrap();
    symlink(outside.path().join("key"), q.path().join("ask.md")).unwrap();
    let error = q.refused(2, &ONE);
    assert!(error.contains("ask.md") && error.contains("symbolic link"), "{error}");
    assert_eq!(q.count(), 0);
}

/// Whoever names a file outside the root has chosen it.
#[test]
fn files_outside_the_root_are_read_as_they_are_named() {
    let (q, outside) = (scratch(), tempfile::tempdir().unwrap());
    std::fs::write(outside.path().join("5.json"), r#"{"id": 5, "title": "T"}"#).unwrap();
    let named = outside.path().join("*.json");
    assert_eq!(outcomes(&q.json(&with(&["extract", named.to_str().unwrap()], &ALL[2..]))), ["inserted"]);
}
