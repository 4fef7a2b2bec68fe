//! A queue with handlers that are scripts, and workers that are processes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use jobq::{Backoff, Job, NewJob, Queue, QueueOptions, Status};
use rustix::process::{Pid, Signal};
use tempfile::TempDir;

pub struct Place {
    folder: TempDir,
    pub queue: Queue,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::init(folder.path()).unwrap();
        std::fs::create_dir_all(folder.path().join(".jobq/handlers")).unwrap();
        Self { folder, queue }
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub fn handlers(&self) -> PathBuf {
        self.path(".jobq/handlers")
    }

    /// A shell script that handles a type.
    pub fn handler(&self, name: &str, script: &str) {
        self.executable(name, &format!("#!/bin/sh\nset -eu\n{script}\n"));
    }

    pub fn executable(&self, name: &str, text: &str) {
        let path = self.handlers().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// One attempt is all it gets.
    pub fn enqueue_once(&self, job_type: &str, payload: &str) -> String {
        self.enqueue(NewJob::raw(job_type, payload).max_attempts(1))
    }

    /// Queued so that another attempt follows at once.
    pub fn enqueue(&self, job: NewJob) -> String {
        self.queue.enqueue(job.backoff(Backoff { base_ms: 0, max_ms: 0 })).unwrap().id
    }

    /// Queues a job, runs all there is to run, and returns what became of it.
    pub fn run_once(&self, job_type: &str, payload: &str) -> Job {
        let id = self.enqueue_once(job_type, payload);
        self.drain();
        self.job(&id)
    }

    pub fn job(&self, id: &str) -> Job {
        self.queue.get(id).unwrap()
    }

    pub fn jobq(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jobq"));
        command.arg("--root").arg(self.root());
        command
    }

    /// The place and the command are given to a user with no special rights, if this one has any.
    pub fn as_nobody<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        use std::os::unix::process::CommandExt as _;
        const NOBODY: u32 = 65534;
        if !rustix::process::geteuid().is_root() {
            return command;
        }
        let root = self.root().to_str().unwrap();
        assert!(Command::new("chown").args(["-R", "65534:65534", root]).status().unwrap().success());
        command.uid(NOBODY).gid(NOBODY)
    }

    pub fn drain(&self) -> Output {
        let output = self.jobq().args(["worker", "--drain"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output
    }

    /// A worker that runs until it is told to stop, or dropped.
    pub fn worker(&self, arguments: &[&str]) -> Worker {
        self.start(self.jobq(), arguments)
    }

    pub fn worker_as_nobody(&self, arguments: &[&str]) -> Worker {
        let mut command = self.jobq();
        self.as_nobody(&mut command);
        self.start(command, arguments)
    }

    fn start(&self, mut command: Command, arguments: &[&str]) -> Worker {
        use std::os::unix::process::CommandExt as _;
        // A group of its own, as a shell would give it.
        let log = std::fs::File::options().create(true).append(true).open(self.path("worker.log")).unwrap();
        command.arg("worker").args(arguments).process_group(0).stdout(log);
        Worker(command.spawn().unwrap())
    }

    pub fn wait_for_file(&self, name: &str) {
        let path = self.path(name);
        until(&format!("{name} is there"), || path.metadata().is_ok_and(|meta| meta.len() > 0));
    }

    /// Told to stop, a worker says what it waits for.
    pub fn wait_until_stopping(&self) {
        until("the worker stops", || self.read("worker.log").contains("\"stopping\""));
    }

    /// A process id that a handler has written down.
    pub fn pid(&self, name: &str) -> Pid {
        self.wait_for_file(name);
        Pid::from_raw(self.read(name).trim().parse().unwrap()).unwrap()
    }

    pub fn wait_until_finished(&self, id: &str) -> Job {
        self.queue.wait(id, Duration::from_secs(60)).unwrap().expect("it ends")
    }

    /// Nothing is left of what programs were given.
    pub fn assert_no_litter(&self) {
        let stage = self.path(".jobq/stage");
        let left: Vec<_> = std::fs::read_dir(&stage)
            .into_iter()
            .flatten()
            .flat_map(|owner| std::fs::read_dir(owner.unwrap().path()).unwrap())
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// A worker process.
pub struct Worker(pub Child);

impl Worker {
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Told once, it finishes what runs.
    pub fn stop(mut self) {
        self.signal(Signal::TERM);
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(self.pid(), Signal::CONT);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process lives; one that only waits to be buried does not.
pub fn lives(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}

pub fn parent_of(pid: Pid) -> Pid {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).unwrap();
    let parent = stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(1).unwrap();
    Pid::from_raw(parent.parse().unwrap()).unwrap()
}

pub fn assert_failed(job: &Job, words: &[&str]) {
    let error = job.last_error.as_deref().unwrap_or_default();
    assert_eq!(job.status, Status::Failed, "{error}");
    for word in words {
        assert!(error.contains(word), "{word:?} is not in {error:?}");
    }
}

/// As another program of the application would open it.
pub fn opened_again(place: &Place) -> Queue {
    QueueOptions::in_folder(place.root()).open().unwrap()
}
