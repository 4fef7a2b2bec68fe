//! The process that stands between a worker and the programs it runs. It keeps the
//! worker's lock until the last of them is dead, so nobody starts a job while an
//! old program still works on it; and it makes sure that they die: when the worker
//! is gone, or frozen for so long that its jobs are about to be anyone's.
//!
//! It is a copy of the worker's own program with one thread and no memory to speak
//! of, and starts one more copy for each run: the [`Reaper`].

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitOptions};

use super::reaper::Reaper;
use super::wire::{self, Message};
use super::{PROTOCOL_FD, kernel, tree};

/// A worker counts as frozen after so many looks without a sign of life. Looks and
/// not time: who was frozen together with it has not looked.
const SILENT_LOOKS: u32 = 8;

struct Programs {
    /// Until the worker is gone.
    link: Option<OwnedFd>,
    /// Keeps the place free where programs find the line protocol.
    protocol_place: Option<OwnedFd>,
    runs: Vec<Run>,
    silent_looks: u32,
}

struct Run {
    reaper: Pid,
    ended: OwnedFd,
    /// Kept until nothing of the run lives, so that the worker does not think so before.
    _channel: OwnedFd,
    /// Closed, it tells the reaper to end its program.
    guard: Option<OwnedFd>,
}

/// The whole life of the supervisor. It has the link as its standard input, and
/// the worker's lock as its standard output.
pub(super) fn run(patience: Duration) -> io::Result<()> {
    kernel::close_what_was_passed_on()?;
    // The lowest number that is free, because nothing else is open.
    let protocol_place = OwnedFd::from(File::open("/dev/null")?);
    if protocol_place.as_raw_fd() != PROTOCOL_FD {
        return Err(io::Error::other("the place of the line protocol is taken"));
    }
    let nowhere = File::options().read(true).write(true).open("/dev/null")?;
    // Not the worker's terminal: its Ctrl-C is the worker's alone.
    let _ = rustix::process::setsid();
    kernel::outlive_polite_signals();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let link = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?;
    let _lock = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
    rustix::stdio::dup2_stdin(&nowhere)?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    let look = Timespec::try_from(patience / SILENT_LOOKS).map_err(io::Error::other)?;
    Programs { link: Some(link), protocol_place: Some(protocol_place), runs: Vec::new(), silent_looks: 0 }
        .until_all_are_dead(look)
}

impl Programs {
    fn until_all_are_dead(mut self, look: Timespec) -> io::Result<()> {
        while self.link.is_some() || !self.runs.is_empty() {
            let mut ready: Vec<PollFd<'_>> =
                self.runs.iter().map(|run| PollFd::new(&run.ended, PollFlags::IN)).collect();
            ready.extend(self.link.iter().map(|link| PollFd::new(link, PollFlags::IN)));
            match rustix::event::poll(&mut ready, Some(&look)) {
                Ok(0) => self.silent_looks += 1,
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            self.bury()?;
            while let Some(link) = &self.link {
                match wire::receive(link) {
                    // If it cannot be started its channel closes, and its worker tries again later.
                    Ok(Message::Run(descriptors)) => drop(self.start(descriptors)),
                    Ok(Message::Ping) => self.silent_looks = 0,
                    // Its reapers hear of it by themselves.
                    Ok(Message::End) => self.link = None,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => self.link = None,
                }
            }
            if self.silent_looks >= SILENT_LOOKS {
                self.runs.iter_mut().for_each(|run| run.guard = None);
            }
        }
        Ok(())
    }

    fn start(&mut self, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        self.silent_looks = 0;
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or_else(|| io::Error::other("a run without its descriptors"));
        let (channel, stdin, stdout, stderr) = (next()?, next()?, next()?, next()?);
        let protocol = descriptors.next();
        let (guarded, guard) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let Some(reaper) = kernel::fork()? else {
            // The copy has nothing of the others: what it kept open would not be closed when it should.
            self.runs.clear();
            self.link = None;
            drop(guard);
            let protocol = self.protocol_place.take().zip(protocol).map(at_its_place).transpose();
            let report =
                protocol.and_then(|protocol| Reaper { channel, stdin, stdout, stderr, protocol, guard: guarded }.run());
            // Without a report the worker learns of it by the end of the channel.
            std::process::exit(i32::from(report.is_err()));
        };
        let ended = rustix::process::pidfd_open(reaper, PidfdFlags::empty())?;
        self.runs.push(Run { reaper, ended, _channel: channel, guard: Some(guard) });
        Ok(())
    }

    /// Reapers that have ended, and orphans of reapers that were killed.
    fn bury(&mut self) -> io::Result<()> {
        let mut ended = Vec::new();
        let mut has_orphans = false;
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            has_orphans |= status.exit_status() != Some(0);
            ended.push(pid);
        }
        if has_orphans {
            let living: Vec<Pid> = self.runs.iter().map(|run| run.reaper).filter(|pid| !ended.contains(pid)).collect();
            tree::end_all(&living)?;
        }
        self.runs.retain(|run| !ended.contains(&run.reaper));
        Ok(())
    }
}

/// Puts it where the program expects it, to be passed on.
fn at_its_place((mut place, protocol): (OwnedFd, OwnedFd)) -> io::Result<OwnedFd> {
    rustix::io::dup2(protocol, &mut place)?;
    Ok(place)
}
