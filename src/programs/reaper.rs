//! One process per run of a program: its parent, and by adoption the parent of every
//! orphan that the program leaves. It reports how the program ended once all of these
//! are dead. It ends the program when told to, or when worker or supervisor are gone.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitStatus};

use super::wire::{EndIt, Order, Report, STARTING};
use super::{kernel, tree};

/// How often the reaper waits for dead orphans while the program runs.
const BURY: Duration = Duration::from_secs(5);
/// How often the reaper checks a program that was asked to end.
const LOOK: Duration = Duration::from_millis(10);

/// A reaper's descriptors and settings.
pub(super) struct Reaper {
    pub(super) channel: OwnedFd,
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// Has the number at which the program expects the line protocol, if it has one.
    pub(super) protocol: Option<OwnedFd>,
    pub(super) guard: OwnedFd,
    /// The time between SIGTERM and SIGKILL when worker or supervisor are gone. It is short, because
    /// other workers wait for the job.
    pub(super) orphan_grace: Duration,
}

impl Reaper {
    /// The reaper's whole life, from the order to the report.
    pub(super) fn run(self) -> io::Result<()> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        // A session of its own, so that no process group contains processes of two programs.
        rustix::process::setsid()?;
        // If the supervisor dies, this process has to act even if its program has stopped it.
        rustix::process::set_parent_process_death_signal(Some(Signal::CONT))?;
        let mut channel = File::from(self.channel);
        let order = Order::receive(&channel)?;
        // Here and not in the child: there a missing folder would look like a missing program.
        if let Err(errno) = rustix::process::chdir(&order.folder) {
            return channel.write_all(&Report::NoFolder(errno.raw_os_error()).encode());
        }
        let mut command = Command::new(&order.command[0]);
        command
            .args(&order.command[1..])
            .env_clear()
            .envs(order.environment)
            .process_group(0)
            .stdin(Stdio::from(self.stdin))
            .stdout(Stdio::from(self.stdout))
            .stderr(Stdio::from(self.stderr));
        kernel::dies_with_its_parent(&mut command);
        // Before the start and not after it: a program may kill this process at once, and its attempt must count.
        channel.write_all(&STARTING)?;
        let started = command.spawn();
        // Now only the program holds its ends of the pipes, so the worker sees when it closes them.
        drop((command, self.protocol));
        let pid = match started {
            Ok(child) => Pid::from_child(&child),
            Err(error) => return channel.write_all(&Report::NotStarted(error.raw_os_error().unwrap_or(0)).encode()),
        };
        let report = watch(pid, &mut channel, &self.guard, self.orphan_grace)?;
        channel.write_all(&report.encode())
    }
}

/// The state of a program that runs.
struct ProgramWatch {
    program: Pid,
    /// How it ended. Processes that it started may still live.
    report: Option<Report>,
    /// It was asked to end, and is killed at this time.
    end_at: Option<Instant>,
}

/// Waits until the program and everything that it started is dead.
fn watch(program: Pid, channel: &mut File, guard: &OwnedFd, orphan_grace: Duration) -> io::Result<Report> {
    let handle = rustix::process::pidfd_open(program, PidfdFlags::empty())?;
    let mut watch = ProgramWatch { program, report: None, end_at: None };
    let (mut has_worker, mut has_guard) = (true, true);
    loop {
        let wait = match watch.check()? {
            Progress::Over(report) => return Ok(report),
            Progress::CheckAgainIn(wait) => Timespec::try_from(wait).map_err(io::Error::other)?,
        };
        // A closed descriptor would be ready for ever, and so would the handle of a dead process.
        let wanted =
            [(watch.report.is_none(), handle.as_fd()), (has_worker, channel.as_fd()), (has_guard, guard.as_fd())];
        let mut ready: Vec<PollFd<'_>> =
            wanted.iter().filter(|(is, _)| *is).map(|(_, fd)| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        match rustix::event::poll(&mut ready, Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let is_ready = |fd: BorrowedFd<'_>| {
            ready.iter().any(|one| one.as_fd().as_raw_fd() == fd.as_raw_fd() && !one.revents().is_empty())
        };
        let (from_worker, from_guard) = (is_ready(channel.as_fd()), is_ready(guard.as_fd()));
        if from_worker {
            let mut request = [0; EndIt::SIZE];
            has_worker = channel.read_exact(&mut request).is_ok();
            watch.end_in(if has_worker { EndIt::decode(request).grace } else { orphan_grace })?;
        }
        if from_guard {
            has_guard = false;
            watch.end_in(orphan_grace)?;
        }
    }
}

enum Progress {
    Over(Report),
    CheckAgainIn(Duration),
}

impl ProgramWatch {
    fn end_in(&mut self, grace: Duration) -> io::Result<()> {
        if self.end_at.is_none() {
            tree::ask_all_to_end()?;
        }
        let at = Instant::now().checked_add(grace);
        self.end_at = [self.end_at, at].into_iter().flatten().min();
        Ok(())
    }

    fn check(&mut self) -> io::Result<Progress> {
        let now = Instant::now();
        let is_due = self.end_at.is_some_and(|at| at <= now);
        if is_due {
            tree::kill_all(&[])?;
        }
        if self.report.is_none() {
            self.report = tree::ended(self.program)?.map(report_of);
        }
        let Some(report) = self.report else {
            let wait = if is_due { LOOK } else { self.end_at.map_or(BURY, |at| at - now).min(BURY) };
            return Ok(Progress::CheckAgainIn(wait));
        };
        // Most programs leave no orphans. Orphans are killed now, unless all processes were asked to end and still have
        // time to do so.
        if !tree::bury() {
            if self.end_at.is_some() && !is_due {
                return Ok(Progress::CheckAgainIn(LOOK));
            }
            tree::end_all()?;
        }
        Ok(Progress::Over(report))
    }
}

fn report_of(status: WaitStatus) -> Report {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Report::Exited(code),
        (_, signal) => Report::Killed(signal.unwrap_or(0)),
    }
}
