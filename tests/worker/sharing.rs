//! Several workers on one database.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jobq::clock::ManualClock;
use jobq::{Filter, NewJob, Status};

use super::act::{Deed, act};
use super::child::Setup;
use super::harness::{Process, World, until};
use super::inside::{Inside, queue_with_clock};

#[test]
fn four_processes_run_every_job_exactly_once() {
    let world = World::new();
    world.queue.enqueue_many((0..4_000).map(|_| act([]))).unwrap();
    let names = ["a", "b", "c", "d"];
    let mut workers = names.map(|name| Process::start(&Setup { concurrency: 2, ..world.setup(name) }));
    let owners: HashSet<String> = workers.iter_mut().map(|worker| worker.hear("started")).collect();
    assert_eq!(owners.len(), 4);
    until("all jobs have ended", || world.queue.stats().unwrap().outstanding.is_empty());
    for worker in &mut workers {
        worker.stop();
    }
    let mut runs: HashMap<String, usize> = HashMap::new();
    for line in world.log("run") {
        *runs.entry(line.split(' ').next().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!(runs.len(), 4_000);
    assert!(runs.values().all(|&times| times == 1), "a job ran twice");
    for job in world.queue.list(&Filter { limit: 5_000, ..Filter::default() }).unwrap() {
        assert_eq!((job.status, job.attempts), (Status::Completed, 1));
    }
}

#[test]
fn long_jobs_do_not_queue_up_in_one_worker_while_another_is_idle() {
    for concurrency in [1, 2] {
        let world = World::new();
        // Many short ones, so that both claim far ahead.
        world.queue.enqueue_many((0..600).map(|_| act([]))).unwrap();
        let mut one = Process::start(&Setup { concurrency, ..world.setup("one") });
        until("one is at full speed", || world.queue.stats().unwrap().outstanding.is_empty());
        let go = world.outside("go");
        let longs = world.queue.enqueue_many((0..concurrency * 2).map(|_| act([Deed::WaitFor(go.clone())]))).unwrap();
        let mut two = Process::start(&Setup { concurrency, ..world.setup("two") });
        // Nobody lets go before all of them run at the same time, which takes both workers.
        until("all long jobs run", || longs.iter().all(|job| world.runs(&job.id) == 1));
        let workers: HashSet<String> = world
            .log("run")
            .iter()
            .filter_map(|line| {
                let mut words = line.split(' ');
                let id = words.next()?;
                longs.iter().any(|job| job.id == id).then(|| words.nth(1).unwrap().to_owned())
            })
            .collect();
        assert_eq!(workers.len(), 2, "both run some");
        std::fs::write(&go, "").unwrap();
        for job in longs {
            assert_eq!(world.completed(&job.id).attempts, 1);
        }
        one.stop();
        two.stop();
    }
}

#[test]
fn an_owner_is_named_by_host_process_and_a_random_part() {
    let world = World::new();
    let go = world.outside("go");
    let id = world.enqueue(act([Deed::WaitFor(go.clone())]));
    let mut worker = Process::start(&world.setup("worker"));
    let name = worker.hear("started");
    worker.hear("running");
    assert_eq!(world.queue.get(&id).unwrap().locked_by.unwrap(), name);
    let mut parts = name.rsplitn(3, '-');
    assert!(parts.next().unwrap().len() >= 10, "{name}");
    assert_eq!(parts.next().unwrap(), worker.pid().to_string());
    assert!(!parts.next().unwrap().is_empty());
    std::fs::write(&go, "").unwrap();
    worker.stop();
}

#[test]
fn a_type_that_nobody_knows_stays_and_is_told_once() {
    let world = World::new();
    let strange = world.enqueue(NewJob::raw("strange", "{}"));
    let mut worker = Process::start(&Setup { poll_ms: 20, ..world.setup("worker") });
    assert_eq!(worker.hear("unknown_type"), "strange 0");
    for _ in 0..20 {
        let id = world.enqueue(act([]));
        worker.hear(&format!("completed {id}"));
    }
    worker.stop();
    let told = worker.hear_out().iter().filter(|line| line.starts_with("unknown_type")).count();
    assert_eq!(told, 1);
    assert_eq!(world.queue.get(&strange).unwrap().status, Status::Pending);
}

#[test]
fn a_worker_reports_unknown_types_at_most_once_a_minute_with_their_number() {
    let world = World::new();
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let queue = queue_with_clock(&world, &clock, Duration::from_secs(30));
    let queue_types =
        |types: &[&str]| drop(queue.enqueue_many(types.iter().map(|name| NewJob::raw(*name, "{}"))).unwrap());
    queue_types(&["a", "b", "c"]);
    let mut worker = Inside::start(&Setup { poll_ms: 1, ..world.setup("worker") }, &queue, None);
    // Each of these jobs is claimed after another look at what waits.
    let run_some_jobs = |worker: &mut Inside| {
        for _ in 0..20 {
            let id = queue.enqueue(act([])).unwrap().id;
            worker.hear(&format!("completed {id}"));
        }
    };
    assert_eq!(worker.hear("unknown_type"), "a 2");
    for (types, passed) in [(&["d"][..], 0), (&["e", "f", "a"], 59_999)] {
        queue_types(types);
        clock.advance(passed);
        run_some_jobs(&mut worker);
    }
    clock.advance(1);
    assert_eq!(worker.hear("unknown_type"), "d 2");
    // A clock that was set back keeps nobody silent for long.
    clock.advance(-3_600_000);
    queue_types(&["g"]);
    assert_eq!(worker.hear("unknown_type"), "g 0");
    worker.stop();
    assert_eq!(worker.heard.iter().filter(|line| line.starts_with("unknown_type")).count(), 3, "{:?}", worker.heard);
}

#[test]
fn a_worker_that_drains_leaves_nothing_that_its_own_jobs_made_possible() {
    let world = World::new();
    // Each is held by the one before it, so nothing else is claimable while one runs.
    let chain: Vec<_> = (0..30).map(|_| super::act::act_on("a.txt", [super::act::put("a.txt", "{worker}")])).collect();
    for _ in 0..5 {
        let ids = world.queue.enqueue_many((0..30).map(|_| act([]).lane("one"))).unwrap();
        let mut worker = Process::start(&Setup { drain: true, concurrency: 4, ..world.setup("worker") });
        assert!(worker.exit().success());
        for job in ids {
            assert_eq!(world.queue.get(&job.id).unwrap().status, Status::Completed);
        }
    }
    let ids = world.queue.enqueue_many(chain).unwrap();
    let mut worker = Process::start(&Setup { drain: true, concurrency: 4, ..world.setup("worker") });
    assert!(worker.exit().success());
    for job in ids {
        assert_eq!(world.queue.get(&job.id).unwrap().status, Status::Completed);
    }
}
