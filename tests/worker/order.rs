//! Order on paths, whatever fails in between and however many work at it.

use jobq::handlers::{CreateFile, DeleteFile};
use jobq::{Backoff, Filter, NewJob, Status};

use super::child::Setup;
use super::harness::{Process, World};

const PATHS: usize = 500;

#[test]
fn every_path_ends_as_its_last_job_says_though_jobs_fail_at_random_in_two_processes() {
    let world = World::new();
    let mut jobs = Vec::new();
    for n in 0..PATHS {
        let path = format!("{}/{n}.txt", n % 7);
        let first = format!("first of {n}");
        let other = CreateFile { overwrite: true, ..CreateFile::text(&path, format!("last of {n}")) };
        jobs.push(NewJob::of(&CreateFile::text(&path, &first)));
        jobs.push(NewJob::of(&DeleteFile::at(&path)));
        jobs.push(NewJob::of(&CreateFile::text(&path, &first)));
        // Not all paths end with the same kind of job.
        jobs.push(if n % 3 == 0 { NewJob::of(&DeleteFile::at(&path)) } else { NewJob::of(&other) });
    }
    let short = Backoff { base_ms: 10, max_ms: 40 };
    let jobs = jobs.into_iter().map(|job| job.max_attempts(50).backoff(short));
    world.queue.enqueue_many(jobs).unwrap();
    let mut workers = ["left", "right"].map(|name| {
        let faults = Some(if name == "left" { 1 } else { 2 });
        Process::start(&Setup { concurrency: 8, faults, ..world.setup(name) })
    });
    super::harness::until("all jobs have ended", || world.queue.stats().unwrap().outstanding.is_empty());
    let mut injected = 0;
    for worker in &mut workers {
        worker.stop();
        injected += worker.hear_out().iter().filter(|line| line.starts_with("rescheduled")).count();
    }
    assert!(injected > PATHS, "only {injected} failures were injected");
    let jobs = world.queue.list(&Filter { limit: 10_000, ..Filter::default() }).unwrap();
    assert_eq!(jobs.len(), PATHS * 4);
    for job in jobs {
        assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
    }
    for n in 0..PATHS {
        let expected = (n % 3 != 0).then(|| format!("last of {n}"));
        assert_eq!(world.read(&format!("{}/{n}.txt", n % 7)), expected, "{n}");
    }
    assert_eq!((world.staged(), world.lock_files()), (Vec::new(), Vec::new()));
}
