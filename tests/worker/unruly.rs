//! Handlers that panic, never return, or do not listen.

use std::time::Duration;

use jobq::store::CancelOutcome;
use jobq::{Backoff, Status};

use super::act::{Deed, act, act_on, put};
use super::child::Setup;
use super::harness::{Process, World, until};

const SHORT: Backoff = Backoff { base_ms: 5, max_ms: 10 };

#[test]
fn a_panic_is_a_failed_attempt() {
    let world = World::new();
    let id = world.enqueue(act([put("a.txt", "never"), Deed::Panic]).max_attempts(2).backoff(SHORT));
    let mut worker = Process::start(&world.setup("worker"));
    let job = world.ended(&id);
    assert_eq!((job.status, job.attempts), (Status::Failed, 2));
    let error = job.last_error.unwrap();
    assert!(error.starts_with("handler_panic") && error.contains("as the test wants it"), "{error}");
    let next = world.enqueue(act([put("b.txt", "b")]));
    world.completed(&next);
    worker.stop();
    assert_eq!((world.staged(), world.files()), (Vec::new(), vec!["b.txt".to_owned()]));
}

#[test]
fn a_handler_that_obeys_its_timeout_is_rescheduled() {
    let world = World::new();
    let job = act([Deed::UntilToldToStop]).timeout(Duration::from_millis(50)).max_attempts(2).backoff(SHORT);
    let id = world.enqueue(job);
    let mut worker = Process::start(&world.setup("worker"));
    assert!(worker.hear(&format!("rescheduled {id} 1")).contains("job_timeout"));
    assert!(world.ended(&id).last_error.unwrap().starts_with("job_timeout"));
    worker.stop();
    assert!(!worker.hear_out().iter().any(|line| line.starts_with("thread_lost")));
}

#[test]
fn a_handler_that_calls_its_timeout_something_else_has_still_timed_out() {
    let world = World::new();
    let id = world.enqueue(act([Deed::UntilToldThenComplain]).timeout(Duration::from_millis(50)).max_attempts(1));
    let mut worker = Process::start(&world.setup("worker"));
    worker.hear(&format!("rescheduled {id} 1"));
    let error = world.queue.get(&id).unwrap().last_error.unwrap();
    assert!(error.starts_with("job_timeout") && error.contains("complaint"), "{error}");
    worker.stop();
}

#[test]
fn a_handler_that_never_returns_loses_its_job_and_its_thread_is_replaced() {
    let world = World::new();
    let go = world.outside("go");
    let job = act_on("a.txt", [put("a.txt", "{worker}"), Deed::WaitFor(go.clone())]);
    let id = world.enqueue(job.timeout(Duration::from_millis(100)).backoff(SHORT));
    let mut worker = Process::start(&world.setup("worker"));
    worker.hear(&format!("thread_lost {id}"));
    assert!(worker.hear(&format!("rescheduled {id} 1")).contains("job_timeout"));
    // The only thread is a new one, and both handlers return now: the first's word counts no more.
    std::fs::write(&go, "").unwrap();
    worker.hear(&format!("completed {id} 2"));
    let next = world.enqueue(act([]));
    worker.hear(&format!("completed {next} 1"));
    worker.stop();
    assert_eq!(world.queue.get(&id).unwrap().attempts, 2);
    let told = |words: &str| worker.heard.iter().filter(|line| line.starts_with(words)).count();
    assert_eq!((told("lease_lost"), told("completed")), (0, 2));
    assert_eq!((world.staged(), world.lock_files()), (Vec::new(), Vec::new()));
}

#[test]
fn a_worker_with_too_many_lost_threads_ends_and_gives_back_what_it_has() {
    let world = World::new();
    let never = || act([Deed::WaitFor(world.outside("never"))]).timeout(Duration::from_millis(50)).max_attempts(1);
    let stuck: Vec<String> = (0..2).map(|_| world.enqueue(never())).collect();
    let mut worker = Process::start(&world.setup("worker"));
    for id in &stuck {
        worker.hear(&format!("thread_lost {id}"));
    }
    assert_eq!(worker.exit().code(), Some(3));
    assert!(worker.hear_out().iter().any(|line| line.starts_with("error") && line.contains("did not stop")));
    for id in &stuck {
        let job = world.queue.get(id).unwrap();
        assert_eq!((job.status, job.attempts), (Status::Failed, 1), "{:?}", job.last_error);
        assert!(job.last_error.unwrap().starts_with("job_timeout"));
    }
    assert_eq!(world.lock_files(), [""; 0]);
}

#[test]
fn threads_that_come_back_late_do_not_add_up() {
    let world = World::new();
    let mut worker = Process::start(&world.setup("worker"));
    for round in 0..3 {
        let go = world.outside(&format!("go-{round}"));
        let late = act([Deed::WaitFor(go.clone()), Deed::Note]).timeout(Duration::from_millis(20)).max_attempts(1);
        let id = world.enqueue(late);
        worker.hear(&format!("thread_lost {id}"));
        std::fs::write(&go, "").unwrap();
        until("it has come back", || world.log("note").len() == round + 1);
    }
    let next = world.enqueue(act([]));
    world.completed(&next);
    worker.stop();
}

#[test]
fn a_cancel_before_the_decision_wins_whether_the_handler_listens_or_not() {
    let world = World::new();
    let go = world.outside("go");
    let listens = world.enqueue(act([put("a.txt", "never"), Deed::UntilToldToStop]));
    let ignores = world.enqueue(act([put("b.txt", "never"), Deed::WaitFor(go.clone())]));
    let mut worker = Process::start(&Setup { concurrency: 2, poll_ms: 50, ..world.setup("worker") });
    for id in [&listens, &ignores] {
        until("it runs", || world.runs(id) == 1);
        assert_eq!(world.queue.cancel(id).unwrap().outcome, CancelOutcome::Requested);
    }
    worker.hear(&format!("cancelled {listens}"));
    std::fs::write(&go, "").unwrap();
    worker.hear(&format!("cancelled {ignores}"));
    worker.stop();
    for id in [&listens, &ignores] {
        assert_eq!(world.queue.get(id).unwrap().status, Status::Cancelled);
    }
    assert_eq!((world.files(), world.staged()), (Vec::new(), Vec::new()));
    assert_eq!(world.log("failure"), [""; 0], "to be cancelled is not to fail");
}

#[test]
fn a_cancel_after_the_decision_comes_too_late() {
    let world = World::new();
    let id = world.enqueue(act([put("a.txt", "a")]));
    Process::start(&Setup { dies_when_decided: true, ..world.setup("first") }).exit();
    assert!(world.queue.cancel(&id).unwrap_err().to_string().contains("decided"));
    let mut second = Process::start(&world.setup("second"));
    world.completed(&id);
    second.stop();
    assert_eq!(world.read("a.txt").unwrap(), "a");
}
