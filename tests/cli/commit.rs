//! `jobq commit`: what scripts rely on.

use serde_json::{Value, json};

use super::harness::{Said, Scratch, json_lines};

const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

fn commit(q: &Scratch, document: &Value) -> Said {
    q.run_with_input(&["commit", "--json"], &document.to_string())
}

#[track_caller]
fn accepted(q: &Scratch, document: &Value) -> Value {
    let said = commit(q, document);
    assert_eq!(said.code, 0, "{}", said.stderr);
    json_lines(&said.stdout).remove(0)
}

/// Refused with this code, on stderr, and neither files nor jobs have changed.
#[track_caller]
fn refused(q: &Scratch, code: i32, document: &str) -> String {
    let picture = || (q.count(), std::fs::read_dir(q.path()).unwrap().count());
    let before = picture();
    let said = q.run_with_input(&["commit"], document);
    assert_eq!((said.code, said.stdout.as_str()), (code, ""), "{document}: {}", said.stderr);
    assert_eq!(picture(), before, "{document}");
    said.stderr
}

#[test]
fn the_answer_has_the_documented_shape() {
    let q = Scratch::new();
    let document = json!({
        "id": ID,
        "writes": [
            {"path": "data/a.json", "json": {"b": 1, "a": [null]}, "expect": "absent"},
            {"path": "b.txt", "text": "bé\n"},
            {"path": "c.bin", "base64": "AP8="},
            {"path": "null.json", "json": null},
        ],
        "jobs": [{"type": "send_mail", "payload": {"to": "ada"}, "priority": 3}],
    });
    let answer = accepted(&q, &document);
    let job = answer["jobs"][0]["id"].as_str().unwrap();
    let expected = json!({"id": ID, "status": "completed", "applied": true,
                          "jobs": [{"id": job, "type": "send_mail", "outcome": "inserted"}]});
    assert_eq!(answer, expected);
    let read = |path: &str| std::fs::read(q.path().join(path)).unwrap();
    assert_eq!(read("data/a.json"), b"{\n  \"a\": [\n    null\n  ],\n  \"b\": 1\n}\n");
    assert_eq!((read("b.txt"), read("c.bin"), read("null.json")), ("bé\n".into(), vec![0, 255], b"null\n".to_vec()));
    let shown = &q.json(&["show", job])[0];
    assert_eq!((&shown["priority"], &shown["correlation_id"]), (&json!(3), &json!(ID)));
    assert_eq!(accepted(&q, &document), expected, "the same again, whatever is expected");
    let human = q.run_with_input(&["commit", "-"], &document.to_string());
    assert!(human.stdout.contains(ID) && human.stdout.contains("accepted before"), "{}", human.stdout);
    assert_eq!(q.json(&["list", "--type", "write_files"]).len(), 1);
}

#[test]
fn json_keeps_its_order_and_its_digits() {
    let q = Scratch::new();
    let text = r#"{"writes":[{"path":"a.json","json":{"z":1.50,"a":123456789012345678901234567890,"s":"A\/"}}]}"#;
    std::fs::write(q.path().join("document.json"), text).unwrap();
    q.ok(&["commit", "document.json"]);
    let written = std::fs::read_to_string(q.path().join("a.json")).unwrap();
    assert_eq!(written, "{\n  \"z\": 1.50,\n  \"a\": 123456789012345678901234567890,\n  \"s\": \"A\\/\"\n}\n");
}

