//! What somebody who sits at a terminal sees, and is asked.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use super::harness::{Scratch, json_lines};

/// The end of a question.
const ASKED: &str = "[y/N] ";

/// A program at a terminal; this is the side with the person.
struct Terminal {
    person: File,
    child: Child,
    shown: String,
}

impl Terminal {
    /// With `stdout` as given, or on the terminal, too.
    fn start(q: &Scratch, args: &[&str], stdout: Option<Stdio>) -> Self {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap().into_string().unwrap();
        let side = || Stdio::from(File::options().read(true).write(true).open(&name).unwrap());
        // The command has handles of the terminal, which must be gone with the program.
        let mut command = q.command(args);
        command.env("TERM", "dumb").stdin(side()).stdout(stdout.unwrap_or_else(side)).stderr(side());
        let child = command.spawn().unwrap();
        Self { person: File::from(person), child, shown: String::new() }
    }

    /// Whether there was more to read.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        // Once nobody has the other side open, reading is an error.
        let count = self.person.read(&mut buffer).unwrap_or(0);
        self.shown.push_str(&String::from_utf8_lossy(&buffer[..count]));
        count > 0
    }

    /// Types this when the question is there.
    fn answer(&mut self, typed: &str) {
        while !self.shown.ends_with(ASKED) {
            assert!(self.read(), "it ended without a question: {}", self.shown);
        }
        self.person.write_all(typed.as_bytes()).unwrap();
    }

    /// What was shown until it ended, and its exit code.
    fn end(mut self) -> (String, i32) {
        while self.read() {}
        (self.shown, self.child.wait().unwrap().code().unwrap())
    }
}

/// A queue whose `a` and `b` somebody has changed.
fn drifted() -> Scratch {
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
        let mut terminal = Terminal::start(&q, &["reconcile", "--requeue"], None);
        terminal.answer(yes);
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
        let mut terminal = Terminal::start(&q, &["reconcile", "--requeue"], None);
        terminal.answer(no);
        let (shown, code) = terminal.end();
        assert!(shown.contains("nothing was queued"), "{no:?}: {shown}");
        assert_eq!((queued(&q), code), (Vec::new(), 1), "{no:?}");
        assert_eq!(std::fs::read_to_string(q.path().join("a")).unwrap(), "changed");
    }
}

#[test]
fn nobody_is_asked_who_has_said_yes_or_has_nothing_to_repair() {
    let q = drifted();
    let (shown, code) = Terminal::start(&q, &["reconcile", "--requeue", "--yes"], None).end();
    assert!(!shown.contains(ASKED) && shown.contains("queued"), "{shown}");
    assert_eq!((queued(&q).len(), code), (2, 1));
    q.ok(&["worker", "--drain"]);
    let (shown, code) = Terminal::start(&q, &["reconcile", "--requeue"], None).end();
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
    let mut terminal = Terminal::start(&q, &["reconcile", "--requeue", "--json"], Some(stdout));
    terminal.answer("n\n");
    let (shown, code) = terminal.end();
    assert!(shown.contains("nothing was queued"), "{shown}");
    let lines = json_lines(&std::fs::read_to_string(kept).unwrap());
    assert_eq!((lines.len(), &lines[2]["findings"], code), (3, &json!(2), 1));
    assert_eq!(queued(&q), Vec::<Value>::new());
}
