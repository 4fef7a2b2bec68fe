//! Nobody reads what a command says, or it cannot be written: it does what it was asked for all the same, and its exit
//! code is the answer.

use std::fs::File;
use std::process::{Command, Stdio};

use serde_json::json;

use super::harness::Scratch;
use super::pty::Terminal;
use super::running::start;
use super::terminal::drifted;
use super::top::handler;

/// A pipe whose reader has gone.
fn closed() -> Stdio {
    std::io::pipe().unwrap().1.into()
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

fn code(command: &mut Command) -> i32 {
    command.status().unwrap().code().unwrap()
}

#[test]
fn an_answer_stays_what_it_is_when_its_reader_has_gone() {
    let q = drifted();
    for json in [&[][..], &["--json"]] {
        assert_eq!(code(q.command(&[&["reconcile"], json].concat()).stdout(closed())), 1, "{json:?}");
        assert_eq!(code(q.command(&[&["list"], json].concat()).stdout(closed())), 0, "{json:?}");
    }
    assert_eq!(code(q.command(&["handlers", "--resume", "send_mail"]).stdout(closed())), 1);
    std::fs::write(q.path().join(".jobq/config.toml"), "oops").unwrap();
    assert_eq!(code(q.command(&["doctor"]).stdout(closed())), 1);
    assert_eq!(code(q.command(&["config"]).stdout(closed())), 2);
}

/// `jobq enqueue … --wait | head -n 1`, which has read enough before the job has ended.
#[test]
fn whoever_waits_for_a_job_waits_though_nobody_reads() {
    for (script, answer, status) in [("exit 65", 1, "failed"), ("true", 0, "completed")] {
        let q = Scratch::new();
        handler(&q, "judged", script);
        let (_worker, _lines) = start(&q, &["worker"]);
        let mut enqueue = q.command(&["enqueue", "judged", "{}", "--wait", "--wait-timeout", "60s"]);
        assert_eq!(code(enqueue.stdout(closed())), answer);
        assert_eq!(q.json(&["list"])[0]["status"], status);
    }
}

#[test]
fn repairs_that_were_asked_for_are_queued_whoever_hears_of_it() {
    for (stdout, answer) in [(closed as fn() -> Stdio, 1), (full, 6)] {
        for json in [&[][..], &["--json"]] {
            let q = drifted();
            assert_eq!(
                code(q.command(&[&["reconcile", "--requeue", "--yes"], json].concat()).stdout(stdout())),
                answer
            );
            assert_eq!(q.json(&["list", "--status", "pending"]).len(), 2);
        }
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_none() {
    let q = drifted();
    for args in [&["reconcile"][..], &["list"], &["list", "--json"], &["events"], &["doctor"]] {
        let output = q.command(args).stdout(full()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(5), "{args:?}: {said}");
        assert!(said.contains("cannot write the output"), "{args:?}: {said}");
    }
}

#[test]
fn what_is_said_beside_the_results_changes_no_answer() {
    let q = drifted();
    for stderr in [closed as fn() -> Stdio, full] {
        let silent = |args: &[&str]| code(q.command(args).stdout(Stdio::null()).stderr(stderr()));
        assert_eq!(silent(&["reconcile"]), 1);
        assert_eq!(silent(&["list", "--status", "failed"]), 0);
        assert_eq!(silent(&["list", "--type", "creat_file"]), 0);
        assert_eq!(silent(&["reconcile", "--path", "no/*"]), 0);
        assert_eq!(silent(&["retry", "--all-failed"]), 0);
    }
}

/// The hint that it reads from the terminal reaches nobody.
#[test]
fn a_commit_is_read_from_the_terminal_and_made_though_no_hint_can_be_given() {
    let q = Scratch::new();
    for (path, stderr) in [("a", closed as fn() -> Stdio), ("b", full)] {
        let mut terminal = Terminal::silent(q.command(&["commit"]).stderr(stderr()));
        let document = json!({"writes": [{"path": path, "text": "A"}]});
        terminal.answer("", &format!("{document}\n\u{4}"));
        let (shown, code) = terminal.end();
        assert!(code == 0 && shown.contains("committed"), "{shown}");
        assert_eq!(std::fs::read_to_string(q.path().join(path)).unwrap(), "A");
    }
}

/// Whoever cannot be asked has not said yes.
#[test]
fn nothing_is_overwritten_after_a_question_that_nobody_has_seen() {
    let q = drifted();
    let mut terminal = Terminal::silent(q.command(&["reconcile", "--requeue"]).stderr(closed()));
    terminal.answer("", "y\n");
    let (shown, code) = terminal.end();
    assert!(code == 1 && shown.contains("nothing was queued"), "{shown}");
    assert_eq!(q.json(&["list", "--status", "pending"]).len(), 0);
}

/// It has nothing else to do.
#[test]
fn a_watch_ends_when_nobody_reads_any_more() {
    let q = drifted();
    let (watch, mut lines) = start(&q, &["reconcile", "--watch", "--every", "20ms"]);
    for expected in ["watching", "changed", "changed"] {
        assert!(lines.next().unwrap().unwrap().contains(expected));
    }
    drop(lines);
    std::fs::write(q.path().join("a"), "as it was").unwrap();
    assert_eq!(watch.end(), (Some(0), String::new()));
}
