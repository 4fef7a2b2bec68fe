//! A worker in a second process: this program again, which says "ready" when it waits and then, line by line, the time at
//! which each handler starts.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Args, LIMIT, Pragmas, give_up};

/// A peer that polls now and then would need hours for what another does in seconds.
const PICKUP_LIMIT: Duration = Duration::from_secs(60);

/// The clock of the whole machine: the two processes compare it.
fn machine_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only writes to the struct it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

pub fn worker_is_ready() {
    say("ready");
}

pub fn handler_starts() {
    say(&machine_ns().to_string());
}

/// A worker lives as long as the process that started it.
pub(crate) fn end_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
}

struct Worker {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Worker {
    fn start(operation: &str) -> Self {
        let mut words: Vec<String> = std::env::args().skip(1).collect();
        let place = words.iter().position(|w| w == operation).unwrap_or_default();
        words[place] = "worker".to_owned();
        let program = std::env::current_exe().unwrap_or_else(|e| give_up(&e.to_string()));
        let started = Command::new(program).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.unwrap_or_else(|e| give_up(&format!("the worker did not start: {e}")));
        let lines = BufReader::new(child.stdout.take().unwrap_or_else(|| give_up("the worker has no output")));
        let mut worker = Self { child, lines };
        if worker.line() != "ready" {
            give_up("the worker did not start");
        }
        worker
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) | Err(_) => give_up("the worker ended"),
            Ok(_) => line.trim_end().to_owned(),
        }
    }

    fn end(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Nanoseconds all its threads have run for.
    fn cpu_ns(&self) -> u64 {
        let tasks = format!("/proc/{}/task", self.child.id());
        let entries = std::fs::read_dir(&tasks).unwrap_or_else(|e| give_up(&format!("{tasks}: {e}")));
        entries
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
            .filter_map(|stat| stat.split_whitespace().next()?.parse::<u64>().ok())
            .sum()
    }
}

/// From the return of an enqueue to the start of the handler in the other process.
pub fn pickup(args: &Args, pragmas: &Pragmas, mut enqueue: impl FnMut()) {
    let mut worker = Worker::start(&args.operation);
    // Lets it come to rest after its start.
    std::thread::sleep(Duration::from_millis(500));
    let start = Instant::now();
    let mut waits: Vec<i64> = Vec::new();
    while waits.len() < args.count && (waits.is_empty() || start.elapsed() < PICKUP_LIMIT) {
        std::thread::sleep(Duration::from_millis(20));
        enqueue();
        let returned = machine_ns();
        let started: i64 = worker.line().parse().unwrap_or_else(|_| give_up("the worker said something else"));
        waits.push((started - returned).max(0));
    }
    worker.end();
    waits.sort_unstable();
    let at = |percent: usize| waits[(waits.len() * percent / 100).min(waits.len() - 1)] as f64 / 1e6;
    args.report(&format!(r#""count":{},"p50_ms":{:.3},"p99_ms":{:.3}"#, waits.len(), at(50), at(99)), pragmas);
}

/// What a worker that waits costs.
pub fn idle(args: &Args, pragmas: &Pragmas) {
    let worker = Worker::start(&args.operation);
    std::thread::sleep(Duration::from_secs(1));
    let before = worker.cpu_ns();
    let seconds = args.seconds.min(LIMIT.as_secs_f64() - 10.0);
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let used = (worker.cpu_ns() - before) as f64 / 1e6;
    worker.end();
    args.report(&format!(r#""seconds":{seconds},"cpu_ms":{used:.1}"#), pragmas);
}
