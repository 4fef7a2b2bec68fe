//! The process between a worker and the programs it runs. It keeps the worker's lock
//! until the last of them is dead, so nobody starts a job while an old program still
//! works on it. It ends the programs when the worker is gone, or has been frozen so
//! long that other workers are about to take its jobs.
//!
//! It is a small copy of the worker's own program with one thread, and starts one
//! more copy for each run: the [`Reaper`].

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions};

use super::reaper::Reaper;
use super::wire::{self, Message};
use super::{PROTOCOL_FD, kernel, tree};

/// A worker counts as frozen after so many checks without a sign of life. Checks and
/// not time: a supervisor that was frozen together with it has not checked.
const SILENT_LOOKS: u32 = 8;
/// The longest time between SIGTERM and SIGKILL when the worker is gone.
const ORPHAN_GRACE: Duration = Duration::from_millis(500);
/// How much longer a reaper may take before it is killed itself.
const REAPER_PATIENCE: Duration = Duration::from_millis(700);

struct Programs {
    /// `None` when the worker is gone.
    link: Option<OwnedFd>,
    /// Keeps the descriptor number free at which programs expect the line protocol.
    protocol_place: Option<OwnedFd>,
    runs: Vec<ProgramRun>,
    silent_looks: u32,
    orphan_grace: Duration,
}

struct ProgramRun {
    number: u64,
    reaper: Pid,
    ended: OwnedFd,
    /// Kept until all processes of the run are dead. The worker takes its end for that.
    _channel: OwnedFd,
    /// When it closes, the reaper ends its program.
    guard: Option<OwnedFd>,
    /// When to kill the reaper if it has not ended: its program may have stopped it. Its
    /// orphans become children of this process.
    kill_at: Option<Instant>,
}

/// The supervisor's whole life. Its standard input is the link, and its standard output
/// the worker's lock. A frozen worker's programs must be dead before the lease is over.
pub(super) fn run(lease: Duration) -> io::Result<()> {
    // Programs of the same user must not read the memory and the descriptors of this process or its copies.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    kernel::close_what_was_passed_on()?;
    // This gets the lowest free number, because nothing else is open.
    let protocol_place = OwnedFd::from(File::open("/dev/null")?);
    if protocol_place.as_raw_fd() != PROTOCOL_FD {
        return Err(io::Error::other("the descriptor of the line protocol is taken"));
    }
    let nowhere = File::options().read(true).write(true).open("/dev/null")?;
    // Leaves the worker's terminal, whose Ctrl-C is for the worker alone.
    let _ = rustix::process::setsid();
    kernel::outlive_polite_signals();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let link = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?;
    let _lock = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
    rustix::stdio::dup2_stdin(&nowhere)?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    let orphan_grace = ORPHAN_GRACE.min(lease / 8);
    let look = (lease / 4 * 3).saturating_sub(orphan_grace) / SILENT_LOOKS;
    let (link, protocol_place) = (Some(link), Some(protocol_place));
    Programs { link, protocol_place, runs: Vec::new(), silent_looks: 0, orphan_grace }.until_all_are_dead(look)
}

impl Programs {
    fn until_all_are_dead(mut self, look: Duration) -> io::Result<()> {
        while self.link.is_some() || !self.runs.is_empty() {
            let now = Instant::now();
            let kill_at = self.runs.iter().filter_map(|run| run.kill_at).min();
            let wait = kill_at.map_or(look, |at| at.saturating_duration_since(now).min(look));
            let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
            let mut ready: Vec<PollFd<'_>> =
                self.runs.iter().map(|run| PollFd::new(&run.ended, PollFlags::IN)).collect();
            ready.extend(self.link.iter().map(|link| PollFd::new(link, PollFlags::IN)));
            match rustix::event::poll(&mut ready, Some(&wait)) {
                Ok(0) if kill_at.is_none() => self.silent_looks += 1,
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            self.bury()?;
            self.listen();
            if self.silent_looks >= SILENT_LOOKS {
                self.end_all_runs();
            }
            self.kill_those_that_do_not_end();
        }
        Ok(())
    }

    fn listen(&mut self) {
        while let Some(link) = &self.link {
            match wire::receive(link) {
                // If the start fails, the run's channel closes, and the worker tries again later.
                Ok(Message::Run(number, descriptors)) => drop(self.start(number, descriptors)),
                Ok(Message::Kill(number)) => {
                    let now = Instant::now();
                    self.runs.iter_mut().filter(|run| run.number == number).for_each(|run| run.kill_at = Some(now));
                }
                Ok(Message::Ping) => self.silent_looks = 0,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Message::End) | Err(_) => {
                    self.link = None;
                    self.end_all_runs();
                }
            }
        }
    }

    /// Reapers notice the end of their worker by themselves, but not that it is frozen.
    fn end_all_runs(&mut self) {
        let at = Instant::now() + self.orphan_grace + REAPER_PATIENCE;
        for run in &mut self.runs {
            run.guard = None;
            run.kill_at.get_or_insert(at);
        }
    }

    fn kill_those_that_do_not_end(&mut self) {
        let now = Instant::now();
        for run in self.runs.iter_mut().filter(|run| run.kill_at.is_some_and(|at| at <= now)) {
            // `bury` notices its end.
            let _ = rustix::process::kill_process(run.reaper, Signal::KILL);
            run.kill_at = None;
        }
    }

    fn start(&mut self, number: u64, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        self.silent_looks = 0;
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or_else(|| io::Error::other("a run without its descriptors"));
        let (channel, stdin, stdout, stderr) = (next()?, next()?, next()?, next()?);
        let protocol = descriptors.next();
        let (guarded, guard) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let Some(reaper) = kernel::fork()? else {
            // The copy closes the descriptors of other runs, or their ends would go unnoticed.
            self.runs.clear();
            self.link = None;
            drop(guard);
            let orphan_grace = self.orphan_grace;
            let protocol = self.protocol_place.take().zip(protocol).map(at_its_place).transpose();
            let report = protocol.and_then(|protocol| {
                Reaper { channel, stdin, stdout, stderr, protocol, guard: guarded, orphan_grace }.run()
            });
            // Without a report, the worker notices the end of the channel.
            std::process::exit(i32::from(report.is_err()));
        };
        let ended = rustix::process::pidfd_open(reaper, PidfdFlags::empty())?;
        self.runs.push(ProgramRun { number, reaper, ended, _channel: channel, guard: Some(guard), kill_at: None });
        Ok(())
    }

    /// Waits for reapers that have ended, and ends the orphans of reapers that were killed.
    fn bury(&mut self) -> io::Result<()> {
        let mut ended = Vec::new();
        loop {
            let (more, has_orphans) = ended_children();
            ended.extend(more);
            if !has_orphans {
                break;
            }
            // The next round waits for them, or they would look alive when this process has ended.
            let living: Vec<Pid> = self.runs.iter().map(|run| run.reaper).filter(|pid| !ended.contains(pid)).collect();
            tree::end_all_but(&living)?;
        }
        self.runs.retain(|run| !ended.contains(&run.reaper));
        Ok(())
    }
}

/// Children that have ended, and whether one of them may have left orphans.
fn ended_children() -> (Vec<Pid>, bool) {
    let (mut ended, mut was_killed) = (Vec::new(), false);
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        was_killed |= status.exit_status() != Some(0);
        ended.push(pid);
    }
    (ended, was_killed)
}

/// Gives the line protocol the descriptor number that the program expects.
fn at_its_place((mut place, protocol): (OwnedFd, OwnedFd)) -> io::Result<OwnedFd> {
    rustix::io::dup2(protocol, &mut place)?;
    Ok(place)
}
