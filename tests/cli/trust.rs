//! A queue that is found by walking up must be the user's own.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use super::harness::{Said, Scratch, said};
use crate::skipped::skipped;

pub const ALICE: u32 = 2001;
pub const BOB: u32 = 2002;
const TRAP: &str = "00000000-0000-4000-8000-000000000001";

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub fn give_to(path: &Path, user: u32) {
    chown(path, Some(user), Some(user)).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give_to(&entry.unwrap().path(), user);
        }
    }
}

pub fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped(what, "only root can act as several users");
    }
    root
}

/// A queue in a folder that every user can reach, and the program beside it.
pub fn shared() -> Scratch {
    let q = Scratch::new();
    set_mode(q.path(), 0o755);
    fs::copy(env!("CARGO_BIN_EXE_jobq"), q.path().join("jobq")).unwrap();
    fs::create_dir(q.path().join("below")).unwrap();
    set_mode(&q.path().join("below"), 0o777);
    q
}

/// Runs the program as another user, with these further groups, in the folder below the queue.
pub fn run_as(user: u32, groups: Option<&str>, q: &Scratch, args: &[&str]) -> Said {
    let user = user.to_string();
    let groups = groups.map_or("--clear-groups".to_owned(), |groups| format!("--groups={groups}"));
    let output = Command::new("setpriv")
        .args(["--reuid", &user, "--regid", &user, &groups, "../jobq"])
        .args(args)
        .current_dir(q.path().join("below"))
        .env_remove("JOBQ_DB")
        .stdin(Stdio::null())
        .output();
    said(output.unwrap())
}

#[test]
fn a_new_state_folder_is_open_to_its_owner_alone() {
    let q = Scratch::empty();
    q.ok(&["init", "deep/project"]);
    q.ok(&["--db", "app/app.db", "init"]);
    for folder in ["deep/project/.jobq", "app/.jobq"] {
        assert_eq!(mode(&q.path().join(folder)), 0o700, "{folder}");
    }
    assert_eq!(mode(&q.path().join("deep")) & 0o500, 0o500);
    assert_ne!(mode(&q.path().join("deep")), 0o700, "the project's own folders have the usual mode");
}

#[test]
fn init_closes_a_state_folder_that_is_open_to_others_and_doctor_names_it() {
    let q = Scratch::new();
    let state = q.path().join(".jobq");
    assert!(q.ok(&["doctor"]).contains("only its owner can enter"));
    set_mode(&state, 0o755);
    let said = q.ok(&["doctor"]);
    assert!(said.contains("others can enter") && said.contains("chmod 700"), "{said}");
    q.ok(&["--root", ".", "init"]);
    assert_eq!(mode(&state), 0o755, "a queue that is named may be shared");
    q.ok(&["init"]);
    assert_eq!(mode(&state), 0o700);
}

#[test]
fn a_state_folder_that_others_can_write_is_refused_unless_it_is_named() {
    let q = Scratch::new();
    let state = q.path().join(".jobq");
    for others in [0o770, 0o702] {
        set_mode(&state, others);
        let error = q.refused(5, &["enqueue", "send_mail", "{}"]);
        assert!(error.contains("others can write") && error.contains("chmod go-w"), "{error}");
        q.ok(&["--root", ".", "list"]);
        q.ok(&["--db", ".jobq/jobq.db", "list"]);
        assert!(q.command(&["list"]).env("JOBQ_DB", q.db()).status().unwrap().success());
    }
    q.ok(&["init"]);
    q.ok(&["list"]);
}

#[test]
fn what_others_can_write_in_an_open_state_folder_is_refused() {
    let q = Scratch::new();
    let state = q.path().join(".jobq");
    fs::create_dir(state.join("handlers")).unwrap();
    fs::write(state.join("handlers/x"), "#!/bin/sh\n").unwrap();
    for name in ["jobq.db", "config.toml", "handlers", "handlers/x"] {
        set_mode(&state, 0o755);
        let before = mode(&state.join(name));
        set_mode(&state.join(name), 0o777);
        assert!(q.refused(5, &["list"]).contains(name), "{name}");
        set_mode(&state, 0o700);
        q.ok(&["list"]);
        set_mode(&state.join(name), before);
    }
}

#[test]
fn a_state_folder_or_database_that_is_a_link_is_refused() {
    let (q, other) = (Scratch::empty(), Scratch::new());
    symlink(other.path().join(".jobq"), q.path().join(".jobq")).unwrap();
    let (error, target) = (q.refused(5, &["list"]), other.path().canonicalize().unwrap());
    assert!(error.contains("is a link") && error.contains(&format!("`--root {}`", target.display())), "{error}");
    let q = Scratch::new();
    fs::remove_file(q.db()).unwrap();
    symlink(other.db(), q.db()).unwrap();
    assert!(q.refused(5, &["list"]).contains("is a link"));
}

