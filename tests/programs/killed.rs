//! Whoever of those who watch over a program is killed or frozen: the program ends,
//! and no other attempt begins before it has.

use std::sync::Arc;
use std::time::Duration;

use jobq::{NewJob, ProgramHandlers, Registry, Shutdown, Status, Supervisor, Worker, WorkerOptions};
use rustix::process::{DumpableBehavior, Signal};

use super::harness::{Place, assert_failed, lives, opened_again, parent_of, until};

/// The first attempt hangs, with a child that got away and does not listen. A later
/// one looks whether anything of the first is left.
const ONE_AFTER_THE_OTHER: &str = r#"
if [ -s away ]; then
  for name in away all; do
    if kill -0 $(cat $name) 2>/dev/null; then echo "$name overlaps" >> overlap; fi
  done
  exit 0
fi
setsid sh -c 'trap "" TERM; echo $$ > away; while :; do sleep 0.05; done' &
while ! [ -s away ]; do sleep 0.01; done
echo $$ > all
sleep 1000
"#;

fn place() -> (Place, String) {
    let place = Place::new();
    place.handler("hangs", ONE_AFTER_THE_OTHER);
    let id = place.enqueue(NewJob::raw("hangs", "{}").max_attempts(5));
    (place, id)
}

fn assert_ends_well(place: &Place, id: &str) {
    let job = place.wait_until_finished(id);
    assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
    assert!(!place.path("overlap").exists(), "{}", place.read("overlap"));
    assert!(!lives(place.pid("away")) && !lives(place.pid("all")));
}

#[test]
fn nothing_survives_a_worker_that_is_killed() {
    let (place, id) = place();
    let worker = place.worker(&[]);
    place.wait_for_file("all");
    let successor = place.worker(&[]);
    worker.signal(Signal::KILL);
    until("all of it is dead", || !lives(place.pid("away")) && !lives(place.pid("all")));
    assert_ends_well(&place, &id);
    successor.stop();
}

#[test]
fn a_job_is_not_taken_while_its_program_lives_although_its_worker_is_dead() {
    let (place, id) = place();
    let mut worker = place.worker(&[]);
    let reaper = parent_of(place.pid("all"));
    let supervisor = parent_of(reaper);
    // Nobody can end the program now.
    for pid in [supervisor, reaper] {
        rustix::process::kill_process(pid, Signal::STOP).unwrap();
    }
    worker.0.kill().unwrap();
    worker.0.wait().unwrap();
    let reclaim = place.jobq().arg("reclaim").output().unwrap();
    assert!(reclaim.status.success(), "{reclaim:?}");
    assert!(lives(place.pid("all")) && lives(place.pid("away")));
    assert_eq!(place.job(&id).status, Status::Claimed, "the supervisor keeps the lock");
    rustix::process::kill_process(supervisor, Signal::CONT).unwrap();
    let successor = place.worker(&[]);
    assert_ends_well(&place, &id);
    successor.stop();
}

#[test]
fn a_frozen_worker_loses_its_programs_before_its_jobs() {
    let (place, id) = place();
    let worker = place.worker(&["--lease", "2s"]);
    place.wait_for_file("all");
    worker.signal(Signal::STOP);
    let successor = place.worker(&["--lease", "2s"]);
    assert_ends_well(&place, &id);
    worker.signal(Signal::CONT);
    worker.stop();
    successor.stop();
}

#[test]
fn a_supervisor_that_is_killed_takes_its_programs_along_and_is_replaced() {
    let (place, id) = place();
    let worker = place.worker(&[]);
    let program = place.pid("all");
    let supervisor = parent_of(parent_of(program));
    assert_eq!(parent_of(supervisor), worker.pid());
    rustix::process::kill_process(supervisor, Signal::KILL).unwrap();
    assert_ends_well(&place, &id);
    worker.stop();
}

#[test]
fn a_reaper_that_is_killed_leaves_nothing_behind() {
    let (place, id) = place();
    let worker = place.worker(&[]);
    let reaper = parent_of(place.pid("all"));
    rustix::process::kill_process(reaper, Signal::KILL).unwrap();
    assert_ends_well(&place, &id);
    worker.stop();
}

/// A program may kill those who watch over it. Its job must not start over for ever because of that.
#[test]
fn a_program_that_kills_who_watches_it_uses_up_its_attempts() {
    let supervisor = "$(ps -o ppid= -p $PPID)";
    let no_report = ["supervisor_killed", "no report from the supervisor of"];
    for (victims, words) in [
        ("$PPID", no_report),
        (&*format!("{supervisor} $PPID"), no_report),
        // The reaper ends the program then, and says so.
        (supervisor, ["program_killed", "SIGTERM"]),
    ] {
        let place = Place::new();
        // The third attempt would complete, so that this test ends in any case.
        let script = format!(
            "echo once >> attempts; [ $(wc -l < attempts) -gt 2 ] && exit 0\nkill -9 {victims}\nexec sleep 1000"
        );
        place.handler("kills", &script);
        let id = place.enqueue(NewJob::raw("kills", "{}").max_attempts(2));
        let worker = place.worker(&[]);
        let job = place.wait_until_finished(&id);
        worker.stop();
        assert_failed(&job, &words);
        assert_eq!((job.attempts, place.read("attempts").lines().count()), (2, 2), "{victims}");
    }
}

