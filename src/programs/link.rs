//! A worker's side: starts the supervisor when the first program is to run, and
//! hands it what each run needs.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;

use super::program::Program;
use super::wire::{self, Order};

/// The word that makes a program a supervisor.
const SUPERVISE: &str = "__jobq-supervise";

/// The program that supervises what handlers run: this one, or `jobq`.
///
/// Whatever a job starts must not outlive it: not its timeout, not a cancel, not
/// the worker's own death. A process of its own sees to that, and it needs a
/// program to be. An application says at the very start of its `main` that it can
/// be that program:
///
/// ```no_run
/// use jobq::{Supervisor, WorkerOptions};
/// // Returns at once, except in the process that is to supervise.
/// let supervisor = Supervisor::of_this_program();
/// let options = WorkerOptions { supervisor: Some(supervisor), ..WorkerOptions::default() };
/// ```
///
/// A worker without a supervisor leaves jobs that run programs to others.
#[derive(Clone, Debug)]
pub struct Supervisor {
    program: PathBuf,
}

impl Supervisor {
    /// This program. To be called before anything else is done: in the process that
    /// is to supervise it does not return.
    #[must_use]
    pub fn of_this_program() -> Self {
        let mut arguments = std::env::args_os().skip(1);
        if arguments.next().is_some_and(|word| word == SUPERVISE) {
            let patience = arguments.next().and_then(|millis| millis.to_str()?.parse().ok());
            let end = patience.map(|millis| super::supervisor::run(Duration::from_millis(millis)));
            std::process::exit(match end {
                Some(Ok(())) => 0,
                Some(Err(error)) => {
                    eprintln!("jobq: the supervisor of programs ends: {error}");
                    1
                }
                None => 2,
            });
        }
        // The file that runs now, also when another has taken its place.
        Self { program: PathBuf::from("/proc/self/exe") }
    }

    /// A `jobq` program, or another one that calls
    /// [`of_this_program`](Supervisor::of_this_program).
    #[must_use]
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self { program: path.into() }
    }
}

/// The connection of one worker to its supervisor.
pub(crate) struct Link {
    supervisor: Supervisor,
    lock: OwnedFd,
    lease: Duration,
    process: Mutex<Option<Process>>,
}

struct Process {
    child: Child,
    link: OwnedFd,
}

/// The worker's ends of what a run was given.
pub(super) struct Started {
    pub(super) channel: File,
    pub(super) stdin: File,
    pub(super) stdout: File,
    pub(super) stderr: File,
    pub(super) protocol: Option<File>,
}

impl Link {
    /// `lock` is what says that the worker lives; `lease` how long it may be silent.
    pub(crate) fn new(supervisor: Supervisor, lock: OwnedFd, lease: Duration) -> Self {
        Self { supervisor, lock, lease, process: Mutex::default() }
    }

    /// A sign of life, often enough within a lease.
    pub(crate) fn ping(&self) {
        if let Some(process) = &*self.process() {
            wire::send_ping(&process.link);
        }
    }

    pub(super) fn start(&self, program: &Program, root: &Path) -> io::Result<Started> {
        let (channel, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let (stdin, their_stdin) = pipe_to()?;
        let (stdout, their_stdout) = pipe_from()?;
        let (stderr, their_stderr) = pipe_from()?;
        let protocol = program.has_protocol.then(pipe_from).transpose()?;
        let mut descriptors = vec![theirs.as_fd(), their_stdin.as_fd(), their_stdout.as_fd(), their_stderr.as_fd()];
        descriptors.extend(protocol.iter().map(|(_, theirs)| theirs.as_fd()));
        self.hand_over(&descriptors)?;
        let channel = File::from(channel);
        let order = Order {
            folder: root.join(program.folder.as_deref().unwrap_or(Path::new(""))),
            command: program.command.clone(),
            environment: program.environment.of(std::env::vars_os()),
        };
        order.send(&channel)?;
        Ok(Started { channel, stdin, stdout, stderr, protocol: protocol.map(|(ours, _)| ours) })
    }

    /// To the supervisor that runs, or to a new one if that has ended.
    fn hand_over(&self, descriptors: &[std::os::fd::BorrowedFd<'_>]) -> io::Result<()> {
        let mut process = self.process();
        if let Some(known) = &*process
            && wire::send_run(&known.link, descriptors).is_ok()
        {
            return Ok(());
        }
        if let Some(ended) = process.take() {
            end(ended);
        }
        let new = process.insert(self.start_supervisor()?);
        wire::send_run(&new.link, descriptors)
    }

    fn start_supervisor(&self) -> io::Result<Process> {
        let (link, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        // Before its jobs are anyone's the programs of a frozen worker are to be dead.
        let patience = self.lease / 4 * 3;
        let child = Command::new(&self.supervisor.program)
            .arg(SUPERVISE)
            .arg(patience.as_millis().to_string())
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(self.lock.try_clone()?))
            .spawn()?;
        Ok(Process { child, link })
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(process) = self.process().take() {
            end(process);
        }
    }
}

/// It ends when its link is closed and all programs are dead.
fn end(Process { mut child, link }: Process) {
    drop(link);
    let _ = child.wait();
}

/// A pipe that this process writes to without waiting.
fn pipe_to() -> io::Result<(File, OwnedFd)> {
    let (theirs, ours) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
    Ok((ours.into(), theirs))
}

/// A pipe that this process reads from without waiting.
fn pipe_from() -> io::Result<(File, OwnedFd)> {
    let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
    Ok((ours.into(), theirs))
}
