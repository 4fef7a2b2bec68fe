//! What a job may not touch: other queues, and what its user executes.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

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

/// A queue whose handlers run programs of the root.
fn with_tools(more: &str) -> Scratch {
    let q = Scratch::new();
    for folder in ["tools", "lib/v2", ".git/hooks", "ci"] {
        fs::create_dir_all(q.path().join(folder)).unwrap();
    }
    for file in ["tools/resize.py", "lib/v2/link.py", "lib/handler.sh", ".git/config", "ci/claude.json"] {
        fs::write(q.path().join(file), "the user's").unwrap();
        fs::set_permissions(q.path().join(file), fs::Permissions::from_mode(0o755)).unwrap();
    }
    symlink("../lib/v2/link.py", q.path().join("tools/link.py")).unwrap();
    let absolute = q.path().canonicalize().unwrap().join("lib/new/absolute.py").display().to_string();
    let config = format!(
        "{more}\n[handlers.resize]\ncommand = [\"python3\", \"./tools/resize.py\", \"--conf=tools/resize.toml\"]\n\
         [handlers.linked]\ncommand = [\"tools/link.py\", \"{absolute}\"]\n\
         [handlers.claude_extraction]\nfolder = \"ci\"\nargs = [\"--settings\", \"claude.json\", \"--mcp-config=mcp.json\"]\n"
    );
    fs::write(q.path().join(".jobq/config.toml"), config).unwrap();
    fs::create_dir(q.path().join(".jobq/handlers")).unwrap();
    symlink("../../lib/handler.sh", q.path().join(".jobq/handlers/by_link")).unwrap();
    q
}

/// What handlers' commands name, and where git and Claude Code find commands.
const RUN: [&str; 14] = [
    "tools/resize.py",
    "TOOLS/Resize.py",
    "tools/resize.toml",
    "lib/v2/link.py",
    "lib/new/absolute.py",
    "lib/handler.sh",
    "ci/claude.json",
    "ci/mcp.json",
    ".git/config",
    "vendor/.GIT/hooks/post-checkout",
    ".git",
    ".claude/settings.json",
    "sub/.Claude/agents/x.md",
    "sub/.mcp.json",
];

/// The line of an error that would allow what was refused.
fn advice(error: &str) -> String {
    let (_, line) = error.split_once("put `").unwrap_or_else(|| panic!("no advice: {error}"));
    let (line, rest) = line.split_once("` under `[files]` in config.toml").unwrap();
    assert!(rest.contains("FilePolicy::allow"), "{error}");
    format!("[files]\n{line}\n")
}

#[test]
fn no_job_changes_what_its_user_executes() {
    let q = with_tools("");
    for path in RUN {
        let extraction = json!({"prompt": "p", "targetPath": path, "requirementId": "r"}).to_string();
        for (kind, payload) in [
            ("create_file", create(path, "theirs")),
            ("delete_file", json!({"path": path}).to_string()),
            ("claude_extraction", extraction),
        ] {
            let error = q.refused(2, &["enqueue", kind, &payload]);
            assert!(error.contains(path) && error.contains(&format!("put `allow = [\"{path}\"]` under")), "{error}");
        }
        for document in [json!({"writes": [{"path": path, "text": "theirs"}]}), json!({"removes": [{"path": path}]})] {
            let said = q.run_with_input(&["commit"], &document.to_string());
            assert_eq!(said.code, 2, "{path}: {}", said.stderr);
            assert!(said.stderr.contains("put `allow = "), "{}", said.stderr);
        }
    }
    assert_eq!(q.count(), 0);
    // Neighbours are files like any other.
    for path in ["tools/other.py", ".gitignore", ".github/x.yml", "claude/.mcp.jsonl", "claude.json"] {
        q.ok(&["enqueue", "create_file", &create(path, "x")]);
    }
    q.ok(&["worker", "--drain"]);
    assert_eq!(fs::read_to_string(q.path().join("claude/.mcp.jsonl")).unwrap(), "x");
}