#[test]
fn supervisor_and_reaper_killed_at_once_take_the_program_along() {
    let place = Place::new();
    // Who waits to be buried by the system's first process is dead.
    let hangs = r"if [ -s all ]; then
          if grep -qs '^State:.[RSDTt]' /proc/$(cat all)/status; then echo all >> overlap; fi
          exit 0
        fi
        trap '' TERM; echo $$ > all; while :; do sleep 0.05; done";
    place.handler("hangs", hangs);
    let id = place.enqueue(NewJob::raw("hangs", "{}").max_attempts(5));
    let worker = place.worker(&[]);
    let reaper = parent_of(place.pid("all"));
    let supervisor = parent_of(reaper);
    rustix::process::kill_process(supervisor, Signal::STOP).unwrap();
    rustix::process::kill_process(reaper, Signal::KILL).unwrap();
    rustix::process::kill_process(supervisor, Signal::KILL).unwrap();
    let job = place.wait_until_finished(&id);
    assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
    assert!(!place.path("overlap").exists());
    worker.stop();
}

#[test]
fn a_program_that_stops_its_reaper_is_ended_all_the_same() {
    let place = Place::new();
    place.handler("stops", "echo $$ > all; kill -STOP $PPID; while :; do sleep 0.05; done");
    let id = place.enqueue(NewJob::raw("stops", "{}").max_attempts(1).timeout(Duration::from_millis(500)));
    let worker = place.worker(&[]);
    let job = place.wait_until_finished(&id);
    assert!(job.last_error.as_ref().is_some_and(|error| error.contains("job_timeout")), "{:?}", job.last_error);
    assert!(!lives(place.pid("all")));
    // And if its worker is killed meanwhile.
    std::fs::remove_file(place.path("all")).unwrap();
    place.enqueue(NewJob::raw("stops", "{\"n\":2}"));
    let program = place.pid("all");
    worker.signal(Signal::KILL);
    until("the program is dead", || !lives(program));
}

#[test]
fn a_supervisor_that_was_stopped_is_set_going_or_replaced() {
    let (place, id) = place();
    let worker = place.worker(&[]);
    let supervisor = parent_of(parent_of(place.pid("all")));
    rustix::process::kill_process(supervisor, Signal::STOP).unwrap();
    assert!(place.jobq().args(["cancel", &id]).output().unwrap().status.success());
    assert_eq!(place.wait_until_finished(&id).status, Status::Cancelled);
    assert!(!lives(place.pid("away")) && !lives(place.pid("all")));
    let again = place.enqueue(NewJob::raw("hangs", "{\"n\":2}"));
    assert_eq!(place.wait_until_finished(&again).status, Status::Completed);
    worker.stop();
}

#[test]
fn a_worker_that_waits_for_the_database_keeps_its_programs() {
    let place = Place::new();
    let ticks = "n=0; while ! [ -e go ]; do n=$((n+1)); echo $n > ticks; sleep 0.05; done";
    place.handler("ticks", ticks);
    let id = place.enqueue(NewJob::raw("ticks", "{}").max_attempts(1));
    let worker = place.worker(&["--lease", "1s"]);
    place.wait_for_file("ticks");
    let db = rusqlite::Connection::open(place.path(".jobq/jobq.db")).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Twice its lease.
    until("it has ticked for long", || place.read("ticks").trim().parse::<u32>().is_ok_and(|ticks| ticks > 40));
    db.execute_batch("ROLLBACK").unwrap();
    std::fs::write(place.path("go"), "").unwrap();
    assert_eq!(place.wait_until_finished(&id).status, Status::Completed);
    worker.stop();
}

#[test]
fn a_supervisor_goes_with_its_worker() {
    let place = Place::new();
    place.handler("short", "ps -o ppid= -p $PPID | tr -d ' ' > supervisor");
    let worker = place.worker(&[]);
    let id = place.enqueue_once("short", "{}");
    assert_eq!(place.wait_until_finished(&id).status, Status::Completed);
    let supervisor = place.pid("supervisor");
    assert!(lives(supervisor));
    worker.stop();
    assert!(!lives(supervisor));
}

/// Nothing of the program has run then, so it is not the job's fault.
#[test]
fn a_supervisor_that_ends_before_the_program_starts_costs_no_attempt() {
    let place = Place::new();
    place.handler("runs", "touch started");
    let id = place.enqueue_once("runs", "{}");
    let registry = Registry::new().with_programs(&ProgramHandlers::in_folder(place.handlers()));
    let supervisor = Some(Supervisor::program("/bin/false"));
    let options = WorkerOptions { supervisor, drain: true, ..WorkerOptions::default() };
    let worker = Worker::new(Arc::new(opened_again(&place)), registry, options).unwrap();
    worker.run(&Shutdown::new()).unwrap();
    let job = place.job(&id);
    assert_eq!((job.status, job.attempts), (Status::Pending, 0), "{:?}", job.last_error);
    assert!(job.last_error.unwrap().contains("supervisor_error"));
    // Drained workers leave what has to wait: the type is paused, so nobody tries again and again.
    assert!(!place.path("started").exists());
    assert!(rustix::process::dumpable_behavior().is_ok_and(|it| it == DumpableBehavior::Dumpable), "an application's");
}
