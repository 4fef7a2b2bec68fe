//! Files that programs declare: decided and applied like those of any handler.

use std::os::unix::fs::PermissionsExt as _;

use jobq::{NewJob, ReconcileOptions, Status};

use rustix::process::Signal;

use super::harness::{Place, assert_failed, until};

fn put(from: &str, to: &str) -> String {
    format!("echo '{{\"put\":\"{to}\",\"from\":\"{from}\"}}' >&$JOBQ_FD\n")
}

#[test]
fn declared_files_are_put_and_removed_and_reconciled() {
    let place = Place::new();
    std::fs::write(place.path("old.txt"), "old").unwrap();
    place.handler(
        "work",
        &(r#"mkdir "$JOBQ_STAGE/deep"; printf new > "$JOBQ_STAGE/deep/x"; printf tool > "$JOBQ_STAGE/tool"; chmod 755 "$JOBQ_STAGE/tool"
"#
        .to_owned()
            + &put("deep/x", "out/x.txt")
            + &put("tool", "bin/tool")
            + "echo '{\"remove\":\"old.txt\"}' >&$JOBQ_FD; printf own > by_itself.txt"),
    );
    let job = place.run_once("work", "{}");
    assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
    assert_eq!(place.read("out/x.txt"), "new");
    assert!(!place.path("old.txt").exists());
    assert_eq!(place.path("bin/tool").metadata().unwrap().permissions().mode() & 0o777, 0o755);
    place.assert_no_litter();
    // Three effects are on record; what it wrote by itself is its own affair.
    std::fs::write(place.path("out/x.txt"), "damaged").unwrap();
    let mut found = Vec::new();
    let sums = place.queue.reconcile(&ReconcileOptions::default(), |difference, _| {
        found.extend(difference.map(|difference| difference.path.clone()));
        true
    });
    assert_eq!(sums.unwrap().checked, 3);
    assert_eq!(found, ["out/x.txt"]);
}

#[test]
fn nothing_happens_to_files_unless_the_program_says_it_went_well() {
    let place = Place::new();
    place.handler("fails", &format!("printf x > \"$JOBQ_STAGE/x\"\n{}exit 65", put("x", "x.txt")));
    assert_failed(&place.run_once("fails", "{}"), &["exit code 65"]);
    assert!(!place.path("x.txt").exists());
    place.assert_no_litter();
}

#[test]
fn only_plain_files_of_the_stage_folder_are_taken() {
    let place = Place::new();
    std::fs::write(place.path("outside"), "outside").unwrap();
    let cases = [
        ("true", "is not in the stage folder"),
        ("ln -s \"$JOBQ_ROOT/outside\" \"$JOBQ_STAGE/x\"", "symbolic link"),
        ("ln \"$JOBQ_ROOT/outside\" \"$JOBQ_STAGE/x\"", "another name"),
        ("mkfifo \"$JOBQ_STAGE/x\"", "a FIFO"),
        ("mkdir \"$JOBQ_STAGE/x\"", "a folder"),
    ];
    for (number, (make, word)) in cases.into_iter().enumerate() {
        place.handler("makes", &format!("{make}\n{}", put("x", "taken")));
        let job = place.run_once("makes", &format!("{{\"n\":{number}}}"));
        assert_failed(&job, &[word]);
        assert!(!place.path("taken").exists());
    }
    place.handler("linked_folder", &format!("ln -s \"$JOBQ_ROOT\" \"$JOBQ_STAGE/d\"\n{}", put("d/outside", "taken")));
    assert_eq!(place.run_once("linked_folder", "{}").status, Status::Failed);
    place.handler("twice", &format!("printf x > \"$JOBQ_STAGE/x\"\n{}{}", put("x", "a"), put("x", "b")));
    assert_failed(&place.run_once("twice", "{}"), &["named before"]);
    assert!(!place.path("a").exists(), "all or nothing");
    assert_eq!(place.read("outside"), "outside");
    place.assert_no_litter();
}

#[test]
fn a_path_that_another_job_holds_is_waited_for() {
    let place = Place::new();
    place.handler("puts", &format!("printf new > \"$JOBQ_STAGE/x\"\n{}", put("x", "x.txt")));
    // Two of them at the same path at once: both end well, one after the other.
    let ids: Vec<_> = (0..6).map(|n| place.enqueue(NewJob::raw("puts", format!("{{\"n\":{n}}}")))).collect();
    place.drain();
    for id in ids {
        let job = place.job(&id);
        assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
    }
    assert_eq!(place.read("x.txt"), "new");
}

