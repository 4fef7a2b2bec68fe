//! One run of a program, seen from the worker. One thread writes its input, reads its
//! output, ends it if its job must stop, and returns how it ended once all its
//! processes are dead.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::link::{Link, RunName};
use super::program::{Exit, Program, ProgramEnd};
use super::tail::Tail;
use super::wire::{EndIt, Report, STARTING};

/// The caller's side of a run.
pub(crate) trait Client {
    /// Becomes readable when [`wants_end`](Client::wants_end) has an answer.
    fn wake(&self) -> BorrowedFd<'_>;
    /// Whether the program must end, and how.
    fn wants_end(&self) -> Option<Ending>;
    /// Takes bytes of the line protocol. False when the program must end.
    fn receive(&mut self, bytes: &[u8]) -> bool;
}

/// How a program must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With its grace.
    Graceful,
    AtOnce,
}

/// Why a run has no [`ProgramEnd`].
#[derive(Debug)]
pub(crate) enum RunError {
    /// The program could not be started.
    NotStarted(io::Error),
    /// The program's folder cannot be entered.
    NoFolder(io::Error),
    /// There is no supervisor, or it ended before it started the program.
    Supervisor(io::Error),
    /// The program may have run, and its supervisor died without saying how it ended.
    NoReport(io::Error),
}

/// Runs a program to its end.
pub(crate) fn run(
    link: &Link,
    program: &Program,
    root: &Path,
    client: &mut dyn Client,
) -> Result<ProgramEnd, RunError> {
    if program.has_zero_byte() {
        let why = "a zero byte in its arguments or its environment";
        return Err(RunError::NotStarted(io::Error::new(io::ErrorKind::InvalidInput, why)));
    }
    let started = link.start(program, root).map_err(RunError::Supervisor)?;
    let mut run = Running {
        input: &program.stdin,
        stdin: Some(started.stdin),
        stdout: Output::new(started.stdout, program.keep),
        stderr: Output::new(started.stderr, program.keep),
        protocol: started.protocol,
        channel: started.channel,
        link,
        run: started.run,
        grace: program.grace,
        has_started: false,
        asked: None,
    };
    let followed = run.follow(client);
    let report = followed.map_err(if run.has_started { RunError::NoReport } else { RunError::Supervisor })?;
    let exit = match report {
        Report::Exited(code) => Exit::Code(code),
        Report::Killed(signal) => Exit::Signal(signal),
        Report::NotStarted(errno) => return Err(RunError::NotStarted(io::Error::from_raw_os_error(errno))),
        Report::NoFolder(errno) => return Err(RunError::NoFolder(io::Error::from_raw_os_error(errno))),
    };
    let ((stdout, stdout_cut), (stderr, stderr_cut)) = (run.stdout.tail.end(), run.stderr.tail.end());
    Ok(ProgramEnd { exit, stdout, stderr, stdout_cut, stderr_cut })
}

struct Running<'p> {
    /// The rest of the input.
    input: &'p [u8],
    stdin: Option<File>,
    stdout: Output,
    stderr: Output,
    protocol: Option<File>,
    channel: File,
    link: &'p Link,
    run: RunName,
    grace: Duration,
    /// The program may have started.
    has_started: bool,
    asked: Option<Asked>,
}

/// The worker has asked the program to end.
struct Asked {
    how: Ending,
    /// All its processes should be dead by then.
    over_at: Instant,
    /// How often the worker has found it alive after that.
    reminders: u32,
}

/// How long ending takes besides the grace.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most reads after the end: another process may still hold the pipe and write.
const MOST_AFTER_THE_END: usize = 1 << 12;

/// One output of the program, until it is closed.
struct Output {
    pipe: Option<File>,
    tail: Tail,
}

impl Output {
    fn new(pipe: File, keep: usize) -> Self {
        Self { pipe: Some(pipe), tail: Tail::new(keep) }
    }

    fn read(&mut self, buffer: &mut [u8]) -> bool {
        read(&mut self.pipe, buffer).is_some_and(|bytes| {
            self.tail.push(bytes);
            true
        })
    }
}

