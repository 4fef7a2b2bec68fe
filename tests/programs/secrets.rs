//! What a program can reach of the worker and of the processes between the two.

use std::fs::File;
use std::process::{Command, Output};

use jobq::Status;

use super::harness::Place;

const SECRET: &str = "hunter2";

/// Sets `$reaper`, `$supervisor` and `$worker`, from the program upwards.
const ABOVE: &str = "reaper=$PPID
supervisor=$(ps -o ppid= -p $reaper | tr -d ' ')
worker=$(ps -o ppid= -p $supervisor | tr -d ' ')";

/// Runs one job of a script, by a worker with a secret in its environment, and with `worker.err` as its standard error.
fn run(place: &Place, script: &str, prepare: impl FnOnce(&mut Command)) -> Output {
    place.handler("looks", &format!("{ABOVE}\n{script}"));
    let id = place.enqueue_once("looks", "{}");
    let errors = File::create(place.path("worker.err")).unwrap();
    let mut worker = place.jobq();
    worker.args(["worker", "--drain"]).env("SECRET", SECRET).stderr(errors);
    prepare(&mut worker);
    let output = worker.output().unwrap();
    let job = place.job(&id);
    assert_eq!(job.status, Status::Completed, "{:?}, {}", job.last_error, place.read("worker.err"));
    output
}

fn as_nobody(place: &Place) -> impl FnOnce(&mut Command) {
    |worker| {
        place.as_nobody(worker);
    }
}

#[test]
fn a_program_of_an_ordinary_user_cannot_look_into_jobqs_processes_nor_write_to_their_terminal() {
    let place = Place::new();
    let script = "for pid in $reaper $supervisor $worker; do
          cat /proc/$pid/environ >> seen 2>/dev/null || echo refused >> seen
          (echo ESCAPED >> /proc/$pid/fd/2) 2>/dev/null || echo refused >> written
        done
        # Its own process is like any other.
        cat /proc/self/environ > own";
    run(&place, script, as_nobody(&place));
    assert!(place.read("seen") == "refused\n".repeat(3), "an environment could be read");
    assert_eq!(place.read("written"), "refused\n".repeat(3));
    assert!(!place.read("worker.err").contains("ESCAPED"));
    assert!(place.read("own").contains("JOBQ_TYPE=looks"));
}

/// Root may look into any process, so there must be nothing to see.
#[test]
fn the_processes_between_worker_and_program_have_no_secret_and_no_terminal() {
    let place = Place::new();
    let script = "for pid in $reaper $supervisor; do
          # Without the right to read it, there is nothing to see either.
          { tr '\\0' '\\n' < /proc/$pid/environ || true; } >> environments 2>/dev/null
          { ls -l /proc/$pid/fd || true; } >> descriptors 2>/dev/null
        done";
    run(&place, script, |_| {});
    for line in place.read("environments").lines() {
        let name = line.split('=').next().unwrap();
        assert!(["PATH", "LD_LIBRARY_PATH"].contains(&name), "{line}");
    }
    let descriptors = place.read("descriptors");
    assert!(!descriptors.contains("worker.err"), "{descriptors}");
    if rustix::process::geteuid().is_root() {
        assert_eq!(descriptors.matches(" 2 -> /dev/null").count(), 2, "{descriptors}");
    }
}

#[test]
fn jobq_dumpable_opens_the_worker_to_debuggers_and_nothing_else() {
    let place = Place::new();
    let script = "cat /proc/$worker/environ > of_worker
        for pid in $reaper $supervisor; do cat /proc/$pid/environ 2>/dev/null || echo refused >> seen; done";
    run(&place, script, |worker| {
        place.as_nobody(worker).env("JOBQ_DUMPABLE", "1");
    });
    assert!(place.read("of_worker").contains(SECRET));
    assert!(place.read("seen") == "refused\n".repeat(2), "an environment could be read");
}
