//! All processes below one, found in `/proc` and ended.
//!
//! A process whose parent dies becomes a child of the nearest subreaper above it,
//! so whatever a program starts stays below its reaper: children that have their
//! own session or were orphaned on purpose, too.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

/// How often one looks again at what cannot be ended from here (another user's
/// process, or one that hangs in the kernel).
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Living processes below `top`, but not those in `spared` nor what is below them.
pub(super) fn below(top: Pid, spared: &[Pid]) -> io::Result<HashSet<Pid>> {
    let mut children: HashMap<i32, Vec<Pid>> = HashMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else { continue };
        // One that has ended meanwhile has no file any more.
        let Ok(stat) = std::fs::read(format!("/proc/{}/stat", pid.as_raw_pid())) else { continue };
        if let Some(parent) = parent_in(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = HashSet::new();
    let mut to_visit = vec![top];
    while let Some(parent) = to_visit.pop() {
        for child in children.remove(&parent.as_raw_pid()).unwrap_or_default() {
            if !spared.contains(&child) && found.insert(child) {
                to_visit.push(child);
            }
        }
    }
    Ok(found)
}

/// The parent in a line of `/proc/<pid>/stat`, unless the process has ended. The
/// name before it may contain anything, brackets and blanks included.
fn parent_in(stat: &[u8]) -> Option<i32> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[after_name + 1..]).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let (state, parent) = (*fields.first()?, fields.get(1)?.parse().ok()?);
    // The first thread of a process may have ended and others live on.
    let threads: u32 = fields.get(17).and_then(|threads| threads.parse().ok()).unwrap_or(1);
    let has_ended = matches!(state, "Z" | "X" | "x") && threads <= 1;
    (!has_ended).then_some(parent)
}

/// Sends a signal to everything below this process.
pub(super) fn tell_all(signal: Signal, spared: &[Pid]) -> io::Result<()> {
    for pid in below(rustix::process::getpid(), spared)? {
        let _ = rustix::process::kill_process(pid, signal);
    }
    Ok(())
}

/// Ends everything below this process, and returns when it is dead. Each is
/// stopped before any is killed: what is stopped starts no more.
pub(super) fn end_all(spared: &[Pid]) -> io::Result<()> {
    loop {
        let mut stopped = HashSet::new();
        loop {
            let new: Vec<Pid> =
                below(rustix::process::getpid(), spared)?.into_iter().filter(|pid| !stopped.contains(pid)).collect();
            if new.is_empty() {
                break;
            }
            for pid in new {
                let _ = rustix::process::kill_process(pid, Signal::STOP);
                stopped.insert(pid);
            }
        }
        for pid in &stopped {
            let _ = rustix::process::kill_process(*pid, Signal::KILL);
        }
        if stopped.is_empty() {
            return Ok(());
        }
        // Death takes a moment, and what hangs in the kernel takes its time.
        if !below(rustix::process::getpid(), spared)?.is_empty() {
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

/// Takes note of children that have ended, so that nobody takes them for living.
/// True if there is no child left, and so nothing below them: what they had would
/// be this process's now.
pub(super) fn bury() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(errno) => return errno == Errno::CHILD,
        }
    }
}

/// How the child ended, once it has. Others that ended are buried on the way.
pub(super) fn ended(child: Pid) -> Result<Option<rustix::process::WaitStatus>, Errno> {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == child => return Ok(Some(status)),
            Ok(Some(_)) => {}
            Ok(None) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_contain_what_separates_fields() {
        assert_eq!(parent_in(b"7 (a) R 5 (b) S 42 7 7 0"), Some(42));
        let with_threads = |number| format!("7 (sleep) Z 42 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 {number} 0");
        assert_eq!(parent_in(with_threads(1).as_bytes()), None, "it has ended");
        assert_eq!(parent_in(with_threads(2).as_bytes()), Some(42), "another of its threads has not");
        assert_eq!(parent_in(b"7 (sleep"), None);
    }
}
