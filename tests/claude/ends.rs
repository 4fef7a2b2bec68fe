//! Runs that do not end by themselves: nothing of them is left.

use jobq::{NewJob, Status};
use std::time::Duration;

use super::world::{World, ask, completed, is_alive, until};

/// The process ids of the program and of what it has started, once it hangs.
fn hanging(world: &World) -> [String; 2] {
    until("it hangs", || world.beside("hangs").exists());
    ["hangs", "grandchild"].map(|name| std::fs::read_to_string(world.beside(name)).unwrap())
}

#[track_caller]
fn is_over(pids: [String; 2]) {
    for pid in pids {
        until("a process is gone", || !is_alive(&pid));
    }
}

#[test]
fn what_the_program_leaves_running_ends_with_it() {
    let world = World::new("grandchild");
    let job = world.one_attempt(&ask("p"));
    assert_eq!(completed(&job)["size"], "with company".len());
    let pid = std::fs::read_to_string(world.beside("grandchild")).unwrap();
    until("the grandchild is gone", || !is_alive(&pid));
}

#[test]
fn a_run_that_takes_too_long_is_ended_with_all_that_it_has_started() {
    let world = World::new("hang");
    let job = NewJob::of(&ask("p")).timeout(Duration::from_secs(2)).max_attempts(1);
    let id = world.enqueue(job);
    let _worker = world.worker();
    let pids = hanging(&world);
    let job = world.ended(&id);
    assert_eq!(job.status, Status::Failed);
    assert!(job.last_error.as_ref().unwrap().contains("job_timeout"), "{:?}", job.last_error);
    is_over(pids);
}

#[test]
fn a_cancelled_run_is_ended_with_all_that_it_has_started() {
    let world = World::new("hang");
    let id = world.enqueue(ask("p"));
    let _worker = world.worker();
    let pids = hanging(&world);
    world.queue.cancel(&id).unwrap();
    assert_eq!(world.ended(&id).status, Status::Cancelled);
    is_over(pids);
}

#[test]
fn nothing_outlives_a_worker_that_is_killed() {
    let world = World::new("hang success");
    let id = world.enqueue(ask("p"));
    let worker = world.worker();
    let pids = hanging(&world);
    drop(worker);
    is_over(pids);
    // Another worker takes it when the supervisor has let go of the lock, a moment later.
    let _another = world.worker();
    let job = world.queue.wait(&id, Duration::from_secs(60)).unwrap().expect("it runs again");
    assert_eq!(completed(&job)["path"], "out/a.md");
}
