//! An application's own job type: payload, handler, worker, result.
//!
//! ```text
//! cargo run --example custom_handler             # in a scratch folder
//! cargo run --example custom_handler -- FOLDER   # in a folder of yours
//! ```
//!
//! `word_count` reads a text below the root, writes what it counted beside it
//! and queues a job that adds the count to a summary. All three happen or none
//! does, whenever the process dies.

use std::path::PathBuf;
use std::sync::Arc;

use jobq::handlers::CreateFile;
use jobq::{
    Context, Ended, Handler, HandlerError, Hold, Outcome, Payload, QueueOptions, Registry, Shutdown, Worker,
    WorkerOptions,
};
use serde::{Deserialize, Serialize};

/// What a job carries. It is checked when it is queued and again when it runs.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WordCount {
    path: String,
}

/// What a completed job leaves.
#[derive(Debug, Serialize, Deserialize)]
struct Counted {
    words: usize,
}

impl Payload for WordCount {
    const TYPE: &'static str = "word_count";
    type Output = Counted;

    fn validate(&self) -> jobq::Result<()> {
        jobq::normalise_path(&self.path).map(drop)
    }

    /// Two counts of one text never run at the same time, and end in order.
    fn holds(&self) -> jobq::Result<Vec<Hold>> {
        Ok(vec![Hold::path(&format!("{}.count.json", self.path))?])
    }
}

struct Counter;

impl Handler for Counter {
    type Payload = WordCount;

    fn run(&self, ctx: &Context, job: WordCount) -> Result<Outcome<Counted>, HandlerError> {
        let text = match std::fs::read_to_string(ctx.root().join(&job.path)) {
            Ok(text) => text,
            // No other attempt can help; anything else may go away.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(HandlerError::permanent(format_args!("{} is not there", job.path)).with_code("no_text"));
            }
            Err(e) => return Err(e.into()),
        };
        let mut words = 0;
        for line in text.lines() {
            // A safe point: cancelled, timed out or shutting down.
            ctx.check()?;
            words += line.split_whitespace().count();
        }
        ctx.progress(90, "counted");
        // Staged, not written: jobq puts it in place when what this returns is durable.
        let count = ctx.stage(format!("{{\"words\":{words}}}\n").as_bytes())?;
        let mut summary = CreateFile::text("summary.txt", format!("{}: {words} words\n", job.path));
        summary.overwrite = true;
        Ok(Outcome::new(Counted { words }).put(format!("{}.count.json", job.path), count).follow_up(summary))
    }

    /// Best effort, after the end is durable. What must happen is a follow-up job.
    fn on_failure(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
        eprintln!("{} failed: {}", ended.job.id, ended.failure.map_or_else(String::new, |f| f.message.clone()));
        Ok(())
    }
}

fn main() -> jobq::Result<()> {
    let scratch;
    let folder = match std::env::args_os().nth(1) {
        Some(folder) => PathBuf::from(folder),
        None => {
            scratch = tempfile::tempdir().map_err(|e| jobq::Error::new(jobq::ErrorKind::Io, e.to_string()))?;
            let text = "Everything that is accepted\nis done once.\n";
            std::fs::write(scratch.path().join("text.txt"), text)
                .map_err(|e| jobq::Error::new(jobq::ErrorKind::Io, e.to_string()))?;
            scratch.path().to_owned()
        }
    };
    // The built-in handlers and ours. The queue is opened with the same types, so that payloads are checked when queued.
    let registry = Registry::builtin().with(Counter);
    let queue = Arc::new(QueueOptions::in_folder(&folder).create(true).types(registry.types()).open()?);
    let job = queue.enqueue(WordCount { path: "text.txt".to_owned() })?;

    let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
    Worker::new(Arc::clone(&queue), registry, options)?.run(&Shutdown::new())?;

    println!("{:?}", queue.result::<WordCount>(&job.id)?);
    for name in ["text.txt.count.json", "summary.txt"] {
        print!("{name}: {}", std::fs::read_to_string(folder.join(name)).unwrap_or_else(|e| format!("{e}\n")));
    }
    Ok(())
}
