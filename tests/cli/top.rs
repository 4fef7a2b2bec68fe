//! `jobq top`, at a real terminal.

mod ends;
mod stopped;

use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};

use serde_json::json;

use self::ends::assert_given_back;
use super::harness::Scratch;
use super::tmux::{Tmux, wait_until};

/// A program that handles jobs of this type here.
pub fn handler(q: &Scratch, job_type: &str, script: &str) {
    let folder = q.path().join(".jobq/handlers");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(job_type);
    std::fs::write(&path, format!("#!/bin/bash\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// What is to be seen of one that failed, on any screen that is not tiny.
const FAILURE: &str = "exit code 65";

/// Two that failed, one with a payload that would turn the screen red, and one that
/// is pending.
struct Jobs {
    q: Scratch,
    failed: String,
    pending: String,
}

fn jobs() -> Jobs {
    let q = Scratch::new();
    handler(&q, "broken", "echo 'out of paper' >&2; exit 65");
    let evil = json!({"title": "\u{1b}[31;5mred\u{7}", "n": 1}).to_string();
    q.enqueue(&["broken", &json!({"n": 2}).to_string()]);
    q.ok(&["worker", "--drain"]);
    let failed = q.enqueue(&["broken", &evil]);
    q.ok(&["worker", "--drain"]);
    let pending = q.enqueue(&["create_file", r#"{"path":"later.txt","content":"x"}"#, "--delay", "1h"]);
    Jobs { q, failed, pending }
}

fn status(q: &Scratch, id: &str) -> String {
    q.json(&["show", id])[0]["status"].as_str().unwrap().to_owned()
}

/// The shell tells how the program before ended.
const AND_TELL: &str = "; echo ended with $?";

fn selected(screen: &str) -> &str {
    screen.lines().find(|line| line.starts_with("> ")).unwrap_or_default()
}

#[test]
fn a_job_is_retried_another_cancelled_and_the_terminal_is_as_before() {
    let Jobs { q, failed, pending } = jobs();
    let Some(tmux) = Tmux::start(&q, 100, 30) else { return };
    let modes = tmux.modes();
    tmux.line(&format!("jobq top{AND_TELL}"));
    // The newest failure is the first; all of its id is there, too.
    let screen = tmux.wait_for_all(&[FAILURE, "0 running  1 pending  2 failed", "runs in 1h", &failed]);
    assert!(selected(&screen).starts_with("> broken"), "{screen}");
    assert_eq!(tmux.about("#{alternate_on} #{cursor_flag}"), "1 0");
    tmux.keys(&["r"]);
    tmux.wait_for(&format!("retry the failed broken {failed}? y/N"));
    assert_eq!(status(&q, &failed), "failed");
    tmux.keys(&["y"]);
    tmux.wait_for(&format!("retried {failed}: pending"));
    tmux.wait_for("2 pending  1 failed");
    assert_eq!(status(&q, &failed), "pending");

    tmux.keys(&["Tab"]);
    tmux.wait_until("the selected one", |screen| selected(screen).contains("create_file"));
    tmux.keys(&["c"]);
    tmux.wait_for(&format!("cancel the pending create_file {pending}? y/N"));
    tmux.keys(&["n"]);
    tmux.wait_until("no question", |screen| !screen.contains("y/N"));
    assert_eq!(status(&q, &pending), "pending");
    tmux.keys(&["c", "y"]);
    tmux.wait_for(&format!("{pending}: cancelled"));
    assert_eq!(status(&q, &pending), "cancelled");

    tmux.keys(&["q"]);
    tmux.wait_for_line("ended with 0");
    assert_given_back(&tmux, &modes);
}

/// The next failure takes the place of one that was retried, and so is below a key
/// that repeats itself.
#[test]
fn a_key_that_is_held_down_changes_no_job_but_the_one_that_was_asked_about() {
    let Jobs { q, failed, pending } = jobs();
    let Some(tmux) = Tmux::start(&q, 100, 30) else { return };
    tmux.line("jobq top --interval 20ms");
    tmux.wait_for_all(&[FAILURE, &failed]);
    let count = |status: &str| q.json(&["list", "--status", status]).len();
    for (key, id, becomes) in [("r", &failed, "pending"), ("c", &pending, "cancelled")] {
        if key == "c" {
            tmux.keys(&["Tab"]);
            tmux.wait_for(&pending);
        }
        let before = count(becomes);
        tmux.keys(&[key; 9]);
        tmux.wait_for(&format!("{id}? y/N"));
        assert_eq!(count(becomes), before, "{key}: nobody has said yes");
        tmux.keys(&["y"; 9]);
        wait_until("the answer", || status(&q, id) == becomes);
        // Keys are heard in turn: all of those have been.
        tmux.keys(&["?"]);
        tmux.wait_for("jobq top: keys and columns");
        tmux.keys(&["Escape"]);
        tmux.wait_for("q quit");
        assert_eq!(count(becomes), before + 1, "{key}: one, and no other");
    }
}

/// Jobs of one moment have ids that begin alike.
#[test]
fn ids_on_the_screen_can_be_typed() {
    let q = Scratch::new();
    let lines: String = (0..3).map(|n| json!({"type": "later", "payload": {"n": n}}).to_string() + "\n").collect();
    assert_eq!(q.run_with_input(&["enqueue", "--batch", "-"], &lines).code, 0);
    let Some(tmux) = Tmux::start(&q, 80, 24) else { return };
    tmux.line("jobq top");
    let row = |line: &str| line.trim_start_matches(['>', ' ']).starts_with("later ") && line.contains("waits for");
    let screen = tmux.wait_until("three jobs", |screen| screen.lines().filter(|line| row(line)).count() == 3);
    let typed = screen.lines().filter(|line| row(line)).map(|line| {
        let id = line.trim_start_matches(['>', ' ']).split_whitespace().nth(1).unwrap();
        q.json(&["show", id])[0]["payload"]["n"].as_i64().unwrap()
    });
    assert_eq!(typed.collect::<Vec<_>>(), [2, 1, 0], "{screen}");
}

#[test]
fn what_is_refused_is_said_with_the_reason() {
    let Jobs { q, failed, .. } = jobs();
    let Some(tmux) = Tmux::start(&q, 120, 30) else { return };
    // So that what is on the screen is old.
    tmux.line("jobq top --interval 1h");
    tmux.wait_for(FAILURE);
    q.ok(&["retry", &failed]);
    tmux.keys(&["r", "y"]);
    tmux.wait_for(&format!("job {failed} is pending"));
    tmux.wait_for("2 pending  1 failed");
}

#[test]
fn a_job_can_be_inspected_and_its_payload_changes_no_terminal() {
    let Jobs { q, failed, .. } = jobs();
    let Some(tmux) = Tmux::start(&q, 100, 12) else { return };
    tmux.line("jobq top");
    tmux.wait_for(FAILURE);
    tmux.keys(&["Enter"]);
    let screen = tmux.wait_for_all(&[&format!("{failed}  broken  failed"), "last_error", "[31;5mred", "attempts"]);
    assert!(screen.contains("\\u001b[31;5mred"), "as it was given: {screen}");
    assert!(!tmux.coloured_screen().contains("\u{1b}[5m"), "nothing blinks");
    assert!(!screen.contains("payload_hash"), "that is farther down: {screen}");
    tmux.keys(&["End"]);
    tmux.wait_for_all(&["queued", "claimed", "attempt 1"]);
    tmux.keys(&["Home"]);
    tmux.wait_for("last_error");
    tmux.keys(&["?"]);
    tmux.keys(&["?"]);
    tmux.wait_for("jobq top: keys and columns");
    tmux.keys(&["Escape"]);
    tmux.wait_until("the lists", |screen| screen.contains("FAILED") && screen.contains("q quit"));
}

#[test]
fn it_fits_whatever_the_terminal_becomes() {
    let Jobs { q, failed, .. } = jobs();
    let Some(tmux) = Tmux::start(&q, 80, 24) else { return };
    tmux.line(&format!("jobq top{AND_TELL}"));
    let screen = tmux.wait_for(FAILURE);
    assert!(!screen.contains("CANCELLED 1H"), "{screen}");
    tmux.resize(130, 40);
    tmux.wait_until("room for the id", |screen| {
        selected(screen).contains(&failed[..10]) && screen.contains("CANCELLED 1H")
    });
    tmux.resize(30, 6);
    tmux.wait_until("a small screen", |screen| screen.contains("q quit") && selected(screen).starts_with("> broken"));
    tmux.resize(2, 2);
    tmux.resize(1, 1);
    tmux.wait_until("a tiny screen", |screen| screen.trim_end().chars().count() <= 1);
    tmux.resize(80, 24);
    tmux.wait_until("all of it again", |screen| screen.contains("DONE 1H") && screen.contains(FAILURE));
    tmux.keys(&["C-c"]);
    tmux.wait_for_line("ended with 0");
}

#[test]
fn what_another_program_writes_on_the_screen_goes_when_it_is_drawn_again() {
    let Jobs { q, .. } = jobs();
    let Some(tmux) = Tmux::start(&q, 80, 24) else { return };
    tmux.line("jobq top");
    tmux.wait_for_all(&[FAILURE, "q quit"]);
    let mut terminal = File::options().write(true).open(tmux.about("#{pane_tty}")).unwrap();
    std::io::Write::write_all(&mut terminal, b"\x1b[3;1Hscribbled over it").unwrap();
    tmux.wait_for("scribbled over it");
    tmux.keys(&["C-l"]);
    tmux.wait_until("all of it again", |screen| {
        !screen.contains("scribbled") && screen.contains(FAILURE) && screen.contains("q quit")
    });
    assert_eq!(tmux.about("#{alternate_on} #{cursor_flag}"), "1 0");
}

#[test]
fn trouble_is_shown_and_goes_when_it_is_over() {
    let Jobs { q, .. } = jobs();
    let Some(tmux) = Tmux::start(&q, 120, 24) else { return };
    tmux.line(&format!("jobq top --interval 20ms{AND_TELL}"));
    tmux.wait_for(FAILURE);
    let (here, away) = (q.path().join(".jobq"), q.path().join("away"));
    std::fs::rename(&here, &away).unwrap();
    // What was known stays.
    tmux.wait_for_all(&["cannot read the queue", FAILURE]);
    std::fs::rename(&away, &here).unwrap();
    tmux.wait_until("no trouble", |screen| !screen.contains("cannot read") && screen.contains(FAILURE));
    tmux.keys(&["q"]);
    tmux.wait_for_line("ended with 0");
}

/// A worker that is gone when this is dropped.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn running_jobs_are_shown_with_their_progress_and_what_ends_is_counted() {
    let q = Scratch::new();
    // Until it is told to go on.
    let script = "echo '{\"progress\":40,\"message\":\"page two\"}' >&$JOBQ_FD; read _ < $JOBQ_ROOT/go";
    handler(&q, "printing", script);
    rustix::fs::mkfifoat(rustix::fs::CWD, q.path().join("go"), 0o600.into()).unwrap();
    q.enqueue(&["printing"]);
    let Some(tmux) = Tmux::start(&q, 100, 24) else { return };
    tmux.line("jobq top --interval 20ms");
    tmux.wait_for("0 running  1 pending");
    let worker = q.command(&["worker"]).stdout(Stdio::null()).spawn().unwrap();
    let _worker = Worker(worker);
    tmux.wait_for_all(&["████░░░░░░  40% page two", "1 running  0 pending", "0.0 jobs/s (0/min)"]);
    std::io::Write::write_all(&mut File::create(q.path().join("go")).unwrap(), b"go\n").unwrap();
    tmux.wait_for_all(&["(1/min)", "nothing is running"]);
}

/// Nothing is written, not even by opening it: who changes something tidies up
/// after the dead, who looks does not.
#[test]
fn looking_changes_nothing() {
    let Jobs { q, pending, .. } = jobs();
    let Some(tmux) = Tmux::start(&q, 80, 24) else { return };
    let worker = Worker(q.command(&["worker"]).stdout(Stdio::null()).spawn().unwrap());
    q.enqueue(&["create_file", r#"{"path":"a.txt","content":"a"}"#, "--wait"]);
    drop(worker);
    let left = || std::fs::read_dir(q.path().join(".jobq/owners")).unwrap().count();
    assert_ne!(left(), 0, "a worker that is killed leaves its lock");
    let before_looking = left();
    let sql = q.sql();
    let version = || sql.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = version();
    tmux.line(&format!("jobq top --interval 20ms{AND_TELL}"));
    tmux.wait_for(FAILURE);
    tmux.keys(&["Enter"]);
    tmux.wait_for("last_error");
    tmux.keys(&["q", "q"]);
    tmux.wait_for_line("ended with 0");
    assert_eq!((version(), left()), (before, before_looking));
    q.ok(&["cancel", &pending]);
    assert!(version() != before && left() < before_looking, "that would have been seen");
}

#[test]
fn colours_are_for_those_who_want_them() {
    let Jobs { q, .. } = jobs();
    for (setting, red) in [("", true), ("NO_COLOR=1 ", false), ("CLICOLOR=0 ", false)] {
        let Some(tmux) = Tmux::start(&q, 80, 24) else { return };
        tmux.line(&format!("{setting}jobq top"));
        tmux.wait_for_all(&[FAILURE, "q quit"]);
        let screen = tmux.coloured_screen();
        assert_eq!(screen.contains("\u{1b}[31m") || screen.contains("\u{1b}[38;5;1m"), red, "{screen:?}");
    }
}

#[test]
fn without_a_terminal_other_commands_are_named() {
    let q = Scratch::new();
    let said = q.refused(2, &["top"]);
    assert!(said.contains("`jobq stats`") && said.contains("`jobq list --json`"), "{said}");
    let said = q.refused(2, &["top", "--json"]);
    assert!(said.contains("`jobq stats --json`"), "{said}");
    q.refused(2, &["top", "--interval", "0s"]);
    assert!(q.ok(&["top", "--help"]).contains("jobq top --interval 5s"));
}
