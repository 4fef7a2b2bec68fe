//! A queue, and a folder with the program that stands in for Claude Code.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use jobq::handlers::ClaudeExtraction;
use jobq::{Event, EventQuery, Job, NewJob, Queue, Status};
use serde_json::Value;

/// How long something may take that should take no time.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct World {
    pub queue: Queue,
    root: tempfile::TempDir,
    /// Where the program is, what it is to do and what it was called with.
    beside: tempfile::TempDir,
}

impl World {
    /// The program behaves as the words say, one after the other; the last one stays.
    pub fn new(script: &str) -> Self {
        let (root, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/claude/stand_in.py");
        std::fs::create_dir(beside.path().join("bin")).unwrap();
        symlink(program, beside.path().join("bin/claude")).unwrap();
        let world = Self { queue: Queue::init(root.path()).unwrap(), root, beside };
        world.behaves(script);
        world
    }

    pub fn behaves(&self, script: &str) {
        std::fs::write(self.beside("script"), script).unwrap();
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn beside(&self, name: &str) -> PathBuf {
        self.beside.path().join(name)
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap()
    }

    /// `jobq` with the program in its path.
    pub fn command(&self, args: &[&str]) -> Command {
        let path = format!("{}:{}", self.beside("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_jobq"));
        command.args(args).current_dir(self.root()).env("PATH", path).stdin(Stdio::null());
        command.env("CLAUDE_STAND_IN", self.beside.path()).env_remove("JOBQ_DB").env_remove("JOBQ_LOG");
        command
    }

    /// Runs what there is to run and returns all that the worker said.
    pub fn drain(&self) -> String {
        let output = self.command(&["worker", "--drain", "--json"]).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{said}");
        said
    }

    /// A worker that goes on until it is killed.
    pub fn worker(&self) -> Worker {
        let mut command = self.command(&["worker", "--json"]);
        Worker(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub fn enqueue(&self, job: impl Into<NewJob>) -> String {
        self.queue.enqueue(job).unwrap().id
    }

    /// One attempt at a job with this prompt; the job after it.
    pub fn one_attempt(&self, extraction: &ClaudeExtraction) -> Job {
        let id = self.enqueue(NewJob::of(extraction).max_attempts(1));
        self.drain();
        self.queue.get(&id).unwrap()
    }

    pub fn ended(&self, id: &str) -> Job {
        self.queue.wait(id, PATIENCE).unwrap().expect("it has not ended")
    }

    pub fn events(&self, id: &str) -> Vec<Event> {
        let query = EventQuery { job_id: Some(id.to_owned()), after: 0, limit: 1_000 };
        self.queue.events(&query).unwrap()
    }

    /// What the program was called with, each time.
    pub fn calls(&self) -> Vec<Value> {
        let lines = std::fs::read_to_string(self.beside("calls.jsonl")).unwrap_or_default();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub fn ask(prompt: &str) -> ClaudeExtraction {
    ClaudeExtraction::new("REQ-1", prompt, "out/a.md")
}

#[track_caller]
pub fn completed(job: &Job) -> Value {
    assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
    job.result.as_ref().unwrap().parse().unwrap()
}

/// Killed with what is left of the test.
pub struct Worker(pub Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}: it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process runs; one that waits to be buried does not.
pub fn is_alive(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name is in brackets and may hold anything.
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
