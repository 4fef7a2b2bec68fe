//! A worker's lifecycle on stdout: a readable line each on a terminal, JSON
//! lines otherwise.

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use jobq::clock::rfc3339;
use jobq::worker::{AttemptEnd, AttemptReport};
use jobq::{WorkerEvent, printable};
use serde::Serialize;
use serde_json::json;

use super::locate::now;
use super::output::{CYAN, DIM, GREEN, RED, YELLOW};

/// Lines are written together when they come fast, and after this long at most.
const TOGETHER: Duration = Duration::from_millis(10);

/// Bytes that may wait for a slow reader; what comes then is counted and dropped.
const MOST_WAITING: usize = 4 << 20;
/// How long the last lines may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub(crate) struct Lifecycle {
    people: bool,
    colours: bool,
    quiet: bool,
    bar: Option<ProgressBar>,
    lines: Arc<Lines>,
}

#[derive(Default)]
struct Lines {
    state: Mutex<State>,
    changed: Condvar,
    left: Condvar,
}

#[derive(Default)]
struct State {
    text: Vec<u8>,
    /// Lines that found no room.
    dropped: u64,
    closed: bool,
    /// Nobody writes any more: the reader has gone.
    gone: bool,
}

impl Lifecycle {
    /// For people or programs; with a bar, only what did not go well gets a line.
    pub(crate) fn new(people: bool, quiet: bool, jobs: Option<u64>) -> Self {
        let bar = jobs.map(|jobs| {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} jobs  {rate}  {eta} left");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            let rate = |state: &ProgressState, to: &mut dyn std::fmt::Write| {
                let _ = write!(to, "{:.0}/s", state.per_sec());
            };
            ProgressBar::new(jobs).with_style(style.with_key("rate", rate))
        });
        let lines = Arc::<Lines>::default();
        let ours = Arc::clone(&lines);
        std::thread::spawn(move || ours.write());
        let colours = anstream::stdout().current_choice() != anstream::ColorChoice::Never;
        Self { people, colours, quiet, bar, lines }
    }

    pub(crate) fn print(&self, event: &WorkerEvent) {
        if let (Some(bar), WorkerEvent::Attempt(attempt)) = (&self.bar, event)
            && attempt.outcome == AttemptEnd::Completed
        {
            bar.inc(1);
            return;
        }
        if self.quiet {
            return;
        }
        let line = if self.people { for_people(event) } else { for_programs(event) };
        let Some(mut line) = line else { return };
        if self.people && !self.colours {
            line = anstream::adapter::strip_str(&line).to_string();
        }
        match &self.bar {
            Some(bar) => bar.suspend(|| self.lines.add(&line)),
            None => self.lines.add(&line),
        }
    }

    /// Writes what is left.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let mut state = self.lines.lock();
        state.closed = true;
        self.lines.changed.notify_one();
        // A reader that has stopped reading does not keep the worker from ending.
        drop(self.lines.left.wait_timeout_while(state, LAST_WORDS, |state| !state.gone));
    }
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, line: &str) {
        let mut state = self.lock();
        if state.gone {
            return;
        }
        if state.text.len() > MOST_WAITING {
            state.dropped += 1;
            return;
        }
        let first = state.text.is_empty();
        state.text.extend_from_slice(line.as_bytes());
        state.text.push(b'\n');
        drop(state);
        if first {
            self.changed.notify_one();
        }
    }

    /// A reader that has gone stops the lines, not the worker.
    fn write(&self) {
        // A handle of its own: one that is stuck must not keep the lock of the standard stream.
        let Ok(stdout) = io::stdout().as_fd().try_clone_to_owned() else { return };
        let mut stdout = std::fs::File::from(stdout);
        loop {
            let waiting = self.changed.wait_while(self.lock(), |state| state.text.is_empty() && !state.closed);
            let mut state = waiting.unwrap_or_else(PoisonError::into_inner);
            let (mut text, closed) = (std::mem::take(&mut state.text), state.closed);
            let dropped = std::mem::take(&mut state.dropped);
            drop(state);
            if dropped > 0 {
                let _ = writeln!(text, "{{\"event\":\"lines_dropped\",\"lines\":{dropped}}}");
            }
            let written: io::Result<()> = stdout.write_all(&text).and_then(|()| stdout.flush());
            if written.is_err() || (closed && text.is_empty()) {
                self.lock().gone = true;
                self.left.notify_all();
                return;
            }
            if !closed {
                std::thread::sleep(TOGETHER);
            }
        }
    }
}

