//! A process under strace: which calls of it change a file, and its end, a pause
//! or an error at any one of them.
//!
//! Only the main thread is traced when something is to happen to a call, and
//! strace counts the calls of each thread by themselves, so "the third `fsync`" is
//! the same call in every run. `--seccomp-bpf` would be faster, and forgets
//! signals without a word.
#![allow(dead_code, reason = "those who include it use their own part of this")]

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Everything that can change a file or its name, on any architecture.
const CALLS: &[&str] = &[
    "open",
    "openat",
    "openat2",
    "creat",
    "write",
    "writev",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "sendfile",
    "copy_file_range",
    "splice",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "sync",
    "syncfs",
    "msync",
    "truncate",
    "ftruncate",
    "fallocate",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "rmdir",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "chmod",
    "fchmod",
    "fchmodat",
    "chown",
    "fchown",
    "lchown",
    "fchownat",
    "utimensat",
    "setxattr",
    "fsetxattr",
    "removexattr",
    "fremovexattr",
    // Changes nothing by itself; see `Call::locks_index`.
    "fcntl",
];

/// How a process tells somebody else what it was answered. Traced, and never counted.
pub const TELLING: &str = "sendto";

/// One call of a process.
#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    /// It is the process's nth of that name.
    pub nth: usize,
    /// As strace writes it, with the paths behind descriptors.
    pub line: String,
}

impl Call {
    /// Whether it changes something, as far as its words tell.
    pub fn changes(&self) -> bool {
        match self.name.as_str() {
            "fcntl" => false,
            name if name.starts_with("open") => self.line.contains("O_CREAT") || self.line.contains("O_TRUNC"),
            _ => true,
        }
    }

    /// Whether it takes or gives back a lock of the log's index. That is in shared memory and is changed without any
    /// call; these are the calls before and after it.
    pub fn locks_index(&self) -> bool {
        self.name == "fcntl" && self.line.contains("-shm>") && self.line.contains("F_SETLK")
    }
}

/// Whether it is installed.
pub fn is_installed() -> bool {
    let said = Command::new("strace").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    said.is_ok_and(|status| status.success())
}

/// Whether tests that need it can be run. They are never left out without a word.
pub fn is_there() -> bool {
    let there = is_installed();
    if !there {
        crate::skipped::skipped("crashes of commits", "strace is not installed");
    }
    there
}

/// What happens at a call, before it is made. (A stop comes when it has been made.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Kill,
    Stop,
    /// It fails with this error and is not made.
    Fail(&'static str),
    /// So do all further calls of its name.
    FailOn(&'static str),
}

/// Runs a command to its end and returns the calls below `root` that change
/// something, in order. All of them are made by the main thread.
pub fn census(command: &Command, root: &Path, log: &Path) -> Vec<Call> {
    let status = quiet(&mut traced(command, log, &["-f"])).status().unwrap();
    assert!(status.success(), "{status}: {command:?}");
    sites(root, log)
}

/// The calls below `root` that change something, by the log of a process that was
/// traced with all its threads.
pub fn sites(root: &Path, log: &Path) -> Vec<Call> {
    let (main, others) = calls(log);
    let here = |call: &Call| call.changes() && call.line.contains(root.to_str().unwrap());
    // A reader's connection opens the log, which is there already and stays whose it was.
    let reads = |call: &Call| call.line.contains("jobq.db-wal") && ["openat", "fchown"].contains(&call.name.as_str());
    let strangers: Vec<_> = others.into_iter().filter(|call| here(call) && !reads(call)).collect();
    assert!(strangers.is_empty(), "another thread changes files: {strangers:?}");
    main.into_iter().filter(here).collect()
}

/// The same, and what the main thread does to the locks of the log's index.
pub fn sites_and_locks(root: &Path, log: &Path) -> Vec<Call> {
    let changes = sites(root, log);
    let is_site = |call: &Call| changes.iter().any(|site| (&site.name, site.nth) == (&call.name, call.nth));
    calls(log).0.into_iter().filter(|call| is_site(call) || call.locks_index()).collect()
}

/// Runs a command that is killed when it is about to make this call. Returns the
/// calls it has made.
pub fn killed_at(command: &Command, call: &Call, root: &Path, log: &Path) -> Vec<Call> {
    let status = quiet(&mut injected(command, call, At::Kill, log, &[])).status().unwrap();
    assert!(was_killed(status), "not killed at {call:?}: {status}");
    let (mut made, _) = calls(log);
    let last = made.pop().unwrap();
    assert_eq!((last.name.as_str(), last.nth), (call.name.as_str(), call.nth), "{last:?}");
    assert!(last.changes() && last.line.contains(root.to_str().unwrap()), "killed elsewhere: {last:?}");
    made
}

/// The command, to be killed or stopped at a call.
pub fn injected(command: &Command, call: &Call, at: At, log: &Path, options: &[&str]) -> Command {
    traced(command, log, &[&[injection(call, at).as_str()], options].concat())
}

/// strace for one thread of a process that is there.
pub fn attached(thread: u32, fault: Option<(&Call, At)>, log: &Path) -> Command {
    let mut strace = tracer(log);
    strace.args(fault.map(|(call, at)| injection(call, at))).arg("-p").arg(thread.to_string());
    strace
}

fn injection(call: &Call, at: At) -> String {
    let (what, further) = match at {
        At::Kill => ("signal=KILL".to_owned(), ""),
        At::Stop => ("signal=STOP".to_owned(), ""),
        At::Fail(error) => (format!("error={error}"), ""),
        At::FailOn(error) => (format!("error={error}"), "+"),
    };
    format!("--inject={}:{what}:when={}{further}", call.name, call.nth)
}

pub fn was_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    status.signal() == Some(9)
}

/// The command under strace, which writes what it sees to `log`.
pub fn traced(command: &Command, log: &Path, options: &[&str]) -> Command {
    let mut strace = tracer(log);
    strace.args(options).arg("--").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        strace.current_dir(folder);
    }
    strace
}

fn tracer(log: &Path) -> Command {
    let calls: Vec<String> = CALLS.iter().chain([&TELLING]).map(|name| format!("?{name}")).collect();
    let mut strace = Command::new("strace");
    strace.args(["-y", "-s", "0"]).arg("-o").arg(log).arg(format!("--trace={}", calls.join(",")));
    strace
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

/// The calls of the main thread, and those of all others.
pub fn calls(log: &Path) -> (Vec<Call>, Vec<Call>) {
    let text = std::io::read_to_string(File::open(log).unwrap()).unwrap();
    let mut first = None;
    let mut counts: HashMap<(String, String), usize> = HashMap::new();
    let (mut main, mut others) = (Vec::new(), Vec::new());
    for line in text.lines() {
        // Several threads: the line begins with the one it is of.
        let (thread, words) = match line.split_once(' ') {
            Some((number, words)) if number.bytes().all(|byte| byte.is_ascii_digit()) => (number, words.trim_start()),
            _ => ("", line),
        };
        let name = words.split('(').next().unwrap_or_default();
        if !CALLS.contains(&name) {
            continue;
        }
        let nth = counts.entry((thread.to_owned(), name.to_owned())).or_default();
        *nth += 1;
        let call = Call { name: name.to_owned(), nth: *nth, line: words.to_owned() };
        if first.get_or_insert_with(|| thread.to_owned()) == thread { main.push(call) } else { others.push(call) }
    }
    (main, others)
}
