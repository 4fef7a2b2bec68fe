//! All processes below one, found in `/proc` and ended.
//!
//! A process whose parent dies becomes a child of the nearest subreaper above it,
//! so whatever a program starts stays below its reaper: children that have their
//! own session or were orphaned on purpose, too.
//!
//! What is seen in `/proc` is a hint. A process that starts another and ends at once
//! may be missed by every look, so "all are dead" is only what `wait` says: that
//! there is no child any more.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

/// How often one looks again at what cannot be ended from here (another user's
/// process, or one that hangs in the kernel).
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A process and its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Member {
    pid: Pid,
    group: Option<Pid>,
}

/// Living processes below this one, but not those in `spared` nor what is below
/// them.
fn below(spared: &[Pid]) -> io::Result<HashSet<Member>> {
    let mut children: HashMap<i32, Vec<Member>> = HashMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else { continue };
        // One that has ended meanwhile has no file any more.
        let Ok(stat) = std::fs::read(format!("/proc/{}/stat", pid.as_raw_pid())) else { continue };
        if let Some((parent, group)) = parent_and_group(&stat) {
            children.entry(parent).or_default().push(Member { pid, group: Pid::from_raw(group) });
        }
    }
    let mut found = HashSet::new();
    let mut to_visit = vec![rustix::process::getpid()];
    while let Some(parent) = to_visit.pop() {
        for child in children.remove(&parent.as_raw_pid()).unwrap_or_default() {
            if !spared.contains(&child.pid) && found.insert(child) {
                to_visit.push(child.pid);
            }
        }
    }
    Ok(found)
}

/// Parent and group in a line of `/proc/<pid>/stat`, unless the process has ended.
/// The name before them may contain anything, brackets and blanks included.
fn parent_and_group(stat: &[u8]) -> Option<(i32, i32)> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[after_name + 1..]).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let (state, parent, group) = (*fields.first()?, fields.get(1)?.parse().ok()?, fields.get(2)?.parse().ok()?);
    // The first thread of a process may have ended and others live on.
    let threads: u32 = fields.get(17).and_then(|threads| threads.parse().ok()).unwrap_or(1);
    let has_ended = matches!(state, "Z" | "X" | "x") && threads <= 1;
    (!has_ended).then_some((parent, group))
}

/// Asks everything below this process to end. What was stopped is set going, or it
/// would not hear of it.
pub(super) fn ask_all_to_end() -> io::Result<()> {
    for member in below(&[])? {
        let _ = rustix::process::kill_process(member.pid, Signal::TERM);
        let _ = rustix::process::kill_process(member.pid, Signal::CONT);
    }
    Ok(())
}

/// Ends everything below this process, and returns when it is dead.
pub(super) fn end_all() -> io::Result<()> {
    let mut rounds = 0;
    while !bury() {
        kill_all(&[])?;
        // Death takes a moment, but who starts others all the time is not given one.
        rounds += 1;
        if rounds > 50 {
            std::thread::sleep(LOOK_AGAIN);
        }
    }
    Ok(())
}

/// The same for one who has other children, which are spared: as good as looking is.
pub(super) fn end_all_but(spared: &[Pid]) -> io::Result<()> {
    let mut looks_in_vain = 0;
    while looks_in_vain < 3 {
        looks_in_vain = if kill_all(spared)? { 0 } else { looks_in_vain + 1 };
        std::thread::yield_now();
    }
    Ok(())
}

/// One round; does not wait for anyone to die. True if there was anything to kill.
pub(super) fn kill_all(spared: &[Pid]) -> io::Result<bool> {
    let own = rustix::process::getpgrp();
    let found = below(spared)?;
    for member in &found {
        // A group is killed in one step, whatever its processes start meanwhile; one by one, something could always
        // be a step ahead. Groups of a program are its own: its reaper has a session of its own.
        if let Some(group) = member.group.filter(|group| *group != own) {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        let _ = rustix::process::kill_process(member.pid, Signal::KILL);
    }
    Ok(!found.is_empty())
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
pub(super) fn ended(child: Pid) -> Result<Option<WaitStatus>, Errno> {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == child => return Ok(Some(status)),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Ok(None),
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_contain_what_separates_fields() {
        assert_eq!(parent_and_group(b"7 (a) R 5 (b) S 42 7 7 0"), Some((42, 7)));
        let with_threads = |number| format!("7 (sleep) Z 42 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 {number} 0");
        assert_eq!(parent_and_group(with_threads(1).as_bytes()), None, "it has ended");
        assert_eq!(parent_and_group(with_threads(2).as_bytes()), Some((42, 7)), "another of its threads has not");
        assert_eq!(parent_and_group(b"7 (sleep"), None);
    }
}
