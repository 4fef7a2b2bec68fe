//! Everything a program starts ends with it.

use std::time::Duration;

use jobq::{NewJob, Status};
use rustix::process::Signal;

use super::harness::{Place, assert_failed, lives};

/// Starts what tries to get away: a child, one with a session of its own, one that
/// is orphaned on purpose, and one that does not listen. Each writes its number.
const FAMILY: &str = r#"
sh -c 'echo $$ > child; exec sleep 1000' &
setsid sh -c 'echo $$ > session; exec sleep 1000' &
(setsid sh -c 'echo $$ > orphan; exec sleep 1000' &) 
sh -c 'trap "" TERM; echo $$ > deaf; while :; do sleep 0.1; done' &
while ! [ -s child -a -s session -a -s orphan -a -s deaf ]; do sleep 0.01; done
echo $$ > all
"#;
const NAMES: [&str; 5] = ["child", "session", "orphan", "deaf", "all"];

fn assert_all_dead(place: &Place) {
    for name in NAMES {
        assert!(!lives(place.pid(name)), "{name} lives");
    }
}

#[test]
fn what_a_program_leaves_behind_ends_with_it_and_holds_nobody_up() {
    let place = Place::new();
    // They all have its output, which is therefore never closed.
    place.handler("parent", &format!("{FAMILY} echo '{{\"ok\":1}}'"));
    let job = place.run_once("parent", "{}");
    assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
    assert_eq!(job.result.unwrap().as_str(), "{\"ok\":1}");
    assert_all_dead(&place);
}

/// One live process at a time, which is never the same for long: what is listed is
/// gone when it is looked at. Says so if it gets away, and ends by itself then.
const CHAIN: &str = r#"perl -e '$end = time + 20; while (time < $end) { exit if fork; } open F, ">escaped"; print F $$;' &
echo $$ > all
"#;

#[test]
fn a_chain_of_orphans_is_caught() {
    let place = Place::new();
    place.handler("leaves", &format!("{CHAIN}sleep 0.2"));
    place.handler("hangs", &format!("{CHAIN}sleep 1000"));
    assert_eq!(place.run_once("leaves", "{}").status, Status::Completed);
    let id = place.enqueue(NewJob::raw("hangs", "{}").max_attempts(1).timeout(Duration::from_secs(1)));
    place.drain();
    assert_failed(&place.job(&id), &["job_timeout"]);
    assert!(!place.path("escaped").exists(), "it ended by itself");
}

#[test]
fn a_timeout_ends_the_whole_tree() {
    let place = Place::new();
    place.handler("hangs", &format!("{FAMILY} sleep 1000"));
    let job = NewJob::raw("hangs", "{}").max_attempts(1).timeout(Duration::from_secs(2));
    let id = place.enqueue(job);
    place.drain();
    assert_failed(&place.job(&id), &["job_timeout"]);
    assert_all_dead(&place);
}

#[test]
fn a_program_that_is_asked_to_end_may_say_goodbye() {
    let place = Place::new();
    // All of its processes are asked. If `sleep` is the first to end, `set -e` must not end the shell before its turn.
    place.handler("polite", "trap 'echo bye > bye; exit 0' TERM; echo $$ > all; while :; do sleep 0.05 || :; done");
    let id = place.enqueue_once("polite", "{}");
    let worker = place.worker(&[]);
    place.wait_for_file("all");
    assert!(place.jobq().args(["cancel", &id]).output().unwrap().status.success());
    assert_eq!(place.wait_until_finished(&id).status, Status::Cancelled, "whatever its exit code says");
    assert_eq!(place.read("bye"), "bye\n");
    worker.stop();
}

#[test]
fn a_cancel_ends_the_whole_tree() {
    let place = Place::new();
    place.handler("hangs", &format!("{FAMILY} sleep 1000"));
    let id = place.enqueue_once("hangs", "{}");
    let worker = place.worker(&[]);
    place.wait_for_file("all");
    assert!(place.jobq().args(["cancel", &id]).output().unwrap().status.success());
    assert_eq!(place.wait_until_finished(&id).status, Status::Cancelled);
    assert_all_dead(&place);
    worker.stop();
}

#[test]
fn one_signal_waits_for_programs_and_a_second_ends_them() {
    let place = Place::new();
    place.handler("hangs", &format!("{FAMILY} sleep 1000"));
    let id = place.enqueue_once("hangs", "{}");
    let mut worker = place.worker(&[]);
    place.wait_for_file("all");
    // To the group, as a terminal does it: the program is not meant.
    rustix::process::kill_process_group(worker.pid(), Signal::INT).unwrap();
    place.wait_until_stopping();
    assert!(lives(place.pid("all")));
    worker.signal(Signal::INT);
    assert!(worker.0.wait().unwrap().success());
    assert_all_dead(&place);
    let job = place.job(&id);
    assert_eq!((job.status, job.attempts), (Status::Pending, 0), "it goes back and loses nothing");
    place.assert_no_litter();
}

#[test]
fn a_program_ends_by_itself_after_one_signal() {
    let place = Place::new();
    place.handler("works", "echo $$ > all; while ! [ -e go ]; do sleep 0.01; done");
    let id = place.enqueue_once("works", "{}");
    let mut worker = place.worker(&[]);
    place.wait_for_file("all");
    rustix::process::kill_process_group(worker.pid(), Signal::INT).unwrap();
    std::fs::write(place.path("go"), "").unwrap();
    assert!(worker.0.wait().unwrap().success());
    assert_eq!(place.job(&id).status, Status::Completed);
}
