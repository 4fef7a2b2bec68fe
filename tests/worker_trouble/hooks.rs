//! Hooks hear of every end.

use std::sync::{Arc, Mutex};

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
    let chattr =
        |flag: &str| std::process::Command::new("chattr").arg(flag).arg(folder.path().join("fixed")).status().unwrap();
    if !chattr("+i").success() {
        eprintln!("SKIPPED, NOT PROVED: this needs root and a filesystem with chattr +i");
        return;
    }
    let id = queue.enqueue(WithResult { n: 7 }).unwrap().id;
    Worker::new(Arc::clone(&queue), registry.clone(), drain()).unwrap().run(&Shutdown::new()).unwrap();
    chattr("-i");
    until("it may be applied again", || queue.store().outlook(&[]).unwrap().decided);
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
    let request = jobq::store::ClaimRequest { owner: lock.owner().clone(), types: vec!["loser".into()], limit: 1 };
    let claimed = queue.store().claim(request).unwrap().pop().unwrap();
    lock.start(0, claimed.lease.seq, claimed.lease.token).unwrap();
    drop(lock);
    Worker::new(Arc::clone(&queue), registry, drain()).unwrap().run(&Shutdown::new()).unwrap();
    assert_eq!(queue.get(&id).unwrap().status, Status::Failed);
    assert_eq!(heard.lock().unwrap().len(), 1, "on_failure was not called");
}
