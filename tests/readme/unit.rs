//! The unit file starts a worker, and lets it stop in its own way.

use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;

const UNIT: &str = include_str!("../../docs/jobq-worker.service");

/// What it says, by name. None of the names that are looked at is there twice.
fn unit() -> HashMap<&'static str, &'static str> {
    UNIT.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('=')).collect()
}

#[test]
fn the_unit_starts_a_worker() {
    let folder = tempfile::tempdir().unwrap();
    drop(jobq::Queue::init(folder.path()).unwrap());
    let mut words = unit()["ExecStart"].split(' ');
    assert_eq!(words.next(), Some("/usr/local/bin/jobq"));
    // As it stands there; only that it ends is added.
    let mut worker = Command::new(env!("CARGO_BIN_EXE_jobq"));
    worker.args(words).arg("--drain").current_dir(folder.path()).env_remove("JOBQ_DB");
    let output = worker.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"event\":\"worker_stopped\""));
}

/// Programs that jobs run must not hear the first signal, and the worker must have had its time before it is killed.
#[test]
fn the_unit_leaves_stopping_to_the_worker() {
    let unit = unit();
    assert_eq!((unit["KillMode"], unit["KillSignal"]), ("mixed", "SIGTERM"));
    let grace = unit["ExecStart"].split(' ').skip_while(|word| *word != "--grace").nth(1).unwrap();
    let time = |text: &str| humantime::parse_duration(text).unwrap();
    // After its grace it waits for handlers, and programs have a grace of their own.
    assert!(time(unit["TimeoutStopSec"]) >= time(grace) + Duration::from_secs(20));
}
