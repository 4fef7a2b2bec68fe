//! What somebody who sits at a terminal sees, and is asked.

use std::fs::File;
use std::process::Stdio;

use serde_json::{Value, json};

use super::harness::{Scratch, json_lines};
use super::pty::Terminal;

/// The end of a question.
const ASKED: &str = "[y/N] ";

/// A queue whose `a` and `b` somebody has changed.
pub fn drifted() -> Scratch {
    let q = Scratch::new();
    for path in ["a", "b"] {
        q.enqueue(&["create_file", &json!({"path": path, "content": "as it was"}).to_string()]);
    }
    q.ok(&["worker", "--drain"]);
    for path in ["a", "b"] {
        std::fs::write(q.path().join(path), "changed").unwrap();
    }
    q
}

/// The paths for which a job is pending.
fn queued(q: &Scratch) -> Vec<Value> {
    let mut paths: Vec<Value> =
        q.json(&["list", "--status", "pending"]).into_iter().map(|job| job["payload"]["path"].clone()).collect();
    paths.sort_by_key(Value::to_string);
    paths
}

#[test]
fn repairs_are_queued_after_a_yes() {
    for yes in ["y\n", "Y\n", "yes\n"] {
        let q = drifted();
        let mut terminal = Terminal::of(&q, &["reconcile", "--requeue"]);
        terminal.answer(ASKED, yes);
        assert!(terminal.shown.contains("2 differ"), "what there is comes before the question: {}", terminal.shown);
        assert!(terminal.shown.contains("queue repairs for 2 paths?"), "{}", terminal.shown);
        let (shown, code) = terminal.end();
        let after = shown.rsplit(ASKED).next().unwrap();
        assert_eq!(after.matches("queued").count(), 2, "{shown}");
        assert!(!shown.contains("nothing was queued"), "{shown}");
        assert_eq!((queued(&q), code), (vec![json!("a"), json!("b")], 1));
    }
}

/// Ctrl-D is the end of what is typed.
#[test]
fn nothing_is_queued_after_anything_else() {
    for no in ["n\n", "\n", "\u{4}", "no\n", "yess\n"] {
        let q = drifted();
        let mut terminal = Terminal::of(&q, &["reconcile", "--requeue"]);
        terminal.answer(ASKED, no);
        let (shown, code) = terminal.end();
        assert!(shown.contains("nothing was queued"), "{no:?}: {shown}");
        assert_eq!((queued(&q), code), (Vec::new(), 1), "{no:?}");
        assert_eq!(std::fs::read_to_string(q.path().join("a")).unwrap(), "changed");
    }
}

#[test]
fn nobody_is_asked_who_has_said_yes_or_has_nothing_to_repair() {
    let q = drifted();
    let (shown, code) = Terminal::of(&q, &["reconcile", "--requeue", "--yes"]).end();
    assert!(!shown.contains(ASKED) && shown.contains("queued"), "{shown}");
    assert_eq!((queued(&q).len(), code), (2, 1));
    q.ok(&["worker", "--drain"]);
    let (shown, code) = Terminal::of(&q, &["reconcile", "--requeue"]).end();
    assert!(!shown.contains(ASKED) && shown.contains("2 agree"), "{shown}");
    assert_eq!((queued(&q).len(), code), (0, 0));
}

/// The question, and the answer to a no, are for the person; what is kept in a
/// file stays JSON.
#[test]
fn a_question_does_not_spoil_json() {
    let q = drifted();
    let kept = q.path().join(".jobq/kept");
    let stdout = Stdio::from(File::create(&kept).unwrap());
    let mut terminal = Terminal::beside(q.command(&["reconcile", "--requeue", "--json"]).stdout(stdout));
    terminal.answer(ASKED, "n\n");
    let (shown, code) = terminal.end();
    assert!(shown.contains("nothing was queued"), "{shown}");
    let lines = json_lines(&std::fs::read_to_string(kept).unwrap());
    assert_eq!((lines.len(), &lines[2]["findings"], code), (3, &json!(2), 1));
    assert_eq!(queued(&q), Vec::<Value>::new());
}
