//! Something moves while people wait, and leaves nothing behind; nothing does where
//! nobody looks.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::harness::{Scratch, batch_of};
use super::pty::{Terminal, screen};
use super::tmux::{Tmux, wait_until};
use super::top::handler;

/// A command that reads what this test hands it.
fn batch(q: &Scratch, more: &[&str]) -> Command {
    let mut command = q.command(&[&["enqueue", "--batch", "-"], more].concat());
    command.stdin(Stdio::piped());
    command
}

/// Two files that were made, of which the second is gone, and a job that failed.
fn done() -> Scratch {
    let q = Scratch::new();
    for path in ["a", "b"] {
        q.enqueue(&["create_file", &json!({"path": path, "content": ""}).to_string()]);
    }
    q.ok(&["worker", "--drain"]);
    std::fs::remove_file(q.path().join("b")).unwrap();
    q
}

#[test]
fn a_batch_is_counted_while_it_is_read_and_leaves_one_line() {
    let q = Scratch::new();
    let mut terminal = Terminal::fed(&mut batch(&q, &[]));
    let mut stdin = terminal.child.stdin.take().unwrap();
    stdin.write_all(batch_of(3).as_bytes()).unwrap();
    terminal.until("3 lines read");
    stdin.write_all(b"{\"type\":\"t\",\"payload\":{}}\n").unwrap();
    terminal.until("4 lines read");
    drop(stdin);
    assert_eq!(terminal.screen(), ["4 queued, 0 there already"]);
}

/// What is wrong is said on a clean line, too.
#[test]
fn a_batch_that_is_refused_leaves_its_error_alone() {
    let q = Scratch::new();
    let mut terminal = Terminal::fed(&mut batch(&q, &[]));
    let mut stdin = terminal.child.stdin.take().unwrap();
    stdin.write_all(b"{oops\n").unwrap();
    terminal.until("1 lines read");
    drop(stdin);
    let (shown, code) = terminal.end();
    let lines = screen(&shown);
    assert!(lines[0].starts_with("error: line 1:"), "{lines:?}");
    assert!(code == 2 && !lines.iter().any(|line| line.contains("lines read")), "{lines:?}");
}

#[test]
fn an_interrupted_batch_leaves_nothing() {
    let q = Scratch::new();
    let mut terminal = Terminal::fed(&mut batch(&q, &[]));
    let _stdin = terminal.child.stdin.take().unwrap();
    terminal.until("lines read");
    kill_process(Pid::from_child(&terminal.child), Signal::INT).unwrap();
    let (shown, code) = terminal.end();
    assert_eq!((screen(&shown), code), (Vec::new(), 130));
    assert_eq!(q.count(), 0);
}

/// By the key: the terminal then echoes `^C` where the bar ends.
#[test]
fn a_batch_that_is_interrupted_by_the_key_leaves_nothing() {
    let q = Scratch::new();
    let Some(tmux) = Tmux::start(&q, 80, 12) else { return };
    tmux.line("clear; mkfifo lines; (exec 3<>lines; jobq enqueue --batch lines)");
    tmux.wait_for("lines read");
    tmux.keys(&["C-c"]);
    tmux.wait_for("ready>");
    let screen = tmux.screen();
    assert!(!screen.contains("lines read"), "{screen}");
    assert_eq!(q.count(), 0);
}