#[test]
fn no_outcome_follow_up_or_plain_row_changes_what_the_user_executes() {
    let q = with_tools("");
    let put = |path: &str| format!(r#"printf x > "$JOBQ_STAGE/x"; echo '{{"put":"{path}","from":"x"}}' >&$JOBQ_FD"#);
    handler(&q, "put_tool", &put("tools/resize.py"));
    handler(&q, "put_link", &put("lib/handler.sh"));
    handler(&q, "remove", r#"echo '{"remove":".git/config"}' >&$JOBQ_FD"#);
    let job = r#"{"type":"delete_file","payload":{"path":".git/config"}}"#;
    handler(&q, "follow", &format!("echo '{{\"enqueue\":{job}}}' >&$JOBQ_FD"));
    let jobs = ["put_tool", "put_link", "remove", "follow"].map(|kind| q.enqueue(&[kind, "--max-attempts", "1"]));
    let insert = "INSERT INTO jobs (id, type, payload) VALUES ('plain', 'create_file', ?1)";
    q.sql().execute(insert, [create(".claude/settings.json", "theirs")]).unwrap();
    q.ok(&["worker", "--drain"]);
    for id in jobs.iter().map(String::as_str).chain(["plain"]) {
        assert!(last_error(&q, id).contains("put `allow = "), "{id}");
    }
    for kept in ["tools/resize.py", "lib/handler.sh", ".git/config"] {
        assert_eq!(fs::read_to_string(q.path().join(kept)).unwrap(), "the user's", "{kept}");
    }
    assert!(!q.path().join(".claude").exists());
}

#[test]
fn the_line_that_an_error_prints_allows_what_was_refused() {
    let q = Scratch::new();
    for path in ["sub/.mcp.json", ".claude/a [1]*.json"] {
        let error = q.refused(2, &["enqueue", "create_file", &create(path, "x")]);
        fs::write(q.path().join(".jobq/config.toml"), advice(&error)).unwrap();
        q.ok(&["enqueue", "create_file", &create(path, "x")]);
    }
    q.ok(&["worker", "--drain"]);
    for path in ["sub/.mcp.json", ".claude/a [1]*.json"] {
        assert_eq!(
            fs::read_to_string(q.path().join(path)).unwrap(),
            "x",
            "the second line keeps what the first allows"
        );
    }
    q.refused(2, &["enqueue", "create_file", &create(".claude/a 1x.json", "x")]);
}

#[test]
fn no_job_changes_settings_or_schemas_that_are_linked_from_the_state_folder() {
    let q = Scratch::new();
    fs::rename(q.path().join(".jobq/config.toml"), q.path().join("jobq.toml")).unwrap();
    symlink("../jobq.toml", q.path().join(".jobq/config.toml")).unwrap();
    fs::create_dir(q.path().join("tools")).unwrap();
    symlink("../tools", q.path().join(".jobq/handlers")).unwrap();
    handler(&q, "x", "true");
    for path in ["jobq.toml", "tools/x", "tools/x.schema.json"] {
        assert!(q.refused(2, &["enqueue", "create_file", &create(path, OWNED)]).contains("put `allow = ["), "{path}");
    }
}

#[test]
fn writable_limits_what_all_jobs_change() {
    let q = with_tools("[files]\nwritable = [\"data/**\", \"out/*.json\", \".git/**\"]\n");
    for path in ["data/a", "data/deep/.hidden/a.bin", "out/a.json"] {
        q.ok(&["enqueue", "create_file", &create(path, "x")]);
    }
    for path in ["a", "data", "out/deep/a.json", "out/a.txt", "other/data/a"] {
        let error = q.refused(2, &["enqueue", "create_file", &create(path, "x")]);
        assert!(error.contains("`writable` under `[files]`") && error.contains("data/**"), "{error}");
        let commit = json!({"writes": [{"path": path, "text": "x"}]}).to_string();
        assert_eq!(q.run_with_input(&["commit"], &commit).code, 2);
    }
    // What is writable still has to be allowed, and what is allowed still has to be writable.
    assert!(q.refused(2, &["enqueue", "create_file", &create(".git/config", "x")]).contains("put `allow = ["));
    q.ok(&["worker", "--drain"]);
    assert_eq!(fs::read_to_string(q.path().join("data/deep/.hidden/a.bin")).unwrap(), "x");
    fs::write(q.path().join(".jobq/config.toml"), "[files]\nwritable = []\nallow = [\"**\"]\n").unwrap();
    q.refused(2, &["enqueue", "create_file", &create("data/a", "x")]);
}

#[test]
fn a_list_of_files_that_makes_no_sense_is_an_error_of_the_settings() {
    let q = Scratch::new();
    let config = q.path().join(".jobq/config.toml");
    for (text, word) in [
        ("[files]\nallow = \"a\"\n", "files.allow"),
        ("[files]\nwritable = [\"a/[\"]\n", "a/["),
        ("[files]\nallow = [\"a**\"]\n", "a**"),
        ("[files]\nalow = [\"a\"]\n", "allow"),
    ] {
        fs::write(&config, text).unwrap();
        let error = q.refused(2, &["list"]);
        assert!(error.contains("config.toml:2") && error.contains(word), "{error}");
    }
    fs::write(&config, "[files]\nallow = [\".mcp.json\"]\n").unwrap();
    assert!(q.ok(&["config"]).lines().any(|line| line.starts_with("files.allow") && line.contains(".mcp.json")));
}

#[test]
fn a_repair_that_is_not_allowed_leaves_the_others_alone() {
    let q = Scratch::new();
    let config = q.path().join(".jobq/config.toml");
    fs::write(&config, "[files]\nallow = [\".mcp.json\"]\n").unwrap();
    for path in [".mcp.json", "a.txt"] {
        q.ok(&["enqueue", "create_file", &create(path, "x")]);
    }
    q.ok(&["worker", "--drain"]);
    for path in [".mcp.json", "a.txt"] {
        fs::remove_file(q.path().join(path)).unwrap();
    }
    fs::write(&config, "").unwrap();
    let said = q.run(&["reconcile", "--requeue"]);
    assert!(said.stdout.contains("put `allow = ["), "{}{}", said.stdout, said.stderr);
    q.ok(&["worker", "--drain"]);
    assert!(q.path().join("a.txt").exists() && !q.path().join(".mcp.json").exists());
}
