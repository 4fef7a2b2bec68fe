//! `jobq doctor`, as scripts and people see it.

use serde_json::Value;

use super::harness::{Scratch, json_lines};

/// The checks by name, and the summary.
fn examined(q: &Scratch, args: &[&str], code: i32) -> (Vec<Value>, Value) {
    let mut all = vec!["doctor", "--json"];
    all.extend(args);
    let said = q.run(&all);
    assert_eq!(said.code, code, "{}{}", said.stdout, said.stderr);
    let mut lines = json_lines(&said.stdout);
    let summary = lines.pop().unwrap();
    (lines, summary)
}

fn verdict<'l>(lines: &'l [Value], check: &str) -> &'l str {
    let line = lines.iter().find(|line| line["check"] == check).unwrap_or_else(|| panic!("{check}: {lines:?}"));
    line["verdict"].as_str().unwrap()
}

#[test]
fn each_check_is_a_line_and_the_last_one_counts_them() {
    let q = Scratch::new();
    q.enqueue(&["create_file", r#"{"path":"a","content":""}"#]);
    let (lines, summary) = examined(&q, &["--deep"], 0);
    for line in &lines {
        let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["advice", "check", "message", "verdict"], "{line}");
        assert_eq!(line["advice"].is_null(), line["verdict"] == "ok", "{line}");
    }
    for check in ["config", "sqlite", "schema", "integrity", "pragmas", "payloads", "waits", "stage"] {
        assert_eq!(verdict(&lines, check), "ok", "{check}");
    }
    assert_eq!(summary["checks"], lines.len());
    assert_eq!(summary["bad"], 0);
    let counted = |word: &str| lines.iter().filter(|line| line["verdict"] == word).count();
    assert_eq!(summary["ok"], counted("ok"));
    assert_eq!(summary["warn"], counted("warn"));
}

#[test]
fn people_see_the_verdict_the_check_and_what_to_do_below() {
    let q = Scratch::new();
    let parent = q.enqueue(&["create_file", r#"{"path":"a","content":"new"}"#]);
    q.enqueue(&["create_file", r#"{"path":"b","content":""}"#, "--after", &parent]);
    std::fs::write(q.path().join("a"), "old").unwrap();
    assert_eq!(q.run(&["worker", "--drain", "-q"]).code, 0);
    let said = q.ok(&["doctor"]);
    let lines: Vec<&str> = said.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("warn  waits ")).unwrap_or_else(|| panic!("{said}"));
    assert!(lines[at].contains("1 job waits on a job that failed"), "{said}");
    assert!(lines[at + 1].trim_start().starts_with('→'), "{said}");
    assert!(lines[at + 1].contains(&format!("jobq cancel {parent}")), "{said}");
    assert!(lines.last().unwrap().ends_with("0 bad"), "warnings alone are exit 0: {said}");
    assert!(!said.contains('\u{1b}'), "no colours where there is no terminal");
    assert!(q.ok(&["doctor", "--help"]).contains("Exit 0 when nothing is bad"));
}

#[test]
fn settings_that_cannot_be_read_are_a_finding_and_the_rest_is_looked_at() {
    let q = Scratch::new();
    std::fs::write(q.path().join(".jobq/config.toml"), "busy_timeout = \"soon\"\n").unwrap();
    let (lines, summary) = examined(&q, &[], 1);
    assert_eq!((verdict(&lines, "config"), verdict(&lines, "integrity")), ("bad", "ok"));
    assert_eq!(summary["bad"], 1);
    assert!(lines.iter().any(|line| line["message"].as_str().unwrap().contains("busy_timeout")));
}

#[test]
fn without_a_database_it_is_exit_3_and_nothing_is_made() {
    let q = Scratch::empty();
    assert!(q.refused(3, &["doctor"]).contains("jobq init"));
    assert_eq!(std::fs::read_dir(q.path()).unwrap().count(), 0);
}

#[test]
fn a_database_that_cannot_be_used_is_a_finding() {
    let q = Scratch::new();
    q.sql().execute("UPDATE jobq_meta SET value = '99' WHERE key = 'schema_version'", []).unwrap();
    assert_eq!(verdict(&examined(&q, &[], 1).0, "schema"), "bad");
    for name in ["jobq.db-wal", "jobq.db-shm"] {
        let _ = std::fs::remove_file(q.path().join(".jobq").join(name));
    }
    std::fs::write(q.db(), "no database, but long enough to be read as one if it were; ".repeat(4)).unwrap();
    let (lines, _) = examined(&q, &[], 1);
    assert_eq!(verdict(&lines, "database"), "bad");
}

#[test]
fn a_write_lock_is_named_by_its_holder() {
    let q = Scratch::new();
    let conn = q.sql();
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (lines, _) = examined(&q, &[], 0);
    assert_eq!(verdict(&lines, "write_lock"), "warn");
    let own = format!("process {}", std::process::id());
    assert!(lines.iter().any(|line| line["message"].as_str().unwrap().contains(&own)), "{own}: {lines:?}");
}

/// Nobody can queue or run anything there, so it is not well.
#[test]
fn a_queue_that_may_not_be_written_is_bad() {
    use std::os::unix::fs::PermissionsExt as _;
    let q = Scratch::new();
    let (here, state) = (q.path(), q.path().join(".jobq"));
    for (path, mode) in [(here, 0o755), (&state, 0o555), (&q.db(), 0o444)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut command = q.command(&["doctor", "--json"]);
    if rustix::process::geteuid().is_root() {
        // Somebody whom permissions apply to.
        std::os::unix::process::CommandExt::uid(&mut command, 65_534);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            crate::skipped::skipped(
                "a database that may not be written",
                &format!("no other user may run jobq: {error}"),
            );
            return;
        }
    };
    let lines = json_lines(&String::from_utf8(output.stdout).unwrap());
    assert_eq!((verdict(&lines, "database"), output.status.code()), ("bad", Some(1)), "{lines:?}");
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o755)).unwrap();
}
