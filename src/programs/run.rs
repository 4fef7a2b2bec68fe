//! One run of a program, seen from the worker: its input goes in, its output comes
//! out, it is ended if its job is to stop, and what came of it is told when nothing
//! of it lives any more. One thread does all of that.

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

/// Who a program is run for.
pub(crate) trait Client {
    /// Readable from the moment that [`wants_end`](Client::wants_end) has an answer.
    fn wake(&self) -> BorrowedFd<'_>;
    /// Whether the program is to end, and how.
    fn wants_end(&self) -> Option<Ending>;
    /// Something came over the line protocol. False when the program is to end.
    fn heard(&mut self, bytes: &[u8]) -> bool;
}

/// How a program is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It has its grace.
    Graceful,
    AtOnce,
}

/// Why there is no end to tell of.
#[derive(Debug)]
pub(crate) enum RunError {
    /// The program could not be started.
    NotStarted(io::Error),
    /// The folder it was to run in cannot be entered.
    NoFolder(io::Error),
    /// There is no supervisor, or it ended before it started the program.
    Supervisor(io::Error),
    /// The supervisor started the program, and nobody knows how the program ended.
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
    /// What is still to be written.
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

/// The program is to end.
struct Asked {
    how: Ending,
    /// It should have ended by then, with all that belongs to it.
    over_at: Instant,
    /// How much has been done since to make sure that it does.
    reminders: u32,
}

/// What ending takes besides the grace.
const PATIENCE: Duration = Duration::from_secs(2);
/// What is read after the end, at most: there may be others who still write.
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

/// What there is to read; `None` when there is nothing now, or nothing any more.
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
                // Nobody writes any more but whom the program has given its pipes to: they are not waited for.
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

    /// A program that does not read its input is not made to.
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
        if !client.heard(bytes) {
            self.protocol = None;
            self.end_it(Ending::AtOnce);
        }
        true
    }

    fn end_it(&mut self, how: Ending) {
        let grace = if how == Ending::Graceful { self.grace } else { Duration::ZERO };
        let over_at = Instant::now().checked_add(grace + PATIENCE).unwrap_or_else(Instant::now);
        self.asked = Some(Asked { how, over_at, reminders: 0 });
        // If it cannot be told, the reaper has just said its last word, or is no more.
        let _ = self.channel.write_all(&EndIt { grace }.encode());
    }

    /// One that should be over and is not: its reaper was stopped perhaps, by the
    /// program itself. It goes without the reaper then, or without the supervisor.
    fn remind(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let Some(asked) = self.asked.as_mut().filter(|asked| asked.over_at <= now) else { return Ok(()) };
        asked.over_at = now + PATIENCE;
        asked.reminders += 1;
        match asked.reminders {
            1 => self.link.kill(&self.run),
            2 => self.link.give_up(&self.run),
            // What hangs in the kernel is waited for, and not for ever.
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
