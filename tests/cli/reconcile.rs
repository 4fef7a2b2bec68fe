//! `jobq reconcile` and `jobq blame`: what scripts rely on.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use serde_json::{Value, json};

use super::harness::{Scratch, json_lines};

/// A queue whose jobs have made `a` and `b/c` and removed `gone`.
fn with_files() -> Scratch {
    let q = Scratch::new();
    for (path, content) in [("a", "A"), ("b/c", "C"), ("gone", "G")] {
        q.enqueue(&["create_file", &json!({"path": path, "content": content}).to_string()]);
    }
    q.enqueue(&["delete_file", r#"{"path":"gone"}"#]);
    q.ok(&["worker", "--drain"]);
    q
}

/// Exit code 1, and these lines.
fn findings(q: &Scratch, args: &[&str]) -> Vec<Value> {
    let mut all = vec!["reconcile", "--json"];
    all.extend(args);
    let said = q.run(&all);
    assert_eq!(said.code, 1, "{}", said.stderr);
    json_lines(&said.stdout)
}

#[test]
fn a_disk_that_agrees_is_exit_0_and_one_line() {
    let q = with_files();
    for args in [&["reconcile"][..], &["reconcile", "--deep"]] {
        let sums = json!({"checked": 3, "ok": 3, "findings": 0, "superseded": 1, "in_flight": 0});
        assert_eq!(q.json(args), [sums]);
    }
    assert!(q.ok(&["reconcile"]).contains("3 agree"));
    let empty = Scratch::new();
    assert_eq!(empty.json(&["reconcile"])[0]["checked"], 0);
}

#[test]
fn findings_have_the_documented_shape_and_exit_1() {
    let q = with_files();
    std::fs::write(q.path().join("a"), "other").unwrap();
    std::fs::remove_file(q.path().join("b/c")).unwrap();
    std::fs::write(q.path().join("gone"), "again").unwrap();
    let lines = findings(&q, &[]);
    let job = q.json(&["blame", "a"])[0]["job_id"].clone();
    let hash = |text: &str| jobq::sha256_hex(text.as_bytes());
    assert_eq!(
        lines[0],
        json!({"path": "a", "finding": "changed", "job_id": job, "expected": hash("A"), "actual": hash("other")})
    );
    assert_eq!(
        (&lines[1]["path"], &lines[1]["finding"], &lines[1]["actual"]),
        (&json!("b/c"), &json!("missing"), &json!(null))
    );
    assert_eq!((&lines[2]["finding"], &lines[2]["expected"]), (&json!("present"), &json!(null)));
    assert_eq!(lines[3], json!({"checked": 3, "ok": 0, "findings": 3, "superseded": 1, "in_flight": 0}));
    let said = q.run(&["reconcile"]);
    assert!(said.stdout.contains("changed") && said.stdout.contains("b/c"), "{}", said.stdout);
    assert!(!said.stderr.contains("drift"), "said once: {}", said.stderr);
    let said = q.run(&["reconcile", "-v"]);
    for (key, value) in [("finding", "missing"), ("path", "b/c"), ("job_id", "")] {
        assert!(said.stderr.contains(&format!("{key}=\"{value}")), "logged for who wants logs: {}", said.stderr);
    }
    assert_eq!(findings(&q, &["--path", "b/*"]).len(), 2);
    assert_eq!(q.json(&["reconcile", "--path", "*/nothing"])[0]["checked"], 0);
    assert_eq!(findings(&q, &["--path", "**/c"])[0]["path"], "b/c");
    assert_eq!(findings(&q, &["--type", "delete_file"])[0]["path"], "gone");
    assert!(q.refused(2, &["reconcile", "--path", "[a"]).contains("path"));
    assert_eq!(std::fs::read_to_string(q.path().join("a")).unwrap(), "other", "it reports and never fixes");
}

/// A row that no jobq process has looked at yet has no holds of its own.
#[test]
fn a_job_that_plain_sql_inserted_is_work_in_flight_too() {
    let q = with_files();
    std::fs::write(q.path().join("a"), "other").unwrap();
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let payload = json!({"path": "a", "content": "next", "overwrite": true}).to_string();
    q.sql().execute("INSERT INTO jobs (id, type, payload) VALUES (?1, 'create_file', ?2)", [id, &payload]).unwrap();
    let lines = q.json(&["reconcile"]);
    assert_eq!((&lines[0]["path"], &lines[0]["in_flight"]), (&json!("a"), &json!(id)));
    assert_eq!((&lines[1]["findings"], &lines[1]["in_flight"]), (&json!(0), &json!(1)));
    assert_eq!(std::fs::read_to_string(q.path().join("a")).unwrap(), "other", "it reports and never fixes");
    assert_eq!(q.json(&["show", id])[0]["status"], "pending");
}

#[test]
fn repairs_are_queued_only_when_asked_for_and_said() {
    let q = with_files();
    std::fs::write(q.path().join("a"), "other").unwrap();
    std::fs::create_dir(q.path().join("gone")).unwrap();
    let lines = findings(&q, &["--requeue", "--yes"]);
    assert_eq!((lines.len(), &lines[4]["findings"]), (5, &json!(2)), "the sums come last");
    assert_eq!((&lines[0]["actual"], &lines[1]["actual"]), (&json!(jobq::sha256_hex(b"other")), &json!("is a folder")));
    let repairs = &lines[2..4];
    assert_eq!((&repairs[0]["path"], &repairs[1]["path"]), (&json!("a"), &json!("gone")));
    assert!(repairs[0]["job_id"].is_string() && repairs[1]["reason"].is_string(), "{repairs:?}");
    q.ok(&["worker", "--drain"]);
    assert_eq!(std::fs::read_to_string(q.path().join("a")).unwrap(), "A");
    let left = findings(&q, &[]);
    assert_eq!((left.len(), &left[0]["path"]), (2, &json!("gone")), "a folder is not removed");
    assert!(q.refused(2, &["reconcile", "--yes"]).contains("--requeue"));
}

/// As somebody who may not read everything.
#[test]
fn what_may_not_be_read_is_unreadable() {
    let q = with_files();
    if !rustix::process::geteuid().is_root() {
        crate::skipped::skipped("files that may not be read", "it takes root to make them");
        return;
    }
    let (nobody, a) = (65_534, q.path().join("a"));
    for path in walk(q.path()) {
        std::os::unix::fs::chown(path, Some(nobody), Some(nobody)).unwrap();
    }
    std::fs::write(&a, "changed, and then closed").unwrap();
    std::os::unix::fs::chown(&a, Some(0), Some(0)).unwrap();
    std::fs::set_permissions(&a, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    let mut command = q.command(&["reconcile", "--json"]);
    let output = match command.uid(nobody).gid(nobody).output() {
        Ok(output) => output,
        Err(error) => {
            crate::skipped::skipped("files that may not be read", &format!("no other user may run jobq: {error}"));
            return;
        }
    };
    let lines = json_lines(&String::from_utf8(output.stdout).unwrap());
    assert_eq!((&lines[0]["path"], &lines[0]["finding"]), (&json!("a"), &json!("unreadable")), "{lines:?}");
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(walk(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn a_watch_prints_what_drifts_and_heals_until_it_is_told_to_end() {
    let q = with_files();
    let mut child = q.command(&["reconcile", "--watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    std::fs::remove_file(q.path().join("a")).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let drifted = next();
    assert_eq!(
        (&drifted["event"], &drifted["path"], &drifted["finding"]),
        (&json!("drifted"), &json!("a"), &json!("missing"))
    );
    let aside = q.path().join(".jobq/aside");
    std::fs::write(&aside, "A").unwrap();
    std::fs::rename(aside, q.path().join("a")).unwrap();
    assert_eq!(next(), json!({"event": "healed", "path": "a"}));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn blame_names_the_jobs_newest_first() {
    let q = with_files();
    let history = q.json(&["blame", "./gone"]);
    let ops: Vec<_> = history.iter().map(|effect| effect["op"].as_str().unwrap()).collect();
    assert_eq!(ops, ["remove", "put"]);
    assert_eq!((&history[1]["sha256"], &history[1]["type"]), (&json!(jobq::sha256_hex(b"G")), &json!("create_file")));
    assert_eq!(history[0]["before"], history[1]["sha256"]);
    assert!(q.ok(&["blame", "gone"]).contains("create_file"));
    assert!(q.refused(3, &["blame", "nowhere"]).contains("nowhere"));
    assert!(q.refused(2, &["blame", "../x"]).contains(".."));
    // An extraction says what it was asked.
    let prompt = json!({"prompt": "why", "targetPath": "a", "requirementId": "REQ-7"}).to_string();
    let job = q.enqueue(&["claude_extraction", &prompt]);
    q.sql()
        .execute(
            "INSERT INTO effects (path, job_id, number, op, state, precondition, sha256, size, applied_in)
             VALUES ('a', ?1, 0, 'put', 'applied', 'absent', 'x', 1, 1000000)",
            [&job],
        )
        .unwrap();
    let newest = &q.json(&["blame", "a"])[0];
    assert_eq!(
        (&newest["requirement_id"], &newest["prompt_hash"]),
        (&json!("REQ-7"), &json!(jobq::sha256_hex(b"why")))
    );
}

/// A shell completes names from where one stands, and a name is copied from anywhere.
#[test]
fn blame_takes_a_path_as_the_shell_gives_it() {
    let q = with_files();
    std::fs::create_dir(q.path().join("d")).unwrap();
    let blamed = |folder: &str, path: &str| {
        let output = q.command(&["blame", "--json", path]).current_dir(q.path().join(folder)).output().unwrap();
        assert!(output.status.success(), "{path} in {folder}: {}", String::from_utf8_lossy(&output.stderr));
        json_lines(&String::from_utf8(output.stdout).unwrap())[0]["path"].as_str().unwrap().to_owned()
    };
    let full = q.path().join("b/c").to_str().unwrap().to_owned();
    for (folder, path) in [("b", "c"), ("b", "./c"), ("b", "b/c"), ("d", "../b/c"), ("d", &full)] {
        assert_eq!(blamed(folder, path), "b/c", "{path} in {folder}");
    }
    assert_eq!(blamed("b", "a"), "a", "what jobs call so comes first");
    // What is gone is asked for as often, with its folder.
    std::fs::remove_dir_all(q.path().join("b")).unwrap();
    assert_eq!(blamed("", &full), "b/c");
    assert!(q.refused(2, &["blame", "/etc/passwd"]).contains("absolute"));
}

#[test]
fn a_worker_looks_at_the_disk_when_it_starts_unless_told_not_to() {
    let q = with_files();
    std::fs::remove_file(q.path().join("a")).unwrap();
    let started = |args: &[&str]| {
        let mut child = q.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let reconciled = if args.contains(&"--no-reconcile") {
            // Ready, and with nothing to look at.
            lines.find(|line| line.contains("worker_started")).unwrap()
        } else {
            lines.find(|line| line.contains("\"reconciled\"")).unwrap()
        };
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let rest: Vec<String> = lines.collect();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        (reconciled, rest.join("\n"), String::from_utf8(output.stderr).unwrap())
    };
    let (line, _, log) = started(&["worker", "--json"]);
    let sums: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&sums["checked"], &sums["findings"]), (&json!(3), &json!(1)));
    assert!(log.contains("drift") && log.contains("path=\"a\""), "{log}");
    let (_, rest, log) = started(&["worker", "--json", "--no-reconcile"]);
    assert!(!rest.contains("reconciled") && !log.contains("drift"), "{rest}{log}");
    std::fs::write(q.path().join(".jobq/config.toml"), "reconcile_at_start = false\n").unwrap();
    let said = q.run(&["worker", "--drain", "--json"]);
    assert!(!said.stdout.contains("reconciled") && !said.stderr.contains("drift"), "{}", said.stdout);
    assert!(!q.path().join("a").exists(), "it reports and never fixes");
}