/// jobq removes lock files of dead processes by their names alone.
#[test]
fn a_link_in_a_state_folder_makes_nobody_remove_or_write_files_elsewhere() {
    for name in ["owners", "stage", "wake"] {
        let (q, other) = (Scratch::new(), tempfile::tempdir().unwrap());
        for file in ["Cargo.lock", "host-1-AAAAAAAAAA.lock"] {
            fs::write(other.path().join(file), "kept").unwrap();
        }
        let _ = fs::remove_dir_all(q.path().join(".jobq").join(name));
        let _ = fs::remove_file(q.path().join(".jobq").join(name));
        symlink(other.path(), q.path().join(".jobq").join(name)).unwrap();
        for args in [vec!["init"], vec!["enqueue", "send_mail", "{}"], vec!["list"]] {
            assert!(q.refused(5, &args).contains("is a link"), "{name}: {args:?}");
        }
        for args in [vec!["enqueue", "send_mail", "{}"], vec!["reclaim"], vec!["worker", "--drain"]] {
            q.run(&[&["--root", "."][..], &args].concat());
        }
        let found = fs::read_dir(other.path()).unwrap().count();
        assert_eq!(found, 2, "{name}");
    }
}

#[test]
fn a_handler_that_is_a_link_is_checked_where_it_leads() {
    let (q, tools) = (Scratch::new(), tempfile::tempdir().unwrap());
    let tool = tools.path().join("tool");
    fs::write(&tool, "#!/bin/sh\n").unwrap();
    fs::create_dir(q.path().join(".jobq/handlers")).unwrap();
    symlink(&tool, q.path().join(".jobq/handlers/tool")).unwrap();
    set_mode(&tool, 0o755);
    q.ok(&["list"]);
    set_mode(&tool, 0o777);
    assert!(q.refused(5, &["list"]).contains("others can write"));
}

/// Advice would lead into a folder that its owner completes meanwhile.
#[test]
fn no_advice_names_a_folder_of_somebody_else() {
    if !is_root("whose folder it is") {
        return;
    }
    let q = shared();
    fs::remove_file(q.db()).unwrap();
    give_to(&q.path().join(".jobq"), BOB);
    let said = run_as(ALICE, None, &q, &["list"]);
    assert_eq!(said.code, 5, "{}", said.stderr);
    set_mode(&q.path().join(".jobq"), 0o755);
    let said = run_as(ALICE, None, &q, &["list"]);
    assert!(said.code == 5 && said.stderr.contains("belongs to user 2002"), "{}", said.stderr);
    assert!(!said.stderr.contains("jobq init"), "{}", said.stderr);
}

#[test]
fn what_belongs_to_another_user_is_refused_and_root_is_told_how_to_act_as_them() {
    if !is_root("queues of other users") {
        return;
    }
    let q = Scratch::new();
    let state = q.path().join(".jobq");
    fs::create_dir(state.join("handlers")).unwrap();
    fs::write(state.join("handlers/x"), "#!/bin/sh\n").unwrap();
    for name in ["", "jobq.db", "config.toml", "handlers", "handlers/x"] {
        chown(state.join(name), Some(ALICE), None).unwrap();
        for args in [vec!["list"], vec!["worker", "--drain"], vec!["doctor"], vec!["config"], vec!["init"]] {
            let error = q.refused(5, &args);
            assert!(error.contains(name) && error.contains("belongs to user 2001"), "{error}");
            assert!(error.contains("sudo -u '#2001' jobq"), "{error}");
        }
        q.ok(&["--root", ".", "list"]);
        chown(state.join(name), Some(0), None).unwrap();
        q.ok(&["list"]);
    }
}

#[test]
fn a_user_trusts_their_own_queue_and_no_other_users() {
    if !is_root("queues of other users") {
        return;
    }
    let q = shared();
    give_to(&q.path().join(".jobq"), ALICE);
    assert_eq!(run_as(ALICE, None, &q, &["enqueue", "send_mail", "{}"]).code, 0);
    for state_mode in [0o700, 0o755] {
        set_mode(&q.path().join(".jobq"), state_mode);
        let said = run_as(BOB, None, &q, &["enqueue", "send_mail", "{}"]);
        assert_eq!(said.code, 5, "{}", said.stderr);
        assert!(said.stderr.contains("belongs to user 2001") && !said.stderr.contains("sudo"), "{}", said.stderr);
    }
    assert_eq!(q.count(), 1);
}

