//! Faults in one thread of a real worker: strace comes to that thread when it
//! waits for work, so that the calls it makes for it have their numbers.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::aftermath::Case;
use crate::census::Census;
use crate::kill::{PATIENCE, command};
use crate::said::{Heard, Ran};
use crate::scenarios::{WORKER, enqueued};
use crate::strace::{self, At, Call};

/// The threads that change files, by their names: the one that claims, the one
/// that runs handlers, and the one that records their ends.
pub const THREADS: [&str; 3] = [MAIN, "jobq-run", "jobq-finish"];

/// The thread that a process begins with, whatever its name is.
const MAIN: &str = "main";

/// A run of the worker with strace at one thread.
pub struct Run {
    pub ran: Ran,
    /// The calls of that thread, those it makes for nothing but to look included.
    pub made: Vec<Call>,
}

impl Run {
    /// The worker does its jobs; `fault` is what happens in the thread.
    pub fn new(case: &mut Case<'static>, thread: &str, fault: Option<(&Call, At)>) -> Result<Self, String> {
        let log = case.world.outside("log");
        let mut worker = Heard::start(command(WORKER.name, &case.world.root()));
        let pid = worker.pid(PATIENCE).ok_or("the worker does not start")?;
        let id = thread_of(pid, thread)?;
        let mut tracer = Tracer::attached(id, fault, &log)?;
        case.promise(enqueued(&case.world));
        let ran = worker.end(PATIENCE);
        tracer.end();
        case.ended(&ran);
        let (made, _) = strace::calls(&log);
        Ok(Self { ran, made })
    }
}

/// What a thread changes for the jobs. What differs from run to run, by who is
/// first, is left out: a call's number counts if it was there in each of three.
pub fn census(thread: &str) -> Result<Census, String> {
    let (mut runs, mut calls) = (Vec::new(), 0);
    for _ in 0..3 {
        let mut case = Case::new(&WORKER);
        case.racy = true;
        let Run { ran, made } = Run::new(&mut case, thread, None)?;
        let root = case.world.root();
        if !ran.status.success() {
            return Err(format!("the worker fails by itself: {} {:?} {}", ran.status, ran.said, ran.stderr));
        }
        let troubles = case.finish();
        if !troubles.is_empty() {
            return Err(format!("without any fault: {troubles:?}"));
        }
        calls = made.len().max(calls);
        let here = |call: &Call| call.changes() && call.line.contains(root.to_str().unwrap());
        runs.push(made.into_iter().filter(here).collect::<Vec<Call>>());
    }
    let fullest = runs.iter().map(Vec::len).max().expect("three runs");
    let mut sites = runs.pop().expect("three runs");
    for run in &runs {
        let last: HashMap<&str, usize> = run.iter().map(|call| (call.name.as_str(), call.nth)).collect();
        sites.retain(|call| last.get(call.name.as_str()).is_some_and(|nth| call.nth <= *nth));
    }
    let dropped = (fullest - sites.len()) as u64;
    Ok(Census { sites, dropped, calls })
}

/// A thread of the worker, once it is there.
fn thread_of(pid: Pid, name: &str) -> Result<u32, String> {
    let tasks = format!("/proc/{}/task", pid.as_raw_nonzero());
    // The last thread that a worker starts: when it is there, the others are.
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let (mut found, mut complete) = (None, false);
        for task in std::fs::read_dir(&tasks).into_iter().flatten().flatten() {
            let comm = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            complete |= comm.trim() == "jobq-finish";
            let id: Option<u32> = task.file_name().to_str().and_then(|id| id.parse().ok());
            let main = id == Some(pid.as_raw_nonzero().get().cast_unsigned());
            if if name == MAIN { main } else { comm.trim() == name } {
                found = id;
            }
        }
        if let Some(id) = found.filter(|_| complete) {
            return Ok(id);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(format!("the worker has no thread {name}"))
}

/// strace at a thread.
struct Tracer(Child);

impl Tracer {
    fn attached(thread: u32, fault: Option<(&Call, At)>, log: &Path) -> Result<Self, String> {
        let mut command = strace::attached(thread, fault, log);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut tracer = Self(child.map_err(|error| format!("strace: {error}"))?);
        let mut line = String::new();
        let _ = BufReader::new(tracer.0.stderr.take().expect("piped")).read_line(&mut line);
        if line.contains("attached") { Ok(tracer) } else { Err(format!("strace is not there: {line}")) }
    }

    /// It ends with the thread.
    fn end(&mut self) {
        let _ = self.0.wait();
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
