//! Jobs whose worker was killed: everybody who looks is told at once, nobody who looks
//! changes anything, and a cancel is one.

use std::process::{Child, Stdio};

use serde_json::json;

use super::harness::Scratch;
use super::pty::Terminal;
use super::throttle::claim;
use super::tmux::{Tmux, wait_until};
use super::top::handler;

const GONE: &str = "its worker is gone: `jobq reclaim`, or any worker, takes it back";

/// A worker in the middle of a job that does not end.
fn running(q: &Scratch, more: &[&str]) -> (Child, String) {
    handler(q, "slow", "touch $JOBQ_ROOT/started; sleep 1000");
    let id = q.enqueue(&[&["slow"], more].concat());
    let worker = q.command(&["worker"]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the job", || q.path().join("started").exists());
    (worker, id)
}

/// Its lock is free when its programs have been ended, too.
fn kill(q: &Scratch, mut worker: Child) {
    worker.kill().unwrap();
    worker.wait().unwrap();
    wait_until("the doctor", || q.run(&["doctor"]).stdout.contains("has 1 job and is dead"));
}

fn status(q: &Scratch, id: &str) -> String {
    q.json(&["show", id])[0]["status"].as_str().unwrap().to_owned()
}

#[test]
fn whoever_looks_at_a_job_is_told_that_its_worker_is_gone_and_changes_nothing() {
    let q = Scratch::new();
    let (worker, id) = running(&q, &[]);
    for args in [&["list"][..], &["show", &id], &["stats"]] {
        assert!(!q.ok(args).contains("gone"), "{args:?}: it lives");
    }
    assert!(q.ok(&["stats"]).contains("Is anything stuck? No."));
    kill(&q, worker);

    let sql = q.sql();
    let version = || sql.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).unwrap();
    let locks = || std::fs::read_dir(q.path().join(".jobq/owners")).unwrap().count();
    let before = (version(), locks());
    for args in [&["list"][..], &["show", &id]] {
        assert!(q.ok(args).contains(GONE), "{args:?}: {}", q.ok(args));
    }
    let stats = q.ok(&["stats"]);
    assert!(
        stats.contains("which is gone") && stats.contains("`jobq reclaim`, or any worker, takes it back"),
        "{stats}"
    );
    let stuck = &q.json(&["stats"])[0]["stuck"];
    assert_eq!((stuck.as_array().unwrap().len(), &stuck[0]["id"]), (1, &json!(id)));
    let lines = Terminal::of(&q, &["list"]).screen();
    assert!(lines[1].contains("`jobq reclaim`"), "the command is not cut off: {lines:?}");
    assert_eq!((version(), locks(), status(&q, &id).as_str()), (before.0, before.1, "claimed"));

    assert_eq!(q.json(&["reclaim"])[0]["pending"], json!([id]), "and that is so");
    assert!(!q.ok(&["list"]).contains("gone") && q.ok(&["stats"]).contains("Is anything stuck? No."));
}

#[test]
fn top_tells_it_with_what_to_do_however_little_room_there_is() {
    let q = Scratch::new();
    let (worker, id) = running(&q, &[]);
    kill(&q, worker);
    let Some(tmux) = Tmux::start(&q, 120, 24) else { return };
    tmux.line("jobq top --interval 20ms");
    tmux.wait_for(GONE);
    for columns in [80, 60, 40] {
        tmux.resize(columns, 24);
        tmux.wait_until("the command", |screen| {
            screen.contains("`jobq reclaim`") && screen.lines().all(|line| line.chars().count() <= usize::from(columns))
        });
    }
    tmux.resize(100, 24);
    tmux.keys(&["Enter"]);
    tmux.wait_for_all(&[GONE, "payload"]);
    tmux.keys(&["c", "y"]);
    tmux.wait_for(&format!("{id}: cancelled"));
}

/// Its attempts are used up, so that whoever only took it back would leave it failed.
#[test]
fn a_job_whose_worker_is_gone_is_cancelled_for_certain() {
    let q = Scratch::new();
    let (worker, id) = running(&q, &["--max-attempts", "1"]);
    let waiter = q.enqueue(&["send_mail", "{}", "--after", &id]);
    kill(&q, worker);
    let done = q.json(&["cancel", &id]);
    assert_eq!(done, [json!({"id": id, "outcome": "cancelled", "cancelled_waiters": [waiter]})]);
    assert_eq!((status(&q, &id), status(&q, &waiter)), ("cancelled".to_owned(), "cancelled".to_owned()));
    let events: Vec<String> = q.json(&["events", &id]).iter().map(|e| e["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(events, ["queued", "claimed", "worker_lost", "reclaimed", "cancelled"]);
    assert_eq!(q.json(&["cancel", &id])[0]["outcome"], "already_cancelled");
}

/// It lives and holds its lock, but has said nothing for seven minutes.
#[test]
fn how_long_a_worker_has_been_silent_is_told_with_what_to_do() {
    let q = Scratch::new();
    q.enqueue(&["create_file", r#"{"path":"a","content":"1"}"#]);
    let _claim = claim(&q);
    q.sql().execute("UPDATE jobs SET locked_at = locked_at - 430000, heartbeat_at = NULL", []).unwrap();
    let shown = Terminal::of(&q, &["stats"]).screen().join(" ");
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("last heard of 7m ago; see `jobq doctor`"), "{shown}");
    let at = q.json(&["stats"])[0]["stuck"][0]["last_sign_of_life"].as_str().unwrap().to_owned();
    assert!(q.ok(&["stats"]).contains(&format!("last heard of {at}; see `jobq doctor`")), "programs are told when");
    let Some(tmux) = Tmux::start(&q, 120, 24) else { return };
    tmux.line("jobq top --interval 20ms");
    tmux.wait_for("last heard of 7m ago: see `jobq doctor`");
    tmux.resize(60, 24);
    tmux.wait_until("the command", |screen| screen.contains("> create_file") && screen.contains("`jobq doctor`"));
}
