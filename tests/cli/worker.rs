//! `jobq worker` as scripts and people see it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::harness::{Scratch, json_lines};

fn create(q: &Scratch, path: &str, content: &str) -> String {
    q.enqueue(&["create_file", &format!(r#"{{"path":"{path}","content":"{content}"}}"#)])
}

fn read(q: &Scratch, path: &str) -> String {
    std::fs::read_to_string(q.path().join(path)).unwrap()
}

fn events<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

#[test]
fn a_drain_runs_what_is_there_and_tells_every_attempt_as_a_json_line() {
    let q = Scratch::new();
    let caused = r#"{"path":"out/b.txt","content":"b"}"#;
    let ids = [
        create(&q, "out/a.txt", "a"),
        q.enqueue(&["create_file", caused, "--correlation-id", "a cause"]),
        create(&q, "out/a.txt", "other"),
        q.enqueue(&["create_file", r#"{"path":"later.txt","content":""}"#, "--delay", "1h"]),
    ];
    let said = q.run(&["worker", "--drain"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "what is not wrong is on stdout only");
    let lines = json_lines(&said.stdout);
    assert!(lines.iter().all(|line| line["at"].is_string()));
    assert_eq!((&lines[0]["event"], &lines[0]["concurrency"]), (&"worker_started".into(), &4.into()));
    let attempts = events(&lines, "attempt");
    assert_eq!(attempts.len(), 3);
    let of = |id: &str| *attempts.iter().find(|line| line["job_id"] == id).unwrap();
    let good = of(&ids[1]);
    assert!(good["duration_ms"].is_number());
    let mut shape = good.clone();
    for changing in ["at", "duration_ms"] {
        shape.as_object_mut().unwrap().remove(changing);
    }
    let expected = serde_json::json!({
        "event": "attempt", "job_id": ids[1], "type": "create_file", "attempt": 1, "retries": 0,
        "outcome": "completed", "status": "completed", "correlation_id": "a cause",
    });
    assert_eq!(shape, expected);
    let bad = of(&ids[2]);
    assert_eq!(
        (&bad["outcome"], &bad["status"], &bad["error"]["code"]),
        (&"failed".into(), &"failed".into(), &"file_exists".into())
    );
    assert_eq!((read(&q, "out/a.txt"), read(&q, "out/b.txt")), ("a".to_owned(), "b".to_owned()));
    let last = lines.last().unwrap();
    assert_eq!((&last["event"], &last["completed"], &last["failed"]), (&"worker_stopped".into(), &2.into(), &1.into()));
}

#[test]
fn bad_arguments_are_refused_before_anything_runs() {
    let q = Scratch::new();
    create(&q, "a.txt", "a");
    for (word, args) in [
        ("no_such", ["--types", "create_file,no_such"]),
        // Known, but nothing here can run it.
        ("write_files", ["--types", "write_files"]),
        ("--concurrency", ["--concurrency", "0"]),
        ("--concurrency", ["--concurrency", "many"]),
        ("--lease", ["--lease", "0s"]),
        ("lease", ["--lease", "1ms"]),
        ("--poll-interval", ["--poll-interval", "0s"]),
        ("--grace", ["--grace", "soon"]),
    ] {
        let error = q.refused(2, &["worker", "--drain", args[0], args[1]]);
        assert!(error.contains(word), "{args:?}: {error}");
    }
    assert!(!q.path().join("a.txt").exists());
}

#[test]
fn warnings_have_no_colours_when_they_do_not_go_to_a_terminal() {
    let q = Scratch::new();
    // Something that is no lock file, and cannot be removed as one.
    std::fs::create_dir_all(q.path().join(".jobq/owners/folder.lock")).unwrap();
    let said = q.run(&["worker", "--drain"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("folder.lock") && !said.stderr.contains('\u{1b}'), "{:?}", said.stderr);
}

#[test]
fn only_the_types_asked_for_are_run() {
    let q = Scratch::new();
    create(&q, "a.txt", "a");
    q.enqueue(&["delete_file", r#"{"path":"b.txt"}"#]);
    std::fs::write(q.path().join("b.txt"), "b").unwrap();
    q.ok(&["worker", "--drain", "--types", "delete_file"]);
    assert!(!q.path().join("a.txt").exists() && !q.path().join("b.txt").exists());
}

#[test]
fn types_without_a_handler_are_told_and_stay() {
    let q = Scratch::new();
    q.enqueue(&["send_mail", "{}"]);
    let lines = json_lines(&q.ok(&["worker", "--drain"]));
    let told = events(&lines, "unknown_type");
    assert_eq!((told.len(), &told[0]["type"]), (1, &"send_mail".into()));
    assert_eq!(q.json(&["list"])[0]["status"], "pending");
}

#[test]
fn a_signal_ends_a_worker_in_good_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let q = Scratch::new();
        let child = q.command(&["worker"]).stdout(Stdio::piped()).spawn().unwrap();
        create(&q, "a.txt", "a");
        let deadline = Instant::now() + Duration::from_secs(30);
        while !q.path().join("a.txt").exists() {
            assert!(Instant::now() < deadline, "the worker does nothing");
            std::thread::sleep(Duration::from_millis(2));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let lines = json_lines(&String::from_utf8(output.stdout).unwrap());
        assert_eq!(lines.last().unwrap()["event"], "worker_stopped");
        assert_eq!(std::fs::read_dir(q.path().join(".jobq/owners")).unwrap().count(), 0);
    }
}

#[test]
fn quiet_is_quiet() {
    let q = Scratch::new();
    create(&q, "a.txt", "a");
    let said = q.run(&["worker", "--drain", "--quiet"]);
    assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (0, "", ""));
    assert_eq!(read(&q, "a.txt"), "a");
}

/// Runs a command with a terminal as its standard output and a pipe as its
/// standard error; prints both, one after the other.
const TERMINAL: &str = r#"
import os, pty, subprocess, sys, threading
ours, theirs = pty.openpty()
seen = bytearray()
def read():
    try:
        while True:
            seen.extend(os.read(ours, 4096))
    except OSError:
        pass
reader = threading.Thread(target=read)
reader.start()
ended = subprocess.run(sys.argv[1:], stdout=theirs, stderr=subprocess.PIPE)
os.close(theirs)
reader.join()
sys.stdout.buffer.write(bytes(seen) + b"\0" + ended.stderr)
sys.exit(ended.returncode)
"#;

/// What a command says on a terminal, and beside it.
fn on_terminal(q: &Scratch, args: &[&str], no_colour: bool) -> (String, String) {
    let mut command = Command::new("python3");
    command.args(["-c", TERMINAL, env!("CARGO_BIN_EXE_jobq")]).args(args).current_dir(q.path());
    command.env_remove("JOBQ_DB").env_remove("JOBQ_LOG").env("TERM", "xterm-256color");
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(name);
    }
    if no_colour {
        command.env("NO_COLOR", "1");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (terminal, beside) = text.split_once('\0').unwrap();
    (terminal.replace("\r\n", "\n"), beside.to_owned())
}

#[test]
fn people_get_a_readable_line_for_each_attempt_with_colours_unless_they_want_none() {
    for no_colour in [false, true] {
        let q = Scratch::new();
        let id = create(&q, "a.txt", "a");
        create(&q, "a.txt", "other");
        let (terminal, beside) = on_terminal(&q, &["worker", "--drain"], no_colour);
        assert_eq!(terminal.contains('\x1b'), !no_colour, "{terminal:?}");
        let line = terminal.lines().find(|line| line.contains(&id)).unwrap();
        assert!(line.contains("completed") && line.contains("create_file") && line.contains("attempt 1"), "{line:?}");
        assert!(terminal.lines().any(|line| line.contains("failed") && line.contains("file_exists")), "{terminal}");
        assert!(beside.contains("1 completed, 1 failed"), "{beside:?}");
    }
}

#[test]
fn json_is_json_on_a_terminal_too() {
    let q = Scratch::new();
    create(&q, "a.txt", "a");
    let (terminal, beside) = on_terminal(&q, &["worker", "--drain", "--json"], false);
    assert_eq!(events(&json_lines(&terminal), "attempt").len(), 1);
    assert_eq!(beside, "");
}

#[test]
fn control_characters_of_other_programs_do_not_reach_the_terminal() {
    let q = Scratch::new();
    q.sql()
        .execute("INSERT INTO jobs (id, type, payload) VALUES ('x', 'evil' || char(27) || '[2J', '{}')", [])
        .unwrap();
    let (terminal, _) = on_terminal(&q, &["worker", "--drain"], true);
    assert!(terminal.contains("evil") && !terminal.contains('\x1b'), "{terminal:?}");
}

/// A worker's own words are for others; nobody there to hear them is no reason
/// to stop working.
#[test]
fn output_that_nobody_takes_neither_stops_a_worker_nor_keeps_it() {
    let q = Scratch::new();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let program = || q.command(&["worker", "--drain", "-v"]);
    let id = create(&q, "a.txt", "a");
    q.enqueue(&["send_mail", "{}"]);
    assert!(program().stdout(full()).stderr(full()).status().unwrap().success());
    assert_eq!(q.json(&["show", &id])[0]["status"], "completed");

    // More than a pipe holds, and nobody reads it.
    let line = |n| format!(r#"{{"type":"create_file","payload":{{"path":"f/{n}","content":""}}}}"#);
    let batch: Vec<String> = (0..2_000).map(line).collect();
    std::fs::write(q.path().join("batch"), batch.join("\n")).unwrap();
    assert_eq!(q.run(&["enqueue", "--batch", "batch"]).code, 0);
    let mut child = program().stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "it waits for a reader");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(std::fs::read_dir(q.path().join("f")).unwrap().count(), 2_000);
}

#[test]
fn a_worker_whose_lines_cannot_be_written_says_so_and_goes_on() {
    let q = Scratch::new();
    create(&q, "a.txt", "a");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = q.command(&["worker", "--drain"]).stdout(full).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.matches("cannot write the worker's lines").count(), 1, "{said}");
    assert!(output.status.success() && read(&q, "a.txt") == "a");
}
