//! Jobs from enqueue to prune.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::harness::{Scratch, batch_of, json_lines};

#[test]
fn enqueue_answers_in_the_documented_shape_and_never_doubles() {
    let q = Scratch::new();
    let first = q.json(&["enqueue", "send_mail", r#"{"to":"ada","n":1}"#]);
    let id = first[0]["id"].as_str().unwrap();
    let expected =
        json!({"id": id, "type": "send_mail", "status": "pending", "outcome": "inserted", "same_payload": true});
    assert_eq!(first, [expected]);
    let again = q.json(&["enqueue", "send_mail", r#"{"n": 1, "to": "ada"}"#]);
    let expected =
        json!({"id": id, "type": "send_mail", "status": "pending", "outcome": "existing", "same_payload": true});
    assert_eq!(again, [expected], "the same meaning in another order");
    let keyed = q.enqueue(&["send_mail", r#"{"to":"bob"}"#, "--key", "k"]);
    let other = q.json(&["enqueue", "send_mail", r#"{"to":"eve"}"#, "--key", "k"]);
    assert_eq!((&other[0]["id"], &other[0]["same_payload"]), (&json!(keyed), &json!(false)));
    q.enqueue(&["send_mail", r#"{"to":"ada","n":1}"#, "--no-key"]);
    assert_eq!(q.count(), 3);
}

#[test]
fn every_option_ends_up_in_its_column() {
    let q = Scratch::new();
    let parent = q.enqueue(&["send_mail", "{}"]);
    let id = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    std::fs::write(q.path().join("mail.json"), "{\n  \"to\": \"ada\"\n}\n").unwrap();
    q.enqueue(&[
        "send_mail",
        "@mail.json",
        "--id",
        id,
        "--priority",
        "-7",
        "--key",
        "k",
        "--run-at",
        "2100-01-01T02:00:00+02:00",
        "--max-attempts",
        "9",
        "--timeout",
        "1h 30m",
        "--lane",
        "mail",
        "--after",
        &parent,
        "--correlation-id",
        "order-1",
    ]);
    let job = &q.json(&["show", id])[0];
    for (column, value) in [
        ("priority", json!(-7)),
        ("idempotency_key", json!("k")),
        ("run_at", json!("2100-01-01T00:00:00.000Z")),
        ("max_attempts", json!(9)),
        ("timeout", json!(5_400_000)),
        ("holds", json!(["lane:mail"])),
        ("waiting_on", json!(parent)),
        ("correlation_id", json!("order-1")),
        ("payload", json!({"to": "ada"})),
        ("attempts", json!(0)),
        ("completed_at", Value::Null),
    ] {
        assert_eq!(job[column], value, "{column}");
    }
    assert_eq!(job["events"][0]["type"], "queued");
    assert_eq!(job["events"][0]["seq"], 1);
    assert!(job["created_at"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn a_batch_is_queued_in_order_with_all_fields() {
    let q = Scratch::new();
    let lines = [
        r#"{"type":"send_mail","payload":{"n":1},"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","lane":"l"}"#,
        r#"{"type":"send_mail","payload":{"n":1},"idempotency_key":null,"waiting_on":"01ARZ3NDEKTSV4RRFFQ69G5FAV","delay":"10s","timeout":"1m","unique":"always","max_attempts":1,"priority":3,"correlation_id":"c"}"#,
        r#"{"type":"send_mail","payload":{"n":2},"run_at":"2100-01-01T00:00:00Z"}"#,
    ];
    std::fs::write(q.path().join("jobs.jsonl"), lines.join("\n")).unwrap();
    let answers = q.json(&["enqueue", "--batch", "jobs.jsonl"]);
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|a| a["outcome"] == "inserted"));
    let listed = q.json(&["list"]);
    assert_eq!(
        listed.iter().map(|j| j["id"].clone()).rev().collect::<Vec<_>>(),
        answers.iter().map(|a| a["id"].clone()).collect::<Vec<_>>()
    );
    assert_eq!(listed[1]["waiting_on"], "01ARZ3NDEKTSV4RRFFQ69G5FAV");
}

#[test]
fn a_prefix_of_an_id_is_enough_and_an_ambiguous_one_is_not() {
    let q = Scratch::new();
    q.enqueue(&["send_mail", "{}", "--no-key", "--id", "01ARZ3NDEKTSV4RRFFQ69G5FAV"]);
    q.enqueue(&["send_mail", "{}", "--no-key", "--id", "01ARZ3NDEKTSV4RRFFQ69G5FAW"]);
    q.enqueue(&["send_mail", "{}", "--no-key", "--id", "67e55044-10b1-426f-9247-bb680e5fe0c8"]);
    assert_eq!(q.json(&["show", "67E5"])[0]["id"], "67e55044-10b1-426f-9247-bb680e5fe0c8");
    assert_eq!(q.json(&["show", "01arz3ndektsv4rrffq69g5fav"])[0]["id"], "01ARZ3NDEKTSV4RRFFQ69G5FAV");
    assert!(q.refused(2, &["show", "01ARZ"]).contains("more than one"));
}

#[test]
fn list_filters_and_says_why_a_job_is_blocked() {
    let q = Scratch::new();
    let first = q.enqueue(&["create_file", r#"{"path":"a","content":"1"}"#]);
    let second = q.enqueue(&["delete_file", r#"{"path":"a"}"#]);
    let waiting = q.enqueue(&["delete_file", r#"{"path":"b"}"#, "--after", &first]);
    let ids = |args: &[&str]| q.json(args).iter().map(|j| j["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(ids(&["list"]), [waiting.clone(), second.clone(), first.clone()]);
    assert_eq!(ids(&["list", "--type", "create_file"]), std::slice::from_ref(&first));
    assert_eq!(ids(&["list", "--limit", "1"]), std::slice::from_ref(&waiting));
    assert_eq!(ids(&["list", "--since", "1h"]).len(), 3);
    assert!(q.run(&["list", "--limit", "2"]).stderr.contains("--limit shows more"));
    assert_eq!(q.run(&["list", "--limit", "3"]).stderr, "", "there are no more");
    assert_eq!(ids(&["list", "--status", "failed"]), Vec::<String>::new());
    let text = q.ok(&["list"]);
    assert_eq!(q.json(&["show", &first])[0].get("blocked"), Some(&Value::Null), "each has each key");
    assert!(text.contains(&format!("behind {first} on path:a")), "{text}");
    assert!(text.contains(&format!("waits on {first}")), "{text}");
    assert!(!text.contains('\u{1b}'), "no colours when it is not a terminal");
}

#[test]
fn cancel_retry_and_prune_go_the_whole_way_round() {
    let q = Scratch::new();
    let parent = q.enqueue(&["create_file", r#"{"path":"a","content":"1"}"#]);
    let child = q.enqueue(&["create_file", r#"{"path":"b","content":"1"}"#, "--after", &parent]);
    let done = q.json(&["cancel", &parent]);
    assert_eq!(done, [json!({"id": parent, "outcome": "cancelled", "cancelled_waiters": [child]})]);
    assert_eq!(q.json(&["cancel", &parent])[0]["outcome"], "already_cancelled");
    assert!(q.refused(4, &["retry", &child]).contains(&parent), "its parent is cancelled");
    assert_eq!(q.json(&["retry", &parent])[0]["status"], "pending");
    assert_eq!(q.json(&["retry", &child])[0]["status"], "pending");
    q.ok(&["cancel", &parent]);
    assert_eq!(q.json(&["prune", "--older-than", "1h"]), [json!({"pruned": 0})]);
    assert_eq!(q.json(&["prune", "--older-than", "0s"])[0]["pruned"], 2);
    assert_eq!(q.count(), 0);
    let types: Vec<String> = q.json(&["events"]).iter().map(|e| e["type"].to_string()).collect();
    assert!(types.is_empty(), "events go with their jobs");
}

#[test]
fn retry_of_several_goes_on_after_a_refusal() {
    let q = Scratch::new();
    let cancelled = q.enqueue(&["create_file", r#"{"path":"a","content":"1"}"#]);
    q.ok(&["cancel", &cancelled]);
    let said = q.run(&["retry", "01ARZ3NDEKTSV4RRFFQ69G5FAV", &cancelled, "--json"]);
    assert_eq!(said.code, 3);
    assert_eq!(json_lines(&said.stdout)[0]["id"], json!(cancelled));
    assert!(said.stderr.contains("01ARZ3NDEKTSV4RRFFQ69G5FAV"));
    assert!(q.ok(&["retry", "--all-failed"]).contains("nothing has failed"));
}

#[test]
fn events_can_be_followed_from_another_process() {
    let q = Scratch::new();
    let mut follower = q.command(&["events", "--follow", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let id = q.enqueue(&["create_file", r#"{"path":"a","content":"1"}"#]);
    q.ok(&["cancel", &id]);
    let seen: Vec<Value> = lines.by_ref().take(2).map(|l| serde_json::from_str(&l.unwrap()).unwrap()).collect();
    assert_eq!(seen.iter().map(|e| e["type"].as_str().unwrap()).collect::<Vec<_>>(), ["queued", "cancelled"]);
    assert!(seen.iter().all(|e| e["job_id"] == json!(id)));
    let after = seen[0]["id"].to_string();
    follower.kill().unwrap();
    follower.wait().unwrap();
    assert_eq!(q.json(&["events", "--after", &after]).len(), 1);
    assert_eq!(q.json(&["events", &id]).len(), 2);
}

#[test]
fn waiting_ends_with_the_job_or_with_the_time() {
    let q = Scratch::new();
    let said = q.run(&["enqueue", "send_mail", "{}", "--wait", "--wait-timeout", "10ms"]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stdout.contains("the wait ran out"), "{}", said.stdout);
    let said = q.run(&["--json", "enqueue", "send_mail", "{}", "--wait", "--wait-timeout", "10ms"]);
    let last: Value = serde_json::from_str(said.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&last["timed_out"], &last["last_error"]), (&json!(true), &Value::Null), "{last}");
    let mut waiter = q
        .command(&["enqueue", "create_file", r#"{"path":"a","content":"1"}"#, "--wait", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The first line comes when the job is queued, the second when it has ended.
    let mut lines = BufReader::new(waiter.stdout.take().unwrap()).lines().map(|l| json_lines(&l.unwrap()).remove(0));
    let queued = lines.next().unwrap();
    q.ok(&["cancel", queued["id"].as_str().unwrap()]);
    let ended = lines.next().unwrap();
    assert_eq!((&ended["id"], &ended["status"]), (&queued["id"], &json!("cancelled")));
    assert_eq!(waiter.wait().unwrap().code(), Some(1));
}

#[test]
fn stats_answers_all_six_questions() {
    let q = Scratch::new();
    q.enqueue(&["create_file", r#"{"path":"a","content":"1"}"#]);
    let text = q.ok(&["stats"]);
    for question in ["outstanding", "failed", "stuck", "How long", "duplicate", "last hour"] {
        assert!(text.contains(question), "{question}: {text}");
    }
    let stats = &q.json(&["stats"])[0];
    assert_eq!(stats["outstanding"][0]["type"], "create_file");
    assert_eq!(stats["outstanding"][0]["jobs"], 1);
    assert_eq!(stats["oldest_pending"][0]["type"], "create_file");
    assert_eq!(stats["oldest_pending"][0]["gate"], "ready");
    for key in ["failed", "stuck", "blocked", "durations", "latencies", "duplicates", "last_hour"] {
        assert!(stats.get(key).is_some(), "{key}");
    }
}

#[test]
fn stats_are_numbers_by_type_in_columns() {
    let q = Scratch::new();
    for n in 0..12 {
        q.enqueue(&["create_file", &format!(r#"{{"path":"{n}","content":""}}"#)]);
    }
    q.enqueue(&["delete_file", r#"{"path":"no-such-file","requireExists":true}"#, "--max-attempts", "1"]);
    q.ok(&["worker", "--drain"]);
    let stats = &q.json(&["stats"])[0];
    for group in [&stats["durations"][0], &stats["latencies"][0]] {
        assert_eq!((&group["type"], &group["jobs"]), (&json!("create_file"), &json!(12)));
        let times = ["p50_ms", "p95_ms", "max_ms"].map(|key| group[key].as_i64().unwrap());
        assert!(times.is_sorted() && times[0] >= 0, "{group}");
    }
    assert_eq!((&stats["failed"][0]["type"], &stats["failed"][0]["jobs"]), (&json!("delete_file"), &json!(1)));
    let text = q.ok(&["stats"]);
    let lines: Vec<&str> = text.lines().collect();
    let hour = lines.iter().position(|line| line.contains("last hour")).unwrap();
    assert_eq!(lines[hour + 1], "  TYPE         JOBS  STATUS", "{text}");
    assert_eq!(lines[hour + 2], "  create_file    12  completed", "{text}");
    assert_eq!(lines[hour + 3], "  delete_file     1  failed", "{text}");
}

#[test]
fn unique_always_also_sees_finished_jobs_by_given_and_by_default_key() {
    let q = Scratch::new();
    for args in [
        vec!["create_file", r#"{"path":"a","content":"1"}"#],
        vec!["send_mail", "{}"],
        vec!["send_mail", "{}", "--key", "k"],
    ] {
        let always = [args.clone(), vec!["--unique", "always"]].concat();
        let first = q.enqueue(&always);
        q.ok(&["cancel", &first]);
        let again = q.json(&[vec!["enqueue"], always].concat());
        assert_eq!((&again[0]["id"], &again[0]["status"]), (&json!(first), &json!("cancelled")), "{args:?}");
        let active = q.json(&[vec!["enqueue"], args].concat());
        assert_eq!(active[0]["outcome"], "inserted", "a finished job is no obstacle otherwise");
    }
}

#[test]
fn what_was_asked_for_is_done_even_if_nobody_reads_the_answer() {
    let q = Scratch::new();
    let ids: Vec<String> = q
        .run_with_input(&["enqueue", "--batch", "-", "--json"], &batch_of(300))
        .stdout
        .lines()
        .map(|line| json_lines(line)[0]["id"].as_str().unwrap().to_owned())
        .collect();
    let args: Vec<&str> = ["cancel"].into_iter().chain(ids.iter().map(String::as_str)).collect();
    let mut child = q.command(&args).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(q.json(&["list", "--status", "cancelled", "--limit", "1000"]).len(), 300);
}

#[test]
fn a_payload_is_shown_exactly_as_it_was_given() {
    let q = Scratch::new();
    let deep = format!("{}{}", "{\"a\":".repeat(127) + "{", "}".repeat(128));
    for payload in [r#"{"n":100000000000000000000001,"b":1.10,"a":-0}"#, &deep] {
        let id = q.enqueue(&["send_mail", payload]);
        assert!(q.ok(&["show", &id, "--json"]).contains(&format!("\"payload\":{payload}")), "{payload}");
        assert!(q.ok(&["show", &id]).contains(payload), "{payload}");
    }
}

#[test]
fn every_spelling_of_an_id_is_found() {
    let q = Scratch::new();
    let id = q.enqueue(&["send_mail", "{}", "--id", "67E5504410B1426F9247BB680E5FE0C8"]);
    assert_eq!(id, "67e55044-10b1-426f-9247-bb680e5fe0c8");
    assert_eq!(q.json(&["show", "67e5504410b1426f9247bb680e5fe0c8"])[0]["id"], json!(id));
    let child = r#"{"type":"t","payload":{},"waiting_on":"67E5504410B1426F9247BB680E5FE0C8"}"#;
    assert_eq!(q.run_with_input(&["enqueue", "--batch", "-"], child).code, 0);
    q.refused(2, &["enqueue", "send_mail", "{}", "--id", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ"]);
}
