//! What a job may not touch: other queues, and what its user executes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::harness::Scratch;

const OWNED: &str = "[handlers.x]\ncommand = [\"sh\", \"-c\", \"touch owned\"]\n";

/// A queue with another one in `sub`.
fn nested() -> Scratch {
    let q = Scratch::new();
    q.ok(&["init", "sub"]);
    q
}

fn create(path: &str, content: &str) -> String {
    json!({"path": path, "content": content, "overwrite": true}).to_string()
}

/// A program that handles jobs of a type.
fn handler(q: &Scratch, job_type: &str, script: &str) {
    let folder = q.path().join(".jobq/handlers");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(job_type), format!("#!/bin/sh\nset -eu\n{script}\n")).unwrap();
    fs::set_permissions(folder.join(job_type), fs::Permissions::from_mode(0o755)).unwrap();
}

fn last_error(q: &Scratch, id: &str) -> String {
    let job = &q.json(&["show", id])[0];
    assert_eq!(job["status"], "failed", "{job}");
    job["last_error"].as_str().unwrap().to_owned()
}

#[test]
fn no_job_writes_into_another_queue() {
    let q = nested();
    let config = fs::read(q.path().join("sub/.jobq/config.toml")).unwrap();
    for path in ["sub/.jobq/config.toml", "sub/.JobQ/handlers/x", "sub/.jo\u{200b}bq/x"] {
        let error = q.refused(2, &["enqueue", "create_file", &create(path, OWNED)]);
        assert!(error.contains(".jobq") && error.contains("belongs to jobq"), "{error}");
    }
    q.refused(2, &["enqueue", "delete_file", r#"{"path":"sub/.jobq/jobq.db"}"#]);

    // By a handler's outcome and its follow-up.
    let put = r#"printf x > "$JOBQ_STAGE/x"; echo '{"put":"sub/.jobq/config.toml","from":"x"}' >&$JOBQ_FD"#;
    let job = r#"{"type":"delete_file","payload":{"path":"sub/.jobq/jobq.db"}}"#;
    handler(&q, "put", put);
    handler(&q, "follow", &format!("echo '{{\"enqueue\":{job}}}' >&$JOBQ_FD"));
    let jobs = ["put", "follow"].map(|kind| q.enqueue(&[kind, "{}", "--max-attempts", "1"]));
    // By plain SQL.
    let insert = "INSERT INTO jobs (id, type, payload) VALUES ('plain', 'create_file', ?1)";
    q.sql().execute(insert, [create("sub/.jobq/config.toml", OWNED)]).unwrap();
    q.ok(&["worker", "--drain"]);
    for id in jobs.iter().map(String::as_str).chain(["plain"]) {
        assert!(last_error(&q, id).contains(".jobq"), "{id}");
    }
    assert_eq!(fs::read(q.path().join("sub/.jobq/config.toml")).unwrap(), config);
    assert!(q.path().join("sub/.jobq/jobq.db").exists());
}

/// The database is elsewhere, and the root above it.
#[test]
fn no_job_writes_into_its_own_queue_below_the_root() {
    for (db, own) in [
        ("sub/.jobq/x.db", ["sub/.jobq/config.toml", "sub/.jobq/x.db", "sub/.jobq/x.db.d/handlers/x"]),
        ("sub/x.db", ["sub/.jobq/x.db.d/handlers/x", "sub/x.db-wal", "sub/X.DB"]),
    ] {
        let q = Scratch::empty();
        fs::create_dir_all(q.path().join("sub/.jobq")).unwrap();
        let with = |args: &[&str]| q.run(&[&["--db", db, "--root", "."], args].concat());
        assert_eq!(with(&["init"]).code, 0);
        for path in own {
            let said = with(&["enqueue", "create_file", &create(path, "x")]);
            let refused_at_once = said.code == 2 && said.stderr.contains("belongs to jobq");
            assert!(refused_at_once || path.to_lowercase().starts_with("sub/x.db"), "{path}: {}", said.stderr);
        }
        assert_eq!(with(&["worker", "--drain"]).code, 0);
        let jobs = with(&["list", "--json"]).stdout;
        assert!(!jobs.contains("\"completed\""), "{jobs}");
        assert_eq!(with(&["doctor"]).code, 0);
    }
}
