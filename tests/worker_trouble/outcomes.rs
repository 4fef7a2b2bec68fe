//! Outcomes that cannot come true are refused before anything is done.

use std::path::Path;
use std::sync::{Arc, Mutex};

use jobq::*;
use serde::{Deserialize, Serialize};

use super::world::*;

payload!(Doubled, "doubled");
struct DoubledHandler;
impl Handler for DoubledHandler {
    type Payload = Doubled;
    fn run(&self, ctx: &Context, _: Doubled) -> std::result::Result<Outcome<()>, HandlerError> {
        let staged = ctx.stage(b"the same for both")?;
        Ok(Outcome::new(()).put("a.txt", staged.clone()).put("b.txt", staged))
    }
}

fn files(root: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    std::fs::read_dir(root).unwrap().map(name).filter(|name| name != ".jobq").collect()
}

/// A staged file is moved to its place, so the second effect would find nothing
/// after the first is done.
#[test]
fn what_was_staged_once_cannot_be_put_twice() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(DoubledHandler);
    let queue = open(folder.path(), &registry);
    let id = queue.enqueue(Doubled { n: 1 }).unwrap().id;
    Worker::new(Arc::clone(&queue), registry, drain()).unwrap().run(&Shutdown::new()).unwrap();
    let job = queue.get(&id).unwrap();
    assert_eq!((job.status, job.outcome.is_none()), (Status::Failed, true), "nothing was decided");
    assert!(job.last_error.unwrap().starts_with("invalid_outcome: b.txt: "));
    assert_eq!(files(folder.path()), [""; 0], "nothing of it was done");
}

payload!(Hoard, "hoard");
struct HoardHandler(Mutex<Option<Staged>>);
impl Handler for HoardHandler {
    type Payload = Hoard;
    fn run(&self, ctx: &Context, _: Hoard) -> std::result::Result<Outcome<()>, HandlerError> {
        let mut hoard = self.0.lock().unwrap();
        if let Some(staged) = hoard.clone() {
            return Ok(Outcome::new(()).put("a.txt", staged));
        }
        *hoard = Some(ctx.stage(b"kept for later")?);
        Ok(Outcome::new(()))
    }
}

/// What a job has staged goes when it ends, so no other can count on it.
#[test]
fn what_another_job_has_staged_cannot_be_put() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new().with(HoardHandler(Mutex::default()));
    let queue = open(folder.path(), &registry);
    let ids: Vec<String> = (0..2).map(|n| queue.enqueue(Hoard { n }).unwrap().id).collect();
    let options = WorkerOptions { concurrency: 1, ..drain() };
    Worker::new(Arc::clone(&queue), registry, options).unwrap().run(&Shutdown::new()).unwrap();
    let [first, second] = [&ids[0], &ids[1]].map(|id| queue.get(id).unwrap());
    assert_eq!((first.status, second.status), (Status::Completed, Status::Failed));
    assert!(second.last_error.unwrap().starts_with("invalid_outcome: a.txt: "));
    assert_eq!(files(folder.path()), [""; 0]);
}