/// The next bytes; `None` when there are none now, or the pipe is at its end.
fn read<'b>(pipe: &mut Option<File>, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    match pipe.as_mut()?.read(buffer) {
        Ok(0) => *pipe = None,
        Ok(count) => return Some(&buffer[..count]),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
        Err(_) => *pipe = None,
    }
    None
}

impl Running<'_> {
    fn follow(&mut self, client: &mut dyn Client) -> io::Result<Report> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            if let Some(how) = client.wants_end()
                && self.asked.as_ref().is_none_or(|asked| asked.how == Ending::Graceful && how == Ending::AtOnce)
            {
                self.end_it(how);
            }
            self.remind()?;
            let has_message = self.wait(client)?;
            self.write();
            self.stdout.read(&mut buffer);
            self.stderr.read(&mut buffer);
            self.listen(client, &mut buffer);
            if has_message && let Some(report) = self.report()? {
                // Only processes outside the run that got its pipes can still write. The worker does not wait for them.
                for _ in 0..MOST_AFTER_THE_END {
                    let more = self.stdout.read(&mut buffer) | self.stderr.read(&mut buffer);
                    if !(self.listen(client, &mut buffer) | more) {
                        break;
                    }
                }
                return Ok(report);
            }
        }
    }

    /// Waits until there is something to do. True when there is a message of the reaper, or the reaper is gone.
    fn wait(&self, client: &dyn Client) -> io::Result<bool> {
        let mut wanted = vec![(self.channel.as_fd(), PollFlags::IN)];
        if self.asked.is_none() {
            wanted.push((client.wake(), PollFlags::IN));
        }
        wanted.extend(self.stdin.iter().map(|pipe| (pipe.as_fd(), PollFlags::OUT)));
        let outputs = [&self.stdout.pipe, &self.stderr.pipe, &self.protocol];
        wanted.extend(outputs.into_iter().flatten().map(|pipe| (pipe.as_fd(), PollFlags::IN)));
        let mut ready: Vec<_> = wanted.into_iter().map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        let left = self.asked.as_ref().map(|asked| asked.over_at.saturating_duration_since(Instant::now()));
        let left = left.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
        match rustix::event::poll(&mut ready, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(!ready[0].revents().is_empty()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// A program may leave its input unread.
    fn write(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        match stdin.write(self.input) {
            Ok(count) => self.input = &self.input[count..],
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => return,
            Err(_) => self.input = &[],
        }
        if self.input.is_empty() {
            self.stdin = None;
        }
    }

    fn listen(&mut self, client: &mut dyn Client, buffer: &mut [u8]) -> bool {
        let Some(bytes) = read(&mut self.protocol, buffer) else { return false };
        if !client.receive(bytes) {
            self.protocol = None;
            self.end_it(Ending::AtOnce);
        }
        true
    }

    fn end_it(&mut self, how: Ending) {
        let grace = if how == Ending::Graceful { self.grace } else { Duration::ZERO };
        let over_at = Instant::now().checked_add(grace + PATIENCE).unwrap_or_else(Instant::now);
        self.asked = Some(Asked { how, over_at, reminders: 0 });
        // If this fails, the reaper has sent its report, or is dead.
        let _ = self.channel.write_all(&EndIt { grace }.encode());
    }

    /// Kills the reaper of a run that should be over, then the supervisor. The program may have stopped
    /// them.
    fn remind(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let Some(asked) = self.asked.as_mut().filter(|asked| asked.over_at <= now) else { return Ok(()) };
        asked.over_at = now + PATIENCE;
        asked.reminders += 1;
        match asked.reminders {
            1 => self.link.kill(&self.run),
            2 => self.link.give_up(&self.run),
            // A process that hangs in the kernel gets more time, but not for ever.
            3..30 => {}
            _ => return Err(io::Error::other("the program could not be ended")),
        }
        Ok(())
    }

    /// How the program ended; `None` if the reaper says that it starts it now.
    fn report(&mut self) -> io::Result<Option<Report>> {
        let mut bytes = [0; Report::SIZE];
        self.channel.read_exact(&mut bytes).map_err(|_| io::Error::other("it was killed, or it crashed"))?;
        if bytes == STARTING {
            self.has_started = true;
            return Ok(None);
        }
        Report::decode(bytes).map(Some).ok_or_else(|| io::Error::other("its report cannot be read"))
    }
}
