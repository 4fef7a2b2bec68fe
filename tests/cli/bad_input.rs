//! Bad input gets an error that names the field, exit 2, and no row.

use super::harness::{Said, Scratch};

#[test]
fn a_bad_request_is_refused_with_its_field_and_leaves_no_row() {
    let q = Scratch::new();
    let deep = format!("{}{}", "{\"a\":".repeat(128) + "{", "}".repeat(129));
    let long_name = format!("{{\"path\":\"{}\",\"content\":\"\"}}", "x".repeat(300));
    let cases: &[(&str, &[&str])] = &[
        ("payload", &["send_mail", "not json"]),
        ("payload", &["send_mail", "[1]"]),
        ("payload", &["send_mail", "\"text\""]),
        ("payload", &["send_mail", "null"]),
        ("payload", &["send_mail", "{\"a\":1} trailing"]),
        ("payload", &["send_mail", &deep]),
        ("mode", &["create_file", r#"{"path":"a","content":"","mode":"0644"}"#]),
        ("path", &["create_file", r#"{"content":""}"#]),
        ("content", &["create_file", r#"{"path":"a"}"#]),
        ("path", &["create_file", r#"{"path":"../a","content":""}"#]),
        ("path", &["create_file", r#"{"path":"/etc/passwd","content":""}"#]),
        ("path", &["create_file", r#"{"path":".jobq/jobq.db","content":""}"#]),
        ("path", &["create_file", r#"{"path":"a\u0000b","content":""}"#]),
        ("path", &["create_file", &long_name]),
        ("path", &["delete_file", r#"{"path":"a/"}"#]),
        ("targetPath", &["claude_extraction", r#"{"prompt":"p","targetPath":"../x","requirementId":"r"}"#]),
        (
            "promptHash",
            &["claude_extraction", r#"{"prompt":"p","targetPath":"x","requirementId":"r","promptHash":"00"}"#],
        ),
        ("resourceType", &["sync_aws", r#"{"resourceType":"bucket","resourceId":"b","config":null}"#]),
        ("config", &["sync_aws", r#"{"resourceType":"AWS::S3::Bucket","resourceId":"b"}"#]),
        ("id", &["send_mail", "{}", "--id", "job-1"]),
        ("--delay", &["send_mail", "{}", "--delay", "soon"]),
        ("--timeout", &["send_mail", "{}", "--timeout", "5 parsecs"]),
        ("timeout", &["send_mail", "{}", "--timeout", "0s"]),
        ("run_at", &["send_mail", "{}", "--run-at", "tomorrow"]),
        ("--priority", &["send_mail", "{}", "--priority", "2147483648"]),
        ("--priority", &["send_mail", "{}", "--priority", "-2147483649"]),
        ("max_attempts", &["send_mail", "{}", "--max-attempts", "0"]),
        ("idempotency_key", &["send_mail", "{}", "--key", ""]),
        ("lane", &["send_mail", "{}", "--lane", ""]),
        ("type", &["../evil", "{}"]),
        ("type", &["", "{}"]),
        ("--unique", &["send_mail", "{}", "--unique", "sometimes"]),
    ];
    for (field, args) in cases {
        let mut all = vec!["enqueue"];
        all.extend(*args);
        let error = q.refused(2, &all);
        assert!(error.contains(field), "{args:?} does not name {field}: {error}");
    }
    assert_eq!(q.count(), 0);
}

/// A schema would check one of the two values, and a program could use the other.
#[test]
fn a_key_that_an_object_has_twice_is_refused_wherever_a_payload_comes_in() {
    let q = Scratch::new();
    let refused = |args: &[&str], input: &str| {
        let said = q.run_with_input(args, input);
        assert_eq!((said.code, q.count()), (2, 0), "{args:?} {input}: {}", said.stderr);
        assert!(said.stderr.contains("has the key \"to\" twice"), "{args:?} {input}: {}", said.stderr);
        said.stderr
    };
    let escaped = r#"{"a":[{"b":{"to":1,"\u0074o":1}}]}"#;
    for payload in [r#"{"to":"a","to":"b"}"#, r#"{"a":[1,{"to":1},{"to":1,"x":{},"to":2}]}"#, escaped] {
        refused(&["enqueue", "send_mail", payload], "");
        refused(&["enqueue", "send_mail", "-"], payload);
        let job = format!(r#"{{"type":"send_mail","payload":{payload}}}"#);
        refused(&["enqueue", "--batch", "-"], &job);
        refused(&["commit"], &format!(r#"{{"writes":[{{"path":"a.txt","text":""}}],"jobs":[{job}]}}"#));
    }
    let place = refused(&["enqueue", "send_mail", "{\n\"to\":1,\n\"to\":2}"], "");
    assert!(place.contains("line 3 column 4"), "{place}");
    // A type that is known here, in a part of the payload that takes any value.
    let config = r#"{"resourceType":"AWS::S3::Bucket","resourceId":"b","config":{"to":1,"to":2}}"#;
    refused(&["enqueue", "sync_aws", config], "");
    assert_eq!(q.run(&["enqueue", "send_mail", r#"{"to":1,"To":1,"a":[{"to":1},{"to":1}]}"#]).code, 0);
}

#[test]
fn a_payload_beyond_16_mib_is_refused_and_one_just_below_is_taken() {
    let q = Scratch::new();
    let frame = "{\"a\":\"\"}".len();
    let big = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - frame));
    let said = q.run_with_input(&["enqueue", "send_mail", "-"], &big(16 * 1024 * 1024 + 1));
    assert_eq!((said.code, q.count()), (2, 0), "{}", said.stderr);
    assert!(said.stderr.contains("payload") && said.stderr.contains("16 MiB"), "{}", said.stderr);
    assert_eq!(q.run_with_input(&["enqueue", "send_mail", "-"], &big(16 * 1024 * 1024)).code, 0);
}

/// Editors of some systems begin every file with one.
#[test]
fn a_byte_order_mark_at_the_beginning_is_no_part_of_the_input() {
    let q = Scratch::new();
    let (mark, payload) = ('\u{feff}', r#"{"path":"a","content":"A"}"#);
    let line = format!(r#"{{"type":"send_mail","payload":{payload}}}"#);
    let commit = r#"{"writes":[{"path":"b.json","json":1}]}"#;
    std::fs::write(q.path().join("payload.json"), format!("{mark}{payload}")).unwrap();
    q.ok(&["enqueue", "create_file", "@payload.json"]);
    for (args, input) in
        [(&["enqueue", "create_file", "-"][..], payload), (&["enqueue", "--batch", "-"], &line), (&["commit"], commit)]
    {
        let said = q.run_with_input(args, &format!("{mark}{input}"));
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
    }
    let said = q.run_with_input(&["enqueue", "--batch", "-"], &format!("{line}\n{mark}{line}"));
    assert_eq!(said.code, 2, "nowhere else: {}", said.stderr);
}

#[test]
fn a_batch_is_all_or_nothing_and_names_the_bad_line() {
    let q = Scratch::new();
    let good = r#"{"type":"send_mail","payload":{"to":"a"}}"#;
    for (bad, field) in [
        (r#"{"type":"send_mail"}"#, "payload"),
        (r#"{"type":"send_mail","payload":{},"prioritty":1}"#, "prioritty"),
        (r#"{"type":"create_file","payload":{"path":"../x","content":""}}"#, "path"),
        (r#"{"type":"send_mail","payload":{},"delay":"soon"}"#, "delay"),
        (r#"{"type":"send_mail","payload":{},"waiting_on":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}"#, "waiting_on"),
        ("{oops", "line"),
    ] {
        // The blank line counts: people look for the line in their editor.
        let said = q.run_with_input(&["enqueue", "--batch", "-"], &format!("{good}\n\n{bad}\n{good}\n"));
        assert!(matches!(said.code, 2 | 3), "{bad}: {}", said.stderr);
        assert!(said.stderr.contains("line 3") && said.stderr.contains(field), "{bad}: {}", said.stderr);
        assert_eq!(q.count(), 0, "{bad}");
    }
}

#[test]
fn unknown_jobs_are_exit_3_and_wrong_states_exit_4() {
    let q = Scratch::new();
    let pending = q.enqueue(&["send_mail", "{}"]);
    for command in ["show", "retry", "cancel", "events"] {
        let error = q.refused(3, &[command, "01ARZ3NDEKTSV4RRFFQ69G5FAV"]);
        assert!(error.contains("01ARZ3NDEKTSV4RRFFQ69G5FAV"), "{command}: {error}");
    }
    q.refused(3, &["enqueue", "send_mail", "{}", "--after", "01ARZ3NDEKTSV4RRFFQ69G5FAV"]);
    q.refused(4, &["retry", &pending]);
    q.sql()
        .execute_batch(
            "UPDATE jobs SET payload_hash = 'x', gate = 'ready';
             UPDATE jobs SET status = 'claimed', gate = NULL, locked_by = 'w', token = 1, attempts = 1",
        )
        .unwrap();
    let error = q.refused(4, &["retry", &pending]);
    assert!(error.contains("claimed"), "{error}");
}

#[test]
fn control_characters_never_reach_the_terminal() {
    let q = Scratch::new();
    q.enqueue(&["send_mail", "{\"to\":\"\\u001b[31m\"}", "--correlation-id", "plain"]);
    q.sql().execute("UPDATE jobs SET last_error = char(27) || '[31mred'", []).unwrap();
    let id = q.json(&["list"])[0]["id"].as_str().unwrap().to_owned();
    for args in [vec!["list"], vec!["show", &id], vec!["stats"], vec!["show", "\u{1b}[31m"]] {
        let said = q.run(&args);
        assert!(!said.stdout.contains('\u{1b}') && !said.stderr.contains('\u{1b}'), "{args:?}");
    }
}

/// What moves a cursor, turns the direction of text, or ends a line for some readers.
const UNSAFE: &str =
    "\u{7f}\u{80}\u{85}\u{9b}\u{9f}\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2028}\u{2029}\u{2066}\u{2069}";

#[track_caller]
fn assert_safe(said: &Said) {
    let text = format!("{}{}", said.stdout, said.stderr);
    assert!(!text.contains(|c| c == '\u{1b}' || UNSAFE.contains(c)), "{text:?}");
}

#[test]
fn json_has_unsafe_characters_escaped_and_says_the_same() {
    let q = Scratch::new();
    let payload = serde_json::json!({ "path": format!("{UNSAFE}é日"), "content": "", format!("k{UNSAFE}"): 1 });
    let known = serde_json::json!({ "path": format!("{UNSAFE}é日.txt"), "content": "" });
    let id = q.enqueue(&["send_mail", &payload.to_string()]);
    q.enqueue(&["create_file", &known.to_string()]);
    q.sql().execute("UPDATE jobs SET last_error = ?1", [UNSAFE]).unwrap();
    for args in [&["show", &id, "--json"][..], &["list", "--json"], &["worker", "--drain"]] {
        let said = q.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        assert_safe(&said);
    }
    let shown = &q.json(&["show", &id])[0];
    assert_eq!((&shown["payload"], shown["last_error"].as_str()), (&payload, Some(UNSAFE)));
    assert!(q.ok(&["list", "--json"]).contains("é日"), "what is safe stays readable");
}

/// A row of plain SQL may have any id until it is admitted.
/// A format of Rust takes no width above 65,535.
#[test]
fn an_endless_type_or_id_of_plain_sql_leaves_the_tables_readable() {
    let q = Scratch::new();
    let long = "t".repeat(70_000);
    q.sql().execute("INSERT INTO jobs (id, type, payload) VALUES ('a', ?1, '{}')", [&long]).unwrap();
    q.sql().execute("INSERT INTO jobs (id, type, payload) VALUES (?1, 'send_mail', '{}')", [&long]).unwrap();
    for args in [["list"], ["stats"]] {
        let shown = q.ok(&args);
        assert!(shown.contains("tttt…") && shown.lines().all(|line| line.chars().count() < 1_000), "{args:?}");
    }
}

#[test]
fn ids_are_printed_without_unsafe_characters() {
    let q = Scratch::new();
    let insert = |id: &str, key: &str| {
        let sql = "INSERT INTO jobs (id, type, payload, idempotency_key) VALUES (?1, 'send_mail', '{}', ?2)";
        assert_eq!(q.sql().execute(sql, [id, key]), Ok(1));
    };
    let [first, second] = ["1", "2"].map(|number| format!("{number}{UNSAFE}\u{1b}[31m"));
    insert(&first, "k");
    insert(&second, "");
    let waits = "UPDATE jobs SET waiting_on = ?1, gate = 'waiting', payload_hash = '' WHERE id = ?2";
    assert_eq!(q.sql().execute(waits, [&first, &second]), Ok(1));
    for args in [
        &["enqueue", "send_mail", "{}", "--key", "k"][..],
        &["list"],
        &["cancel", &first],
        &["retry", &first],
        &["retry", &second],
        &["cancel", &first, "--json"],
    ] {
        let said = q.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        assert_safe(&said);
    }
    for command in ["cancel", "retry", "show", "events"] {
        let said = q.run(&[command, &format!("nobody{UNSAFE}")]);
        assert_eq!(said.code, 3, "{}", said.stderr);
        assert_safe(&said);
    }
}

#[test]
fn a_mistyped_argument_is_repeated_without_unsafe_characters() {
    let q = Scratch::new();
    let slip = format!("x{UNSAFE}\u{1b}[31m\nerror: y");
    let option = format!("--{slip}");
    for args in [&[slip.as_str()][..], &["list", &slip], &["list", &option], &["list", "--status", &slip]] {
        let said = q.run(args);
        assert_eq!(said.code, 2, "{args:?}: {}", said.stderr);
        assert_safe(&said);
        assert!(said.stderr.contains('x') && !said.stderr.contains("\nerror: y"), "{}", said.stderr);
    }
}

#[test]
fn one_of_a_few_words_that_is_mistyped_is_told_all_of_them_and_the_nearest() {
    let q = Scratch::new();
    let error = q.refused(2, &["list", "--status", "pendng"]);
    assert!(error.contains("pending, claimed, completed, failed, cancelled"), "{error}");
    assert!(error.contains("a similar value exists: 'pending'"), "{error}");
}
