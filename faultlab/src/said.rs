//! What a process under fault tells the one that watches it, as it goes.
//!
//! By a socket, because sending is no call that faults are put at: what was told
//! has been heard, whatever becomes of the process or of its files.

use std::io::{ErrorKind, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::net::SendFlags;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::starts;

/// Something that has happened. Acknowledgements are told when the call that
/// gives them has returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    Pid(u32),
    /// A handler begins with this job.
    Run(String),
    /// This job was accepted.
    Stored(String),
    Claimed(String),
    /// This is on record for the job's next attempt.
    Checkpoint(String, u64),
    Decided(String),
    Completed(String),
    /// These jobs were pruned.
    Gone(Vec<String>),
    /// A call was answered with an error; its kind and its words.
    Failed(String, String),
    /// All that was to be done is done. How many milliseconds of processor time it took.
    Done(u64),
    /// The same for one who gave up.
    GaveUp(u64),
}

/// The side of the process: its standard input is the socket.
pub struct Speaker(OwnedFd);

impl Speaker {
    pub fn again() -> Self {
        Self(std::io::stdin().as_fd().try_clone_to_owned().unwrap())
    }

    pub fn new() -> Self {
        let speaker = Self::again();
        speaker.tell(&Said::Pid(std::process::id()));
        speaker
    }

    pub fn tell(&self, said: &Said) {
        let line = format!("{}\n", serde_json::to_string(said).unwrap());
        let sent = rustix::net::send(&self.0, line.as_bytes(), SendFlags::NOSIGNAL).unwrap();
        assert_eq!(sent, line.len());
    }
}

/// How a process ended, and what it had told until then.
pub struct Ran {
    pub status: ExitStatus,
    pub said: Vec<Said>,
    pub stderr: String,
    /// It did not end by itself in time, and was killed.
    pub overdue: bool,
    pub took: Duration,
}

impl Ran {
    /// The jobs whose handlers have begun, once for each time.
    pub fn runs(&self) -> impl Iterator<Item = &String> {
        self.said.iter().filter_map(|said| if let Said::Run(id) = said { Some(id) } else { None })
    }
}

/// A process that is heard. Nothing of it is left when this is dropped.
pub struct Heard {
    child: Child,
    ear: UnixStream,
    lines: Vec<u8>,
    started: Instant,
}

impl Heard {
    pub fn start(mut command: Command) -> Self {
        let (ear, mouth) = UnixStream::pair().unwrap();
        command.stdin(OwnedFd::from(mouth)).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = starts::start(&mut command).unwrap();
        // The command has the other copy of the process's end.
        drop(command);
        Self { child, ear, lines: Vec::new(), started: Instant::now() }
    }

    /// The process that tells, once it has told who it is.
    pub fn pid(&mut self, patience: Duration) -> Option<Pid> {
        let deadline = Instant::now() + patience;
        while !self.lines.contains(&b'\n') && self.hear(deadline) {}
        self.said().first().and_then(|said| if let Said::Pid(pid) = said { Some(*pid) } else { None }).map(pid_of)
    }

    pub fn said(&self) -> Vec<Said> {
        self.lines.split(|byte| *byte == b'\n').flat_map(serde_json::from_slice).collect()
    }

    /// Waits for more. False at its end, or when the time is over.
    fn hear(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        self.ear.set_read_timeout(Some(left)).unwrap();
        let mut bytes = [0; 4096];
        match self.ear.read(&mut bytes) {
            Ok(count) => {
                self.lines.extend_from_slice(&bytes[..count]);
                count > 0
            }
            // A signal, or a wait that is over: neither is the end of what it has to say.
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => true,
            Err(error) => panic!("a process cannot be heard any more: {error}"),
        }
    }

    /// Waits for its end.
    pub fn end(mut self, patience: Duration) -> Ran {
        let deadline = Instant::now() + patience;
        while self.hear(deadline) {}
        let overdue = Instant::now() >= deadline;
        if overdue {
            self.kill();
        }
        let mut stderr = Vec::new();
        let _ = self.child.stderr.take().unwrap().read_to_end(&mut stderr);
        let status = self.child.wait().unwrap();
        let (stderr, took) = (String::from_utf8_lossy(&stderr).into_owned(), self.started.elapsed());
        Ran { status, said: self.said(), stderr, overdue, took }
    }

    fn kill(&mut self) {
        // The one that tells may be the child of a tracer, which would leave it behind.
        if let Some(Said::Pid(pid)) = self.said().first() {
            let _ = kill_process(pid_of(*pid), Signal::KILL);
        }
        let _ = self.child.kill();
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

fn pid_of(pid: u32) -> Pid {
    Pid::from_raw(pid.cast_signed()).expect("a process has a number")
}
