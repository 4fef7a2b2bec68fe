//! Faults in one thread of a real worker: strace comes to that thread when it
//! waits for work, so that the calls it makes for it have their numbers.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::aftermath::Case;
use crate::census::{Census, shape, steady};
use crate::kill::{PATIENCE, command};
use crate::said::{Heard, Ran};
use crate::scenarios::{IN_TROUBLE, WORKER, enqueued};
use crate::starts;
use crate::strace::{self, At, Call};

/// The threads that change files, by their names: the one that claims, the one
/// that runs handlers, and the one that records their ends. With the number of sites that
/// each has at least: who writes for whom differs from run to run, so that some of their
/// calls are never at the same place.
pub const THREADS: [(&str, u64); 3] = [(MAIN, 20), ("jobq-run", 12), ("jobq-finish", 8)];

/// The thread that a process begins with, whatever its name is.
const MAIN: &str = "main";

/// A run of the worker with strace at one thread.
pub struct Run {
    pub ran: Ran,
    /// The calls of that thread, those it makes for nothing but to look included.
    pub made: Vec<Call>,
    root: PathBuf,
}

impl Run {
    /// The worker does its jobs; `fault` is what happens in the thread.
    pub fn new(case: &mut Case<'static>, thread: &str, fault: Option<(&Call, At)>) -> Result<Self, String> {
        let log = case.world.outside("log");
        let mut command = command(WORKER.name, &case.world.root());
        // A single fault is soon over; one that stays is seen to be waited out.
        command.env(IN_TROUBLE, if matches!(fault, Some((_, At::FailOn(_)))) { "3" } else { "15" });
        let mut worker = Heard::start(command);
        let pid = worker.pid(PATIENCE).ok_or("the worker does not start")?;
        let id = thread_of(pid, thread)?;
        let mut tracer = Tracer::attached(id, fault, &log)?;
        case.promise(enqueued(&case.world));
        let ran = worker.end(PATIENCE);
        tracer.end();
        case.ended(&ran);
        let (made, _) = strace::calls(&log);
        Ok(Self { ran, made, root: case.world.root() })
    }

    /// Whether this is that call, and not another that has its number this time.
    pub fn is_at(&self, site: &Call, call: &Call) -> bool {
        let numbers = (&call.name, call.nth) == (&site.name, site.nth);
        numbers && call.line.contains(self.root.to_str().unwrap()) && shape(&call.line) == shape(&site.line)
    }
}

/// What a thread changes for the jobs, when nothing goes wrong.
pub fn census(thread: &str) -> Result<Census, String> {
    let most = AtomicUsize::new(0);
    let there = steady(8, |_| {
        let mut case = Case::new(&WORKER);
        case.racy = true;
        let Run { ran, made, root } = Run::new(&mut case, thread, None)?;
        if !ran.status.success() {
            return Err(format!("the worker fails by itself: {} {:?} {}", ran.status, ran.said, ran.stderr));
        }
        let troubles = case.finish();
        if !troubles.is_empty() {
            return Err(format!("without any fault: {troubles:?}"));
        }
        most.fetch_max(made.len(), Ordering::Relaxed);
        let here = |call: &Call| call.changes() && call.line.contains(root.to_str().unwrap());
        Ok(made.into_iter().filter(here).collect())
    })?;
    Ok(Census { calls: most.into_inner(), ..there })
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
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = starts::start(&mut command);
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
