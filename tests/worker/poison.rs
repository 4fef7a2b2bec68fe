//! A job that takes its worker with it, and those that happen to be near it.

use std::collections::HashMap;

use jobq::{Filter, Status};

use super::act::{Deed, act};
use super::child::Setup;
use super::harness::{Process, World};

const NEIGHBOURS: usize = 200;
const ATTEMPTS: u32 = 3;

#[test]
fn a_job_that_ends_its_worker_fails_alone_with_one_thread() {
    for place in [0, NEIGHBOURS / 2, NEIGHBOURS] {
        trial(1, place);
    }
}

#[test]
fn a_job_that_ends_its_worker_fails_alone_with_four_threads() {
    for place in [0, NEIGHBOURS / 2, NEIGHBOURS] {
        trial(4, place);
    }
}

#[test]
fn a_job_that_ends_its_worker_fails_alone_with_eight_threads() {
    for place in [0, NEIGHBOURS / 2, NEIGHBOURS] {
        trial(8, place);
    }
}

/// `place`: how many neighbours are queued before it.
fn trial(concurrency: usize, place: usize) {
    let world = World::new();
    let mut jobs: Vec<_> = (0..NEIGHBOURS).map(|_| act([]).max_attempts(ATTEMPTS)).collect();
    jobs.insert(place, act([Deed::Abort]).max_attempts(ATTEMPTS));
    let ids = world.queue.enqueue_many(jobs).unwrap();
    let poison = &ids[place].id;
    let mut deaths = 0;
    loop {
        let mut worker = Process::start(&Setup { concurrency, drain: true, ..world.setup("worker") });
        if worker.exit().success() {
            break;
        }
        deaths += 1;
        assert!(deaths <= ATTEMPTS, "it ends workers more often than it may be tried");
    }
    assert_eq!(deaths, ATTEMPTS);
    let mut runs: HashMap<String, u32> = HashMap::new();
    for line in world.log("run") {
        *runs.entry(line.split(' ').next().unwrap().to_owned()).or_default() += 1;
    }
    let mut begun_unseen = 0;
    for job in world.queue.list(&Filter { limit: 1_000, ..Filter::default() }).unwrap() {
        let ran = runs.get(&job.id).copied().unwrap_or(0);
        if job.id == *poison {
            assert_eq!((job.status, job.attempts, ran), (Status::Failed, ATTEMPTS, ATTEMPTS));
            assert!(job.last_error.unwrap().starts_with("worker_lost"));
            continue;
        }
        assert_eq!(job.status, Status::Completed, "{} of {concurrency}: {:?}", job.id, job.last_error);
        // The handler is called right after the attempt is on record; a process may die in between.
        assert!(job.attempts >= ran, "{} attempts, {ran} runs", job.attempts);
        begun_unseen += job.attempts - ran;
    }
    let most = u32::try_from(concurrency - 1).unwrap() * deaths;
    assert!(begun_unseen <= most, "{begun_unseen} attempts that jobs did not have, with {concurrency} threads");
    assert_eq!((world.staged(), world.lock_files()), (Vec::new(), Vec::new()));
}

#[test]
fn a_suspect_that_turns_out_well_does_not_keep_the_others_waiting() {
    let world = World::new();
    let go = world.outside("go");
    // Its worker is lost once; on its second and last attempt it runs apart from the others.
    let suspect = world.enqueue(act([Deed::AbortBefore(2)]).max_attempts(2));
    let mut first = Process::start(&world.setup("first"));
    first.exit();
    let long = world.enqueue(act([Deed::WaitFor(go.clone())]).priority(1));
    let mut second = Process::start(&Setup { concurrency: 4, ..world.setup("second") });
    second.hear(&format!("running {long}"));
    world.completed(&suspect);
    // The long job still runs; the other three threads are there for these.
    let others: Vec<String> = (0..8).map(|_| world.enqueue(act([]))).collect();
    for id in others {
        assert_eq!(world.completed(&id).attempts, 1);
    }
    assert_eq!(world.queue.get(&long).unwrap().status, Status::Claimed);
    std::fs::write(&go, "").unwrap();
    second.stop();
}

#[test]
fn while_a_suspect_runs_the_others_are_not_claimed_and_given_back_over_and_over() {
    let world = World::new();
    let go = world.outside("go");
    let suspect = world.enqueue(act([Deed::AbortBefore(2), Deed::WaitFor(go.clone())]).max_attempts(2));
    let mut first = Process::start(&world.setup("first"));
    first.exit();
    let mut second = Process::start(&Setup { concurrency: 4, poll_ms: 50, ..world.setup("second") });
    second.hear(&format!("running {suspect} 2"));
    let others: Vec<String> = (0..3).map(|_| world.enqueue(act([]))).collect();
    // A dozen sweeps, and time to give back what was claimed thirty times: it has had every occasion.
    std::thread::sleep(std::time::Duration::from_millis(600));
    for id in &others {
        let token = world.queue.get(id).unwrap().token;
        assert!(token <= 2, "claimed {token} times while it could not run");
    }
    std::fs::write(&go, "").unwrap();
    for id in &others {
        world.completed(id);
    }
    second.stop();
}
