//! A small application: requirements kept as JSON files. Each save also queues
//! a readable companion file and an extraction, accepted with it as one.
//!
//! ```text
//! cargo run --example requirements             # in a scratch folder
//! cargo run --example requirements -- FOLDER   # in a folder of yours
//! ```
//!
//! `requirements.py` and `requirements.mjs` are the same application on the
//! command line; all three leave the same files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jobq::handlers::{ClaudeExtraction, CreateFile};
use jobq::{
    Accepted, Draft, Expect, Filter, Queue, Registry, Result, Shutdown, Status, Worker, WorkerOptions, printable,
};
use serde::{Deserialize, Serialize};

const FILE: &str = "data/REQ-1.json";

#[derive(Serialize, Deserialize)]
struct Requirement {
    id: String,
    title: String,
    text: String,
    revision: u32,
}

/// What an edit does, whoever makes it: one more sentence.
fn add(requirement: Option<Requirement>, sentence: &str) -> Requirement {
    let Some(old) = requirement else {
        let (id, title) = ("REQ-1".to_owned(), "Invoices are numbered".to_owned());
        return Requirement { id, title, text: sentence.to_owned(), revision: 1 };
    };
    Requirement { text: format!("{} {sentence}", old.text), revision: old.revision + 1, ..old }
}

/// What has to happen when a requirement was saved.
fn side_effects(tx: &mut Draft, requirement: &Requirement) -> Result<()> {
    let Requirement { id, title, text, .. } = requirement;
    let companion = CreateFile::text(format!("out/{id}.md"), format!("# {title}\n\n{text}\n"));
    tx.enqueue(CreateFile { overwrite: true, ..companion })?;
    let prompt = format!("List what can be tested in this requirement, as JSON:\n\n{text}");
    tx.enqueue(ClaudeExtraction::new(id, prompt, format!("extracted/{id}.json")))
}

/// Saves what was made of a file that was read before; refused, with nothing
/// written or queued, if that file has changed since.
fn save(queue: &Queue, requirement: &Requirement, read: &Expect) -> Result<Accepted> {
    let fill = |tx: &mut Draft| {
        tx.expect(FILE, read.clone())?;
        tx.write_json(FILE, requirement)?;
        side_effects(tx, requirement)
    };
    match queue.commit(fill) {
        // The disk failed in the moment of acceptance. Asked again by its id, the commit is accepted once.
        Err(error) if error.is_outcome_unknown() => queue.commit(|tx| {
            tx.id(error.id().unwrap_or_default())?;
            fill(tx)
        }),
        answer => answer,
    }
}

/// Everything the example shows, in this folder.
pub fn story(folder: &Path) -> Result<()> {
    // Opening also brings to its end what a process that died had accepted.
    let queue = Arc::new(Queue::init(folder)?);

    // Read, change and save in one; from the start again if somebody else is faster.
    let first = queue.update_json(FILE, |read, tx| {
        let requirement = add(read, "Every invoice has a number.");
        side_effects(tx, &requirement)?;
        Ok(requirement)
    })?;
    tell("saved", &first);

    // Two windows show the same requirement. The left one saves first.
    let left = queue.read_json(FILE)?;
    let right = queue.read_json(FILE)?;
    tell("left window saved", &save(&queue, &add(left.value, "Numbers have no gaps – ever."), &left.expect)?);
    match save(&queue, &add(right.value, "Numbers never change."), &right.expect) {
        Err(error) if error.is_stale() => println!("right window refused: {error}"),
        Err(error) => return Err(error),
        Ok(accepted) => unreachable!("{} would have overwritten what the left window saved", accepted.id),
    }
    // What it lacked was a new read.
    let right = queue.read_json(FILE)?;
    tell("right window saved", &save(&queue, &add(right.value, "Numbers never change."), &right.expect)?);

    // Extractions need Claude Code and cost money: here they wait, and are never discarded.
    let types = Some(vec!["create_file".to_owned()]);
    let options = WorkerOptions { drain: true, types, ..WorkerOptions::default() };
    Worker::new(Arc::clone(&queue), Registry::builtin(), options)?.run(&Shutdown::new())?;

    println!("\nafter the worker:");
    for job in queue.list(&Filter::default())?.iter().rev() {
        let note = if job.status == Status::Pending { "  (waits for a worker that may run it)" } else { "" };
        println!("  {}  {:<17}  {}{note}", job.id, job.job_type, job.status);
    }
    for name in [FILE, "out/REQ-1.md"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap_or_else(|e| e.to_string());
        println!("\n{name}:\n{}", text.trim_end());
    }
    Ok(())
}

fn tell(what: &str, accepted: &Accepted) {
    let later = accepted.reason.as_deref().map_or_else(String::new, |why| format!(", in place later: {why}"));
    println!("{what}: commit {}, {} jobs{}", accepted.id, accepted.jobs.len(), printable(&later));
}

fn main() -> Result<()> {
    match std::env::args_os().nth(1).map(PathBuf::from) {
        Some(folder) => story(&folder),
        None => {
            let scratch = tempfile::tempdir();
            let scratch = scratch.map_err(|e| jobq::Error::new(jobq::ErrorKind::Io, e.to_string()))?;
            story(scratch.path())
        }
    }
}