#[test]
fn a_user_without_rights_cannot_lock_the_files_of_a_queue() {
    if !is_root("queues of other users") {
        return;
    }
    let q = shared();
    for file in ["jobq.db", "jobq.db-shm", "owners"] {
        let path = q.path().join(".jobq").join(file);
        let tried = Command::new("setpriv")
            .args(["--reuid", "2002", "--regid", "2002", "--clear-groups", "cat"])
            .arg(&path)
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&tried.stderr).contains("Permission denied"), "{file}");
    }
}

#[test]
fn a_recorded_root_elsewhere_counts_only_if_the_queue_is_named() {
    let (q, home) = (Scratch::new(), tempfile::tempdir().unwrap());
    let record = "INSERT INTO jobq_meta (key, value) VALUES ('root', ?1)";
    q.sql().execute(record, [home.path().to_str().unwrap()]).unwrap();
    for args in [vec!["init"], vec!["list"], vec!["enqueue", "send_mail", "{}"], vec!["worker", "--drain"]] {
        let error = q.refused(5, &args);
        assert!(error.contains(home.path().to_str().unwrap()) && error.contains("--db"), "{error}");
    }
    q.ok(&["--root", home.path().to_str().unwrap(), "--db", ".jobq/jobq.db", "list"]);
    let create = r#"{"path":"a.txt","content":"hi"}"#;
    q.ok(&["--db", ".jobq/jobq.db", "enqueue", "create_file", create]);
    q.ok(&["--db", ".jobq/jobq.db", "worker", "--drain"]);
    assert!(home.path().join("a.txt").exists());
}

/// A decided row names a file in somebody's home; its content is staged. Whoever comes by would write it.
#[test]
fn a_prepared_folder_makes_no_passer_by_write_anything() {
    let (q, home) = (Scratch::new(), tempfile::tempdir().unwrap());
    q.ok(&["enqueue", "create_file", r#"{"path":".bashrc","content":"echo owned"}"#, "--id", TRAP]);
    fs::create_dir_all(q.path().join(".jobq/stage/me")).unwrap();
    fs::write(q.path().join(format!(".jobq/stage/me/{TRAP}.1.0")), "echo owned").unwrap();
    let hash = jobq::sha256_hex(b"echo owned");
    let prepare = format!(
        "UPDATE jobs SET status = 'claimed', gate = NULL, token = 1, attempts = 1, locked_by = 'me', locked_at = 1
          WHERE id = '{TRAP}';
         UPDATE jobs SET outcome = '{{\"result\":null,\"follow_ups\":[]}}' WHERE id = '{TRAP}';
         UPDATE jobs SET locked_by = NULL WHERE id = '{TRAP}';
         INSERT INTO effects (path, job_id, number, op, precondition, sha256, size, stage)
              VALUES ('.bashrc', '{TRAP}', 0, 'put', 'absent', '{hash}', 10, 'me/{TRAP}.1.0');"
    );
    q.sql().execute_batch(&prepare).unwrap();
    let owned = |folder: &Path| folder.join(".bashrc").exists();

    let record = "INSERT INTO jobq_meta (key, value) VALUES ('root', ?1)";
    q.sql().execute(record, [home.path().to_str().unwrap()]).unwrap();
    fs::create_dir(q.path().join("below")).unwrap();
    let passer_by = q.command(&["enqueue", "send_mail", "{}"]).current_dir(q.path().join("below")).output().unwrap();
    assert_eq!(passer_by.status.code(), Some(5));
    assert!(!owned(home.path()) && !owned(q.path()));

    // Also where the queue is trusted: the row has no hash over its plan.
    q.ok(&["--db", ".jobq/jobq.db", "enqueue", "send_mail", "{}"]);
    assert!(!owned(home.path()));
    assert!(
        q.json(&["--db", ".jobq/jobq.db", "show", TRAP])[0]["last_error"].as_str().unwrap().contains("plan_damaged")
    );
}

#[test]
fn a_worker_names_the_folder_it_runs_programs_from() {
    let q = Scratch::new();
    let handlers = q.path().canonicalize().unwrap().join(".jobq/handlers");
    fs::create_dir(&handlers).unwrap();
    let started: serde_json::Value =
        serde_json::from_str(q.ok(&["worker", "--drain"]).lines().next().unwrap()).unwrap();
    assert_eq!(Path::new(started["programs"].as_str().unwrap()).canonicalize().unwrap(), handlers);
}