/// It may do so to itself, and not to those that come after it.
#[test]
fn a_program_that_removes_the_stage_harms_no_other_job() {
    let place = Place::new();
    place.handler("removes", "rm -rf \"$JOBQ_ROOT/.jobq/stage\"");
    place.handler("puts", &format!("printf x > \"$JOBQ_STAGE/x\"\n{}", put("x", "x.txt")));
    let worker = place.worker(&["--concurrency", "1"]);
    place.wait_until_finished(&place.enqueue_once("removes", "{}"));
    for (job_type, payload) in [("puts", "{}"), ("create_file", r#"{"path":"c.txt","content":"c"}"#)] {
        let job = place.wait_until_finished(&place.enqueue_once(job_type, payload));
        assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
    }
    assert_eq!((place.read("x.txt"), place.read("c.txt")), ("x".to_owned(), "c".to_owned()));
    worker.stop();
    place.assert_no_litter();
}

/// Whoever it runs as: root may do everything, so these run as somebody else.
#[test]
fn a_program_that_takes_its_own_rights_away_leaves_nothing_behind() {
    let place = Place::new();
    let cases = [
        ("top", "printf x > \"$JOBQ_STAGE/x\"; chmod 000 \"$JOBQ_STAGE\"", "x"),
        ("inner", "mkdir \"$JOBQ_STAGE/d\"; printf x > \"$JOBQ_STAGE/d/x\"; chmod 000 \"$JOBQ_STAGE/d\"", "d/x"),
        ("all", "printf x > \"$JOBQ_STAGE/x\"; chmod 500 \"$JOBQ_STAGE/..\"", "x"),
    ];
    let deep = "cd \"$JOBQ_STAGE\"; i=0; while [ $i -lt 100 ]; do mkdir d; chmod 500 .; cd d; i=$((i+1)); done";
    let ids = cases.map(|(name, script, from)| {
        place.handler(name, &format!("{script}\n{}", put(from, &format!("{name}.txt"))));
        place.enqueue_once(name, "{}")
    });
    place.handler("deep", deep);
    let deep = place.enqueue_once("deep", "{}");
    let output = place.as_nobody(&mut place.jobq()).args(["worker", "--drain", "--concurrency", "1"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    for (id, (name, ..)) in ids.iter().zip(cases) {
        let job = place.job(id);
        assert_eq!(job.status, Status::Completed, "{name}: {:?}", job.last_error);
        assert_eq!(place.read(&format!("{name}.txt")), "x");
    }
    assert_eq!(place.job(&deep).status, Status::Completed);
    place.assert_no_litter();
}

/// What others have decided is put in place all the same, by that worker or the next.
#[test]
fn a_program_that_takes_the_rights_on_the_stage_away_harms_no_decided_job() {
    for worker_dies in [false, true] {
        let place = Place::new();
        // It cannot be put in place yet, so it stays decided.
        let closes = "mkdir closed; chmod 500 closed; printf x > \"$JOBQ_STAGE/x\"\n";
        place.handler("puts", &(closes.to_owned() + &put("x", "closed/x.txt")));
        place.handler("locks", "chmod 000 \"$JOBQ_STAGE/..\"; chmod 700 closed");
        let work = || place.worker_as_nobody(&["--concurrency", "1"]);
        let (puts, worker) = (place.enqueue_once("puts", "{}"), work());
        until("it is decided and put off", || {
            place.job(&puts).last_error.is_some_and(|error| error.contains("closed"))
        });
        let locks = place.wait_until_finished(&place.enqueue_once("locks", "{}"));
        assert_eq!(locks.status, Status::Completed, "{:?}", locks.last_error);
        let worker = if worker_dies {
            worker.signal(Signal::KILL);
            drop(worker);
            work()
        } else {
            worker
        };
        let puts = place.wait_until_finished(&puts);
        assert_eq!((puts.status, puts.attempts), (Status::Completed, 1), "{:?}", puts.last_error);
        assert_eq!(place.read("closed/x.txt"), "x");
        worker.stop();
        place.assert_no_litter();
    }
}

#[test]
fn a_file_is_put_without_the_bits_that_lend_rights() {
    let place = Place::new();
    let script = "printf x > \"$JOBQ_STAGE/x\"; chmod 6755 \"$JOBQ_STAGE/x\"\n".to_owned();
    place.handler("lends", &(script + &put("x", "x.txt")));
    assert_eq!(place.run_once("lends", "{}").status, Status::Completed);
    assert_eq!(place.path("x.txt").metadata().unwrap().permissions().mode() & 0o7777, 0o755);
}
