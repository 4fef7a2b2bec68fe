//! Hooks hear of every end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jobq::store::Store as _;
use jobq::*;
use serde::{Deserialize, Serialize};

use super::world::*;

struct Hooked(Arc<Mutex<Vec<String>>>);
#[derive(Serialize, Deserialize)]
struct WithResult {
    n: u32,
}
impl Payload for WithResult {
    const TYPE: &'static str = "with_result";
    type Output = u32;
}
impl Handler for Hooked {
    type Payload = WithResult;
    fn run(&self, ctx: &Context, job: WithResult) -> std::result::Result<Outcome<u32>, HandlerError> {
        let staged = ctx.stage(b"x")?;
        Ok(Outcome::new(job.n).put("fixed/x", staged))
    }
    fn on_success(&self, ended: &Ended<'_>) -> std::result::Result<(), HandlerError> {
        self.0.lock().unwrap().push(format!("success {:?}", ended.result));
        Ok(())
    }
    fn on_failure(&self, ended: &Ended<'_>) -> std::result::Result<(), HandlerError> {
        self.0.lock().unwrap().push(format!("failure {:?}", ended.failure.map(|f| f.code.clone())));
        Ok(())
    }
}

/// Hooks of a job that was applied by another worker, or after a deferral, get its result.
#[test]
fn on_success_has_the_result_of_a_job_that_was_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let registry = Registry::new().with(Hooked(Arc::clone(&heard)));
    let queue = open(folder.path(), &registry);
    std::fs::create_dir(folder.path().join("fixed")).unwrap();
    let chattr = |flag: &str| std::process::Command::new("chattr").arg(flag).arg(folder.path().join("fixed")).status();
    if !chattr("+i").is_ok_and(|status| status.success()) {
        crate::skipped::skipped("hooks after a deferral", "it takes root and a filesystem with chattr +i");
        return;
    }
    let id = queue.enqueue(WithResult { n: 7 }).unwrap().id;
    Worker::new(Arc::clone(&queue), registry.clone(), drain()).unwrap().run(&Shutdown::new()).unwrap();
    chattr("-i").unwrap();
    until("it may be applied again", || queue.store().outlook(&[], &jobq::store::Limits::new()).unwrap().decided);
    Worker::new(Arc::clone(&queue), registry, drain()).unwrap().run(&Shutdown::new()).unwrap();
    assert_eq!(queue.get(&id).unwrap().status, Status::Completed);
    assert_eq!(*heard.lock().unwrap(), ["success Some(\"7\")"]);
}

payload!(Loser, "loser");
struct LoserHandler(Arc<Mutex<Vec<String>>>);
impl Handler for LoserHandler {
    type Payload = Loser;
    fn run(&self, _: &Context, _: Loser) -> std::result::Result<Outcome<()>, HandlerError> {
        Ok(Outcome::new(()))
    }
    fn on_failure(&self, ended: &Ended<'_>) -> std::result::Result<(), HandlerError> {
        self.0.lock().unwrap().push(format!("{:?}", ended.failure.map(|f| f.code.clone())));
        Ok(())
    }
}

/// A job whose last worker was lost has failed for good: its hook is called and
/// somebody tells of it.
#[test]
fn on_failure_is_called_for_a_job_that_lost_its_worker_for_the_last_time() {
    let folder = tempfile::tempdir().unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let registry = Registry::new().with(LoserHandler(Arc::clone(&heard)));
    let queue = open(folder.path(), &registry);
    let id = queue.enqueue(NewJob::from(Loser { n: 1 }).max_attempts(1)).unwrap().id;
    let lock = jobq::liveness::OwnerLock::acquire(&queue.owners_folder()).unwrap();
    let request = jobq::store::ClaimRequest {
        owner: lock.owner().clone(),
        types: vec!["loser".into()],
        limit: 1,
        limits: jobq::store::Limits::new(),
    };
    let claimed = queue.store().claim(request).unwrap().pop().unwrap();
    lock.start(0, claimed.lease.seq, claimed.lease.token).unwrap();
    drop(lock);
    Worker::new(Arc::clone(&queue), registry, drain()).unwrap().run(&Shutdown::new()).unwrap();
    assert_eq!(queue.get(&id).unwrap().status, Status::Failed);
    assert_eq!(heard.lock().unwrap().len(), 1, "on_failure was not called");
}

/// Time that passes only as far as a hook waits for it.
struct Until(Instant, Mutex<(Duration, Duration)>);
impl Until {
    /// Lets so much time pass, by being looked at.
    fn pass(&self, time: Duration) {
        let end = {
            let mut times = self.1.lock().unwrap();
            times.1 = times.0 + time;
            times.1
        };
        until("the time has passed", || self.1.lock().unwrap().0 >= end);
    }
}
impl jobq::worker::Ticks for Until {
    fn now(&self) -> Instant {
        let mut times = self.1.lock().unwrap();
        times.0 = (times.0 + Duration::from_secs(1)).min(times.1);
        self.0 + times.0
    }
    fn wait(&self, bell: &jobq::worker::Bell, _: Instant) {
        bell.wait(Instant::now() + Duration::from_millis(20));
    }
}

payload!(Slow, "slow");
struct SlowHook(Arc<Until>, Arc<AtomicUsize>);
impl Handler for SlowHook {
    type Payload = Slow;
    fn run(&self, _: &Context, _: Slow) -> std::result::Result<Outcome<()>, HandlerError> {
        Ok(Outcome::new(()))
    }
    fn on_success(&self, _: &Ended<'_>) -> std::result::Result<(), HandlerError> {
        self.0.pass(Duration::from_secs(8));
        self.1.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// A worker that has nothing else to do leaves a hook that hangs, not many that are slow.
#[test]
fn slow_hooks_are_all_called_before_a_drain_ends() {
    let folder = tempfile::tempdir().unwrap();
    let ticks = Arc::new(Until(Instant::now(), Mutex::default()));
    let called = Arc::new(AtomicUsize::new(0));
    let registry = Registry::new().with(SlowHook(Arc::clone(&ticks), Arc::clone(&called)));
    let queue = open(folder.path(), &registry);
    for n in 0..5 {
        queue.enqueue(Slow { n }).unwrap();
    }
    let worker = Worker::new(Arc::clone(&queue), registry, drain()).unwrap().ticks(ticks);
    worker.run(&Shutdown::new()).unwrap();
    assert_eq!(called.load(Ordering::SeqCst), 5);
}