fn for_people(event: &WorkerEvent) -> Option<String> {
    let time = &rfc3339(now())[11..19];
    let text = match event {
        WorkerEvent::Started { worker, types, concurrency } => {
            format!("{DIM}worker {worker}, {concurrency} at a time: {}{DIM:#}", types.join(", "))
        }
        WorkerEvent::Attempt(attempt) => attempt_for_people(attempt),
        WorkerEvent::Reclaimed(done) => format!(
            "{YELLOW}reclaimed{YELLOW:#} from workers that are gone: {} to run again, {} to apply, {} failed",
            done.pending.len(),
            done.unowned.len(),
            done.failed.len()
        ),
        WorkerEvent::Reconciled(sums) if sums.findings > 0 => format!(
            "{YELLOW}drift{YELLOW:#} {} of {} paths are not as jobs left them; `jobq reconcile` lists them",
            sums.findings, sums.checked
        ),
        WorkerEvent::UnknownType { job_type } => format!(
            "{YELLOW}waiting{YELLOW:#} jobs of type {} have no handler here; they stay pending",
            printable(job_type)
        ),
        WorkerEvent::ThreadLost { job_id, job_type } => {
            format!("{RED}stuck{RED:#} {} {job_id}: its handler did not stop; given up", printable(job_type))
        }
        WorkerEvent::Trouble { error, retry_in } => format!(
            "{RED}trouble{RED:#} {}; trying again in {}",
            printable(error),
            humantime::format_duration(*retry_in)
        ),
        WorkerEvent::TroubleOver => format!("{GREEN}going on{GREEN:#}"),
        WorkerEvent::Stopping { waiting_for } => {
            format!("{YELLOW}stopping{YELLOW:#} after {}; once more to give it back instead", waiting_for.join(", "))
        }
        _ => return None,
    };
    Some(format!("{DIM}{time}{DIM:#} {text}"))
}

fn attempt_for_people(attempt: &AttemptReport) -> String {
    let (style, word) = match attempt.outcome {
        AttemptEnd::Completed => (GREEN, "completed"),
        AttemptEnd::Rescheduled => (YELLOW, "rescheduled"),
        AttemptEnd::Failed => (RED, "failed"),
        AttemptEnd::Released => (CYAN, "released"),
        AttemptEnd::Cancelled => (DIM, "cancelled"),
        AttemptEnd::Deferred => (YELLOW, "deferred"),
        AttemptEnd::LeaseLost => (RED, "lease lost"),
    };
    let error = attempt.error.as_ref().map(|e| format!(": {}", printable(&e.text()))).unwrap_or_default();
    format!(
        "{style}{word:<11}{style:#} {} {}  {DIM}attempt {}, {:.1?}{DIM:#}{error}",
        printable(&attempt.job_type),
        attempt.job_id,
        attempt.attempt,
        attempt.duration
    )
}

/// When, what, and what there is to say about it.
#[derive(Serialize)]
struct Line<T> {
    at: String,
    event: &'static str,
    #[serde(flatten)]
    data: T,
}

fn for_programs(event: &WorkerEvent) -> Option<String> {
    match event {
        WorkerEvent::Started { worker, types, concurrency } => {
            line("worker_started", json!({ "worker": worker, "types": types, "concurrency": concurrency }))
        }
        WorkerEvent::Attempt(attempt) => line("attempt", attempt),
        WorkerEvent::Reclaimed(done) => line("reclaimed", done),
        WorkerEvent::Reconciled(sums) => line("reconciled", sums),
        WorkerEvent::UnknownType { job_type } => line("unknown_type", json!({ "type": job_type })),
        WorkerEvent::ThreadLost { job_id, job_type } => {
            line("thread_lost", json!({ "job_id": job_id, "type": job_type }))
        }
        WorkerEvent::Trouble { error, retry_in } => {
            line("trouble", json!({ "error": error, "retry_in_ms": retry_in.as_millis() }))
        }
        WorkerEvent::TroubleOver => line("trouble_over", json!({})),
        WorkerEvent::Stopping { waiting_for } => line("stopping", json!({ "waiting_for": waiting_for })),
        WorkerEvent::Stopped(summary) => line("worker_stopped", summary),
        _ => None,
    }
}

fn line(event: &'static str, data: impl Serialize) -> Option<String> {
    serde_json::to_string(&Line { at: rfc3339(now()), event, data }).ok()
}
