//! A root folder with a queue, and worker processes on it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use jobq::{EventQuery, Job, NewJob, Queue, QueueOptions, Status};
use rustix::process::{Pid, Signal, kill_process};

use super::child::{MARK, NAME, SETUP, Setup};

/// How long anything that must happen may take before the test gives up.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct World {
    folder: tempfile::TempDir,
    pub queue: Queue,
}

impl World {
    pub fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    /// In a folder that the test has prepared.
    pub fn at(folder: tempfile::TempDir) -> Self {
        let root = folder.path().join("root");
        let types = setup(&root, folder.path(), "parent").registry().types();
        let queue = QueueOptions::in_folder(&root).create(true).types(types).open().unwrap();
        Self { folder, queue }
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// A place outside the root.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The setup of a worker of that name, with the usual settings.
    pub fn setup(&self, name: &str) -> Setup {
        setup(&self.root(), self.folder.path(), name)
    }

    pub fn enqueue(&self, job: impl Into<NewJob>) -> String {
        self.queue.enqueue(job).unwrap().id
    }

    #[track_caller]
    pub fn ended(&self, id: &str) -> Job {
        let job = self.queue.wait(id, PATIENCE).unwrap();
        job.unwrap_or_else(|| panic!("job {id} did not end: {:?}", self.queue.get(id)))
    }

    /// Waits until a job has completed.
    #[track_caller]
    pub fn completed(&self, id: &str) -> Job {
        let job = self.ended(id);
        assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
        job
    }

    pub fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root().join(path)).ok()
    }

    /// Lines of the log that begin with this word, without it.
    pub fn log(&self, word: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.outside("log")).unwrap_or_default();
        let strip = |line: &str| line.strip_prefix(word)?.strip_prefix(' ').map(str::to_owned);
        text.lines().filter_map(strip).collect()
    }

    /// How often the handler was called for a job.
    pub fn runs(&self, id: &str) -> usize {
        self.log("run").iter().filter(|line| line.starts_with(id)).count()
    }

    /// The types of a job's events, oldest first.
    pub fn events(&self, id: &str) -> Vec<String> {
        let query = EventQuery { job_id: Some(id.to_owned()), after: 0, limit: 1_000 };
        self.queue.events(&query).unwrap().into_iter().map(|event| event.event_type).collect()
    }

    /// Everything below the root that is not jobq's own, sorted.
    pub fn files(&self) -> Vec<String> {
        let mut found = walk(&self.root());
        found.retain(|path| !path.starts_with(".jobq/"));
        found
    }

    /// What lies in the stage.
    pub fn staged(&self) -> Vec<String> {
        walk(&self.root().join(".jobq/stage"))
    }

    /// The lock files, sorted.
    pub fn lock_files(&self) -> Vec<String> {
        walk(&self.root().join(".jobq/owners"))
    }

    pub fn sql(&self) -> rusqlite::Connection {
        let conn = rusqlite::Connection::open(self.root().join(".jobq/jobq.db")).unwrap();
        conn.busy_timeout(PATIENCE).unwrap();
        conn
    }
}

fn setup(root: &Path, folder: &Path, name: &str) -> Setup {
    Setup {
        root: root.to_owned(),
        log: folder.join("log"),
        name: name.to_owned(),
        concurrency: 1,
        types: None,
        drain: false,
        poll_ms: 1_000,
        lease_ms: 300_000,
        grace_ms: None,
        busy_ms: 30_000,
        dies_when_decided: false,
        faults: None,
        limits: std::collections::BTreeMap::new(),
    }
}

/// Files below a folder, by their relative paths, sorted.
fn walk(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// Waits until something is so.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A worker process.
pub struct Process {
    child: Child,
    lines: Receiver<String>,
    /// What it has said so far.
    pub heard: Vec<String>,
    errors: PathBuf,
}

impl Process {
    pub fn start(setup: &Setup) -> Self {
        let errors = setup.log.with_file_name(format!("{}.stderr", setup.name));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture", "--test-threads=1"])
            .env(SETUP, serde_json::to_string(setup).unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&errors).unwrap())
            .spawn()
            .unwrap();
        let (send, lines) = channel();
        let from = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in from.lines().map_while(Result::ok) {
                if let Some(words) = line.strip_prefix(MARK) {
                    let _ = send.send(words.to_owned());
                }
            }
        });
        Self { child, lines, heard: Vec::new(), errors }
    }

    /// Waits for a line that begins with these words; returns the rest of it.
    #[track_caller]
    pub fn hear(&mut self, words: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.heard.push(line);
                    if let Some(rest) = self.heard.last().unwrap().strip_prefix(words) {
                        return rest.trim_start().to_owned();
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("waited for `{words}`, heard only {:?}", self.heard),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended before `{words}`: {:?}", self.heard),
            }
        }
    }

    /// Everything it says until its end.
    pub fn hear_out(&mut self) -> &[String] {
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.heard.push(line);
        }
        &self.heard
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// SIGKILL, and waits for the end.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn exit(&mut self) -> ExitStatus {
        until("the worker ends", || !self.is_running());
        self.child.wait().unwrap()
    }

    /// Asks it to stop, and waits until it has, in good order.
    #[track_caller]
    pub fn stop(&mut self) {
        self.signal(Signal::TERM);
        let status = self.exit();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After a failed check it may still run, or be stopped.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let errors = std::fs::read_to_string(&self.errors).unwrap_or_default();
            eprintln!("the worker said {:?}\n{errors}", self.hear_out());
        }
    }
}