#[test]
fn a_drain_shows_how_far_it_is_and_lines_of_their_own() {
    let q = Scratch::new();
    let handlers = q.path().join(".jobq/handlers");
    std::fs::create_dir(&handlers).unwrap();
    for (name, script) in [("waits", "while [ ! -e go ]; do sleep 0.01; done"), ("fails", "echo no >&2; exit 65")] {
        std::fs::write(handlers.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(handlers.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    q.enqueue(&["waits", "{}"]);
    q.enqueue(&["fails", "{}"]);
    // Neither of these is to be run now.
    q.enqueue(&["waits", "{\"n\":2}", "--delay", "1h"]);
    q.enqueue(&["nobody_runs_this", "{}"]);
    let mut terminal = Terminal::of(&q, &["worker", "--drain"]);
    terminal.until("1/2 jobs");
    std::fs::write(q.path().join("go"), "").unwrap();
    let lines = terminal.screen();
    assert!(!lines.iter().any(|line| line.contains("/2 jobs")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains(" failed ") && line.contains("fails")), "{lines:?}");
    // A line begins with its time, or goes on below what comes after that, and not with what is left of a bar.
    let (last, rest) = lines.split_last().unwrap();
    assert!(rest.iter().all(|line| line.as_bytes()[2] == b':' || line.starts_with("         ")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("         ") && line.contains("sync_aws, waits;")), "{lines:?}");
    assert_eq!(last, "1 completed, 1 failed, 0 to be repeated");
}

#[test]
fn comparing_and_pruning_are_counted_and_leave_their_results() {
    let q = done();
    let (shown, code) = Terminal::of(&q, &["reconcile"]).end();
    assert!(shown.contains("paths compared  "), "{shown:?}");
    let lines = screen(&shown);
    assert_eq!((lines.len(), code), (3, 1), "{lines:?}");
    assert!(lines[0].starts_with("missing    b") && lines[1].starts_with("2 paths compared: 1 agree"), "{lines:?}");
    let (shown, _) = Terminal::of(&q, &["prune", "--older-than", "0s", "--forget"]).end();
    assert!(shown.contains("jobs deleted  "), "{shown:?}");
    assert_eq!(screen(&shown), ["2 jobs deleted", "2 paths forgotten"]);
}

/// What is kept in a file, or filtered, leaves the bar alone on the screen; a log line that was asked for goes past it.
#[test]
fn a_bar_makes_room_for_all_that_is_said_beside_it() {
    let q = done();
    for more in [&[][..], &["-v"]] {
        let kept = std::fs::File::create(q.path().join(".jobq/kept")).unwrap();
        let mut command = q.command(&[&["reconcile"], more].concat());
        let (shown, code) = Terminal::beside(command.stdout(kept)).end();
        assert!(shown.contains("paths compared  "), "{shown:?}");
        let lines = screen(&shown);
        assert!(!lines.iter().any(|line| line.contains("paths compared")), "{lines:?}");
        assert_eq!((lines.iter().filter(|line| line.contains("WARN")).count(), code), (more.len(), 1), "{lines:?}");
        assert!(lines.last().unwrap().contains("which jobs had it"), "{lines:?}");
    }
}

#[test]
fn the_bar_of_a_drain_is_as_wide_as_there_is_room() {
    let q = Scratch::new();
    handler(&q, "waits", "while [ ! -e $JOBQ_ROOT/go ]; do sleep 0.01; done");
    q.enqueue(&["waits"]);
    for columns in [40, 100] {
        let mut terminal = Terminal::wide(columns, &q, &["worker", "--drain"]);
        terminal.until("/1 jobs");
        terminal.until("left");
        std::fs::write(q.path().join("go"), "").unwrap();
        let (shown, _) = terminal.end();
        let frames = shown.split(['\r', '\n']).filter(|line| line.contains("/1 jobs"));
        let widths: Vec<usize> =
            frames.map(|frame| anstream::adapter::strip_str(frame).to_string().chars().count()).collect();
        let room = usize::from(columns);
        assert!(widths.iter().all(|width| (room - 5..=room).contains(width)), "{columns}: {widths:?}");
        std::fs::remove_file(q.path().join("go")).unwrap();
        q.enqueue(&["waits", "{\"n\":2}"]);
    }
}

#[test]
fn nothing_moves_where_nobody_looks_or_wants_to() {
    let moving = |text: &str| text.contains("lines ") || text.contains("  0s") || text.contains('\r');
    for args in [
        vec!["enqueue", "--batch", "jobs"],
        vec!["reconcile"],
        vec!["worker", "--drain"],
        vec!["prune", "--older-than", "0s"],
    ] {
        let q = done();
        std::fs::write(q.path().join("jobs"), batch_of(3)).unwrap();
        q.enqueue(&["create_file", r#"{"path":"c","content":""}"#]);
        let said = q.run(&args);
        assert!(!moving(&said.stderr), "{args:?}: {:?}", said.stderr);
        for more in ["--json", "-q"] {
            // Returns come from the terminal, with every line.
            let (shown, _) = Terminal::of(&q, &[args.clone(), vec![more]].concat()).end();
            assert!(!moving(&shown.replace("\r\n", "\n")), "{args:?} {more}: {shown:?}");
        }
    }
}

/// A line that said nothing of it would look as if there had been no job.
#[test]
fn the_last_line_of_a_worker_has_what_was_cancelled() {
    let q = Scratch::new();
    handler(&q, "slow", "touch $JOBQ_ROOT/started; sleep 1000");
    let id = q.enqueue(&["slow"]);
    let mut terminal = Terminal::of(&q, &["worker"]);
    wait_until("the job", || q.path().join("started").exists());
    q.ok(&["cancel", &id]);
    terminal.until("cancelled");
    kill_process(Pid::from_child(&terminal.child), Signal::TERM).unwrap();
    let last = terminal.screen().pop().unwrap();
    assert_eq!(last, "0 completed, 0 failed, 0 to be repeated, 1 cancelled");
}