/// As deep as a payload may be; deeper text must not take the stack with it.
#[test]
fn json_that_is_nested_too_deeply_is_refused() {
    let q = Scratch::new();
    let document =
        |depth: usize| format!(r#"{{"writes":[{{"path":"a","json":{}1{}}}]}}"#, "[".repeat(depth), "]".repeat(depth));
    for depth in [129, 30_000] {
        assert!(refused(&q, 2, &document(depth)).contains("nested deeper than 128"));
    }
    assert_eq!(q.run_with_input(&["commit"], &document(128)).code, 0);
}

/// Folders are kept open until they are synced, but no more than the process may have.
#[test]
fn many_folders_need_few_open_files() {
    let q = Scratch::new();
    let writes: Vec<Value> = (0..100).map(|n| json!({"path": format!("{n}/deep/file"), "text": "x"})).collect();
    std::fs::write(q.path().join("document.json"), json!({ "writes": writes }).to_string()).unwrap();
    let script = "ulimit -n 48 && exec \"$0\" commit document.json --json";
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", script, env!("CARGO_BIN_EXE_jobq")]).current_dir(q.path()).env_remove("JOBQ_DB");
    let answer = String::from_utf8(limited.output().unwrap().stdout).unwrap();
    assert_eq!(json_lines(&answer)[0]["applied"], true, "{answer}");
}

#[test]
fn mistakes_are_named_and_change_nothing() {
    let q = Scratch::new();
    for (document, named) in [
        ("", "--help"),
        ("[]", "an object with"),
        ("{}", "empty"),
        (r#"{"write":[]}"#, "write"),
        (r#"{"writes":["a"]}"#, "path"),
        (r#"{"writes":[{"path":"a"}]}"#, "writes[0]"),
        (r#"{"writes":[{"path":"a","text":"","json":1}]}"#, "exactly one"),
        (r#"{"writes":[{"path":"a","base64":"?"}]}"#, "base64"),
        (r#"{"writes":[{"path":"a","text":""},{"path":"../b","text":""}]}"#, "writes[1]"),
        (r#"{"writes":[{"path":"a","text":"","expect":"gone"}]}"#, "absent"),
        (r#"{"writes":[{"path":"a","text":""}],"removes":[{"path":"./a"}]}"#, "removes[0]"),
        (r#"{"id":"7","writes":[{"path":"a","text":""}]}"#, "ULID"),
        (r#"{"writes":[{"path":"a","text":""}],"jobs":[{"type":"t"}]}"#, "jobs[0]"),
        (r#"{"writes":[{"path":"a","text":""}],"jobs":[{"type":"create_file","payload":{}}]}"#, "job 1"),
    ] {
        let error = refused(&q, 2, document);
        assert!(error.contains(named), "{document}: {error}");
    }
    assert!(q.refused(3, &["commit", "no-such-file"]).contains("no-such-file"));
    assert!(!q.path().join("a").exists());
}

#[test]
fn a_stale_expectation_and_a_busy_path_are_refused() {
    let q = Scratch::new();
    std::fs::write(q.path().join("a"), "somebody's").unwrap();
    let stale = json!({"writes": [{"path": "a", "text": "mine", "expect": "absent"}],
                       "jobs": [{"type": "t", "payload": {}}]});
    let error = refused(&q, 4, &stale.to_string());
    assert!(error.contains("a is there") && error.contains("nothing is queued"), "{error}");
    let hash = "0".repeat(64);
    let error = refused(&q, 4, &json!({"removes": [{"path": "a", "expect": hash}]}).to_string());
    assert!(error.contains(&hash), "{error}");
    let holder = q.enqueue(&["delete_file", r#"{"path":"a"}"#]);
    let error = refused(&q, 4, &json!({"removes": [{"path": "a"}]}).to_string());
    assert!(error.contains(&holder), "{error}");
    let other = json!({"id": holder, "writes": [{"path": "b", "text": ""}]});
    assert!(refused(&q, 4, &other.to_string()).contains("other content"));
}

/// As if the committer had died between acceptance and apply.
fn left_behind(q: &Scratch) {
    accepted(q, &json!({"id": ID, "writes": [{"path": "a", "text": "new"}], "jobs": [{"type": "t", "payload": {}}]}));
    std::fs::remove_file(q.path().join("a")).unwrap();
    // Where the process that made it had staged it.
    let stage: String = q.sql().query_row("SELECT stage FROM effects", [], |row| row.get(0)).unwrap();
    let staged = q.path().join(".jobq/stage").join(stage);
    std::fs::create_dir_all(staged.parent().unwrap()).unwrap();
    std::fs::write(staged, "new").unwrap();
    q.sql()
        .execute_batch(&format!(
            "DROP TRIGGER jobs_transition;
             UPDATE jobs SET status = 'claimed', completed_at = NULL WHERE id = '{ID}';
             UPDATE jobs SET waiting_on = '{ID}' WHERE type = 't';
             UPDATE effects SET state = 'planned', applied_in = NULL;
             INSERT INTO job_holds (key, seq, job_id, active) SELECT 'path:a', seq, id, 1 FROM jobs WHERE id = '{ID}';"
        ))
        .unwrap();
}

#[test]
fn whoever_changes_something_rolls_forward_and_whoever_looks_does_not() {
    let q = Scratch::new();
    left_behind(&q);
    for look in [&["list"][..], &["show", ID], &["events"], &["stats"]] {
        q.ok(look);
        assert!(!q.path().join("a").exists(), "{look:?}");
    }
    q.enqueue(&["t", r#"{"n":1}"#]);
    assert_eq!(std::fs::read_to_string(q.path().join("a")).unwrap(), "new");
    assert_eq!(std::fs::read_dir(q.path().join(".jobq/stage")).unwrap().count(), 0);
    assert_eq!(q.json(&["show", ID])[0]["status"], "completed");
}

#[test]
fn a_conflict_in_the_crash_window_is_shown_and_resolved_by_the_operator() {
    for resolve in [&["retry", ID, "--accept-disk"][..], &["cancel", ID]] {
        let q = Scratch::new();
        left_behind(&q);
        std::fs::write(q.path().join("a"), "an editor's").unwrap();
        let said = q.run(&["enqueue", "t", r#"{"n":1}"#]);
        assert!(said.code == 0 && said.stderr.contains(ID), "the opener says so and goes on: {}", said.stderr);
        assert_eq!(std::fs::read_to_string(q.path().join("a")).unwrap(), "an editor's");
        let waits = q.json(&["list", "--type", "t"]).pop().unwrap();
        assert!(waits["blocked"].as_str().unwrap().contains(ID), "{waits}");
        let blocked = &q.json(&["stats"])[0]["blocked"][0];
        assert_eq!((&blocked["id"], &blocked["jobs"]), (&json!(ID), &json!(1)));
        assert!(q.ok(&["stats"]).contains(&format!("jobq retry {ID}")));
        assert!(q.refused(4, &["retry", ID]).contains("expected nothing there"));
        q.ok(&["prune", "--older-than", "0s", "--failed"]);
        q.ok(resolve);
        let (content, status) = if resolve[0] == "retry" { ("new", "pending") } else { ("an editor's", "cancelled") };
        assert_eq!(std::fs::read_to_string(q.path().join("a")).unwrap(), content);
        assert_eq!(q.json(&["list", "--type", "t"]).pop().unwrap()["status"], status);
        assert!(q.json(&["stats"])[0]["blocked"].as_array().unwrap().is_empty());
    }
}

#[test]
fn what_was_accepted_and_kept_back_is_applied_as_soon_as_somebody_asks() {
    let q = Scratch::new();
    let queue = jobq::QueueOptions::at(q.db()).watched(|act, _| match act {
        jobq::effects::Act::Create => Err(rustix::io::Errno::NOSPC.into()),
        _ => Ok(()),
    });
    let queue = queue.open().unwrap();
    let accepted = queue.commit(|draft| draft.write("a.txt", "a")).unwrap();
    assert!(!accepted.applied);
    drop(queue);
    // Put off by a day: whoever does not ask for it waits as long.
    q.sql().execute("UPDATE jobs SET run_at = run_at + 86400000, backoff_max = backoff_max + 86400000", []).unwrap();
    q.enqueue(&["send_mail", "{}"]);
    assert!(!q.path().join("a.txt").exists());
    let answer = q.json(&["reclaim"]).remove(0);
    assert_eq!(answer, json!({"pending": [], "failed": [], "cancelled": [], "unowned": [], "applied": 1}));
    assert_eq!(std::fs::read_to_string(q.path().join("a.txt")).unwrap(), "a");
    assert_eq!(q.json(&["show", &accepted.id])[0]["status"], "completed");
    assert!(q.ok(&["reclaim"]).contains("nothing to take back"));
}

#[test]
fn jobs_of_batches_wait_on_what_a_short_id_names() {
    let q = Scratch::new();
    let parent = q.enqueue(&["send_mail", "{}"]);
    let short = &parent[..24];
    let job = |waiting_on: &str, n: u8| json!({"type": "t", "payload": {"n": n}, "waiting_on": waiting_on});
    let said = q.run_with_input(&["enqueue", "--batch", "-", "--json"], &job(short, 2).to_string());
    assert_eq!(said.code, 0, "{}", said.stderr);
    let id = json_lines(&said.stdout)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(q.json(&["show", &id])[0]["waiting_on"], parent);
    // What comes with the job is not there yet.
    let first = json!({"type": "t", "payload": {"n": 3}, "id": ID});
    let said = q.run_with_input(&["enqueue", "--batch", "-"], &format!("{first}\n{}", job(ID, 4)));
    assert_eq!(said.code, 0, "{}", said.stderr);

    let by_option = |parent: &str| q.run(&["enqueue", "t", "{}", "--after", parent]);
    for (parent, code) in [("01ARZX", 3), ("01", 2)] {
        let expected = by_option(parent);
        assert_eq!(expected.code, code, "{}", expected.stderr);
        let message = expected.stderr.trim().trim_start_matches("error: ");
        let said = q.run_with_input(&["enqueue", "--batch", "-"], &job(parent, 6).to_string());
        assert!(said.code == code && said.stderr.contains(message), "{}", said.stderr);
    }
}
