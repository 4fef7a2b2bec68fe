//! The worker's side: starts the supervisor with the first program, and hands it the
//! descriptors of each run.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal};

use super::SUPERVISE;
use super::program::Program;
use super::wire::{self, Order};

/// How long a supervisor has to end when its worker ends.
const PARTING: Duration = Duration::from_secs(5);

/// The connection of one worker to its supervisor.
pub(crate) struct Link {
    supervisor: PathBuf,
    lock: OwnedFd,
    lease: Duration,
    runs: AtomicU64,
    process: Mutex<Option<Process>>,
}

struct Process {
    child: Child,
    link: Arc<OwnedFd>,
    /// Dropped, it ends the thread that gives signs of life.
    pings: mpsc::Sender<()>,
}

/// A run's number, and the link of its supervisor.
pub(super) struct RunName {
    number: u64,
    link: Arc<OwnedFd>,
}

/// The worker's ends of a run's pipes and of its channel.
pub(super) struct Started {
    pub(super) run: RunName,
    pub(super) channel: File,
    pub(super) stdin: File,
    pub(super) stdout: File,
    pub(super) stderr: File,
    pub(super) protocol: Option<File>,
}

impl Link {
    /// `lock` proves that the worker lives; `lease` is how long the worker may be silent.
    pub(crate) fn new(supervisor: PathBuf, lock: OwnedFd, lease: Duration) -> Self {
        Self { supervisor, lock, lease, runs: AtomicU64::new(0), process: Mutex::default() }
    }

    pub(super) fn start(&self, program: &Program, root: &Path) -> io::Result<Started> {
        let (channel, theirs) = socket_pair(SocketType::STREAM)?;
        let (stdin, their_stdin) = pipe_to()?;
        let (stdout, their_stdout) = pipe_from()?;
        let (stderr, their_stderr) = pipe_from()?;
        let protocol = program.has_protocol.then(pipe_from).transpose()?;
        let mut descriptors = vec![theirs.as_fd(), their_stdin.as_fd(), their_stdout.as_fd(), their_stderr.as_fd()];
        descriptors.extend(protocol.iter().map(|(_, theirs)| theirs.as_fd()));
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let run = RunName { number, link: self.hand_over(number, &descriptors)? };
        let channel = File::from(channel);
        let order = Order {
            folder: root.join(program.folder.as_deref().unwrap_or(Path::new(""))),
            command: program.command.clone(),
            environment: program.environment.of(std::env::vars_os()),
        };
        order.send(&channel)?;
        Ok(Started { run, channel, stdin, stdout, stderr, protocol: protocol.map(|(ours, _)| ours) })
    }

    /// Has the supervisor kill the reaper of a run, because the reaper does not obey.
    pub(super) fn kill(&self, run: &RunName) {
        if let Some(process) = self.process().as_ref().filter(|process| Arc::ptr_eq(&process.link, &run.link)) {
            // The supervisor may be stopped.
            signal(&process.child, Signal::CONT);
            wire::send_kill(&process.link, run.number);
        }
    }

    /// Kills the supervisor, because it does not obey either. All its programs end with it.
    pub(super) fn give_up(&self, run: &RunName) {
        // A new supervisor may have its place by now. That one obeys.
        let process = self.process().take_if(|process| Arc::ptr_eq(&process.link, &run.link));
        if let Some(mut process) = process {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }

    /// Sends the descriptors to the supervisor, or to a new one if that has ended.
    fn hand_over(&self, number: u64, descriptors: &[BorrowedFd<'_>]) -> io::Result<Arc<OwnedFd>> {
        let mut process = self.process();
        // A stopped supervisor would accept the message and do nothing.
        process.iter().for_each(|known| signal(&known.child, Signal::CONT));
        if let Some(known) = &mut *process
            && known.child.try_wait().is_ok_and(|ended| ended.is_none())
            && wire::send_run(&known.link, number, descriptors).is_ok()
        {
            return Ok(Arc::clone(&known.link));
        }
        if let Some(ended) = process.take() {
            end(ended);
        }
        let new = process.insert(self.start_supervisor()?);
        wire::send_run(&new.link, number, descriptors)?;
        Ok(Arc::clone(&new.link))
    }

    fn start_supervisor(&self) -> io::Result<Process> {
        let (link, theirs) = socket_pair(SocketType::SEQPACKET)?;
        let link = Arc::new(link);
        let (pings, told_to_end) = mpsc::channel();
        let (pinged, every) = (Arc::clone(&link), self.lease / 16);
        // A thread of its own, because the others may wait for the database, and the worker lives all the same.
        std::thread::Builder::new().name("jobq-alive".to_owned()).spawn(move || {
            while told_to_end.recv_timeout(every) == Err(mpsc::RecvTimeoutError::Timeout) {
                wire::send_ping(&pinged);
            }
        })?;
        // Only what the system needs to find and load it, because programs of root can read its environment.
        let needed = ["PATH", "LD_LIBRARY_PATH"].map(|name| (name, std::env::var_os(name)));
        let needed = needed.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let child = Command::new(&self.supervisor)
            .arg(SUPERVISE)
            .arg(self.lease.as_millis().to_string())
            .env_clear()
            .envs(needed)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(self.lock.try_clone()?))
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Process { child, link, pings })
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

/// Closes the link. The supervisor then ends all programs and itself. It is continued if it was stopped,
/// and killed if it takes too long.
fn end(Process { mut child, link, pings }: Process) {
    drop(pings);
    // The thread that gives signs of life may hold the link for another moment.
    let _ = rustix::net::shutdown(&*link, rustix::net::Shutdown::Both);
    signal(&child, Signal::CONT);
    let since = Instant::now();
    while child.try_wait().is_ok_and(|ended| ended.is_none()) {
        if since.elapsed() > PARTING {
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn signal(child: &Child, signal: Signal) {
    let _ = rustix::process::kill_process(Pid::from_child(child), signal);
}

fn socket_pair(kind: SocketType) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?)
}

/// A pipe that this process writes to without blocking.
fn pipe_to() -> io::Result<(File, OwnedFd)> {
    let (theirs, ours) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
    Ok((ours.into(), theirs))
}

/// A pipe that this process reads from without blocking.
fn pipe_from() -> io::Result<(File, OwnedFd)> {
    let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
    Ok((ours.into(), theirs))
}
