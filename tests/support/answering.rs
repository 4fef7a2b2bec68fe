//! A worker of this process that answers every prompt itself.

use std::path::Path;
use std::sync::Arc;

use jobq::handlers::{ClaudeExtraction, ExtractedFile};
use jobq::{Context, Handler, HandlerError, Outcome, Queue, Registry, Retention, Shutdown, Worker, WorkerOptions};

struct Answers;

impl Handler for Answers {
    type Payload = ClaudeExtraction;

    fn run(&self, ctx: &Context, job: ClaudeExtraction) -> Result<Outcome<ExtractedFile>, HandlerError> {
        let content = ctx.stage(format!("answer to {}", job.prompt).as_bytes())?;
        Ok(Outcome::new(ExtractedFile::default()).put(job.target_path, content))
    }
}

/// Runs what can be run in the queue of this folder.
pub fn answer_all(root: &Path) {
    answer_all_keeping(root, Retention::default());
}

/// The same, and deletes what is not to be kept.
pub fn answer_all_keeping(root: &Path, retention: Retention) {
    let options = WorkerOptions { drain: true, retention, ..WorkerOptions::default() };
    let registry = Registry::builtin().with(Answers);
    let worker = Worker::new(Arc::new(Queue::open(root).unwrap()), registry, options).unwrap();
    worker.run(&Shutdown::new()).unwrap();
}
