//! `scripts/demo.sh` tells the truth, cleans up behind itself, and stops when something is not as it says.
#![cfg(feature = "cli")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

const JOBQ: &str = env!("CARGO_BIN_EXE_jobq");

fn demo(temporary: &Path, args: &[&str]) -> Command {
    let mut bash = Command::new("bash");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/demo.sh");
    bash.arg(script).args(args).env("TMPDIR", temporary).env_remove("JOBQ_DB");
    bash
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn it_shows_a_commit_a_killed_worker_its_recovery_a_finding_and_a_repair() {
    let temporary = tempfile::tempdir().unwrap();
    let output = demo(temporary.path(), &["--jobq", JOBQ]).output().unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let said = stdout(&output);
    let mut lines = said.lines();
    // In this order, the words of each on one line.
    for words in [
        &["$ jobq commit commit.json"][..],
        &["committed"],
        &["nothing was written and nothing is queued"],
        &["(exit code 4)"],
        &["$ kill -KILL "],
        &["send_mail", "claimed", "1/3"],
        &["send_mail", "completed", "2/3"],
        &["worker_lost", "attempt 1"],
        &["completed", "attempt 2"],
        &["attempt 2 of", "ben@example.org"],
        &["6 agree, 0 differ"],
        &["$ echo \"Ben owes nothing\""],
        &["changed", "print/2.txt"],
        &["missing", "print/3.txt"],
        &["(exit code 1)"],
        &["$ jobq blame print/2.txt"],
        &["put", "create_file"],
        &["queued", "print/2.txt"],
        &["queued", "print/3.txt"],
        &["6 agree, 0 differ"],
        &["Ben owes 34"],
        &["All of it was as told."],
    ] {
        let found = lines.any(|line| words.iter().all(|word| line.contains(word)));
        assert!(found, "{words:?} is missing, in its place:\n{said}");
    }
    assert!(!said.contains('\u{1b}'), "no colours in a pipe");
    assert_eq!(stderr(&output), "");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "it leaves nothing behind");
}

#[test]
fn its_folder_is_kept_when_asked_for_and_told() {
    let temporary = tempfile::tempdir().unwrap();
    let output = demo(temporary.path(), &["--keep", "--jobq", JOBQ]).output().unwrap();
    let said = stdout(&output);
    let folder = said.lines().find_map(|line| line.strip_prefix("kept: ")).expect("it is told");
    assert!(Path::new(folder).starts_with(temporary.path()));
    assert!(Path::new(folder).join("shop/.jobq/jobq.db").exists());
}

/// The real program, but for one command.
fn one_that_lies(folder: &Path, command: &str, instead: &str) -> String {
    let program = folder.join("lies");
    fs::write(&program, format!("#!/bin/sh\ncase $1 in {command}) {instead} ;; esac\nexec '{JOBQ}' \"$@\"\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program.to_str().unwrap().to_owned()
}

#[test]
fn it_stops_when_something_is_not_as_it_says() {
    for (command, instead, complaint) in [
        (
            "commit",
            "mkdir data && cd data && for n in 1 2 3; do echo {} >$n.json; done; exit 0",
            "the files are there, and six jobs wait",
        ),
        ("worker", "exit 5", "the worker has ended by itself"),
        ("reconcile", "exit 0", "exit code 1, and ended with 0"),
    ] {
        let (temporary, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let program = one_that_lies(folder.path(), command, instead);
        let output = demo(temporary.path(), &["--jobq", &program]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{command}: {}", stdout(&output));
        assert!(stderr(&output).contains(complaint), "{command}: {}", stderr(&output));
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "it leaves nothing behind");
    }
}

#[test]
fn it_says_what_is_missing() {
    let temporary = tempfile::tempdir().unwrap();
    let output = demo(temporary.path(), &["--jobq", "/no/such/program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("/no/such/program is not a program"), "{}", stderr(&output));

    // A machine without Rust: only what the script itself needs up to there.
    let tools = tempfile::tempdir().unwrap();
    for tool in ["bash", "dirname"] {
        let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output().unwrap();
        std::os::unix::fs::symlink(stdout(&found).trim(), tools.path().join(tool)).unwrap();
    }
    let output = demo(temporary.path(), &[]).env("PATH", tools.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("missing: cargo (install Rust 1.89 or newer)"), "{}", stderr(&output));

    assert_eq!(demo(temporary.path(), &["--nonsense"]).output().unwrap().status.code(), Some(2));
}
