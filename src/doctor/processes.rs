//! Which processes hold a lock on a part of a file, as far as the kernel tells
//! (Linux; elsewhere nobody is found).

use std::fmt;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{major, minor};

/// A process, and what it is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    command: String,
    pub(super) stopped: bool,
}

impl Process {
    /// What is known of a process; `None` when it is gone.
    pub(super) fn look(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in brackets and may have brackets itself.
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).trim_end_matches('\0').to_owned();
        let (program, rest_of_line) = line.split_once('\0').unwrap_or((&line, ""));
        let program = program.rsplit('/').next().filter(|program| !program.is_empty()).unwrap_or(name);
        let command = format!("{program} {}", rest_of_line.replace('\0', " "));
        let command = command.trim_end().chars().take(80).collect();
        Some(Self { pid, command, stopped: rest.trim_start().starts_with(['T', 't']) })
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.stopped { ", which is stopped" } else { "" };
        write!(f, "process {} ({}){state}", self.pid, self.command)
    }
}

/// All of them, for a sentence.
pub(super) fn list(processes: &[Process]) -> String {
    processes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// How often the table of locks is read before nobody is in it.
const LOOKS: usize = 3;

/// Who has a lock on one of these bytes of a file. The file is not opened: closing
/// it would drop the locks that SQLite has on it in this process.
pub(super) fn holding(file: &Path, bytes: &RangeInclusive<u64>, to_write: bool) -> Vec<Process> {
    let Ok(meta) = file.metadata() else { return Vec::new() };
    // The kernel hands the table out in pieces, and locks that come and go meanwhile shift the rest: a line may be
    // missed. So that there is nobody is believed only when it was so each time.
    let look = || {
        let table = std::fs::read_to_string("/proc/locks").unwrap_or_default();
        pids(&table, (meta.dev(), meta.ino()), bytes, to_write)
    };
    let mut pids = (0..LOOKS).map(|_| look()).find(|pids| !pids.is_empty()).unwrap_or_default();
    pids.sort_unstable();
    pids.dedup();
    pids.into_iter().filter_map(Process::look).collect()
}

/// `1: POSIX  ADVISORY  WRITE 4711 fe:00:10363698 120 120`. Filesystems made of
/// several devices report another one there than they do for the file: when none
/// is the file's, the inode alone has to do.
fn pids(table: &str, file: (u64, u64), bytes: &RangeInclusive<u64>, to_write: bool) -> Vec<u32> {
    let (device, inode) = (format!("{:02x}:{:02x}", major(file.0), minor(file.0)), file.1.to_string());
    let holder = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        // Those who wait have an arrow here.
        let (kind, _, mode) = (words.next()?, words.next()?, words.next()?);
        let pid: u32 = words.next()?.parse().ok()?;
        let (on, found) = words.next()?.rsplit_once(':')?;
        let first: u64 = words.next()?.parse().ok()?;
        let last = words.next()?.parse().unwrap_or(u64::MAX);
        let overlaps = first <= *bytes.end() && last >= *bytes.start();
        let holds = kind == "POSIX" && found == inode && overlaps && (mode == "WRITE" || !to_write);
        holds.then_some((on == device, pid))
    };
    let found: Vec<(bool, u32)> = table.lines().filter_map(holder).collect();
    let sure = found.iter().any(|(same_device, _)| *same_device);
    found.into_iter().filter(|(same_device, _)| *same_device || !sure).map(|(_, pid)| pid).collect()
}

#[cfg(test)]
mod tests {
    use rustix::fs::makedev;

    use super::*;

    const TABLE: &str = "\
1: POSIX  ADVISORY  WRITE 11 fe:00:77 120 120
1: -> POSIX  ADVISORY  WRITE 12 fe:00:77 120 120
2: POSIX  ADVISORY  READ 13 fe:00:77 124 124
3: POSIX  ADVISORY  READ 14 fe:00:77 128 128
4: FLOCK  ADVISORY  WRITE 15 fe:00:77 0 EOF
5: POSIX  ADVISORY  WRITE 16 fe:00:78 120 120
6: POSIX  ADVISORY  WRITE 17 fe:00:77 0 EOF
7: POSIX  ADVISORY  WRITE 18 08:01:77 120 120
";

    #[test]
    fn holders_are_told_from_those_who_wait_and_from_other_files() {
        let on = |major, minor| makedev(major, minor);
        assert_eq!(pids(TABLE, (on(0xfe, 0), 77), &(120..=120), true), [11, 17]);
        assert_eq!(pids(TABLE, (on(0xfe, 0), 77), &(123..=127), false), [13, 17]);
        assert_eq!(pids(TABLE, (on(8, 1), 77), &(120..=120), true), [18]);
        assert_eq!(pids(TABLE, (on(0, 45), 77), &(120..=120), true), [11, 17, 18], "of devices that are not told");
        assert_eq!(pids(TABLE, (on(0xfe, 0), 79), &(0..=u64::MAX), false), [0_u32; 0]);
    }

    #[test]
    fn this_process_runs() {
        let own = Process::look(std::process::id()).unwrap();
        assert!(!own.stopped && own.to_string().contains(&own.pid.to_string()), "{own}");
    }
}
