//! A committer that lives is left alone, however long it takes.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use jobq::Status;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::strace::{self, At, Call};
use super::world::{ID, JOBS, World, after, before, jobs};

/// How long anything that must happen may take before the test gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until something is so.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A process that stands still behind a call.
pub struct Stopped {
    child: Child,
}

impl Stopped {
    pub fn behind(command: &Command, call: &Call, log: &Path) -> Self {
        // strace steps aside, so that the process is our own child.
        let mut command = strace::injected(command, call, At::Stop, log, &["-D"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stopped = Self { child };
        let seen = || std::fs::read_to_string(log).unwrap_or_default();
        until("it stands still", || seen().contains("stopped by SIGSTOP"));
        stopped
    }

    /// Lets it go on, and to its end; returns what it says.
    pub fn go_on(mut self) -> Value {
        kill_process(Pid::from_child(&self.child), Signal::CONT).unwrap();
        let mut said = Vec::new();
        self.child.stdout.take().unwrap().read_to_end(&mut said).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
        serde_json::from_slice(&said).unwrap()
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // After a failed check it may still stand there.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_committer_that_stands_still_is_not_stolen_from() {
    if !strace::is_there() {
        return;
    }
    let example = World::new();
    let calls = strace::census(&example.committer("commit"), &example.root(), &example.outside("log"));
    let told = calls.iter().find(|call| call.line.contains(".jobq/wake")).unwrap();
    let world = World::new();
    let committer = Stopped::behind(&world.committer("commit"), told, &world.outside("log"));

    let untouched = || {
        assert_eq!(world.tree(), before());
        let queue = world.open();
        let job = queue.get(ID).unwrap();
        assert_eq!((job.status, job.token), (Status::Claimed, 1));
        let jobs = jobs(&queue);
        assert!(jobs.len() == JOBS.len() && jobs.iter().all(|job| job.blocked.is_some()), "{jobs:?}");
        job.locked_by
    };
    let owner = untouched();
    assert!(owner.is_some());
    for others in [world.opener(), world.jobq(&["worker", "--drain"]), world.jobq(&["reclaim"])] {
        let mut others = others;
        let said = others.output().unwrap();
        assert!(said.status.success(), "{said:?}");
        assert_eq!(untouched(), owner);
    }
    let again = world.committer("commit").output().unwrap();
    assert!(again.status.success(), "{again:?}");
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((&again["status"], &again["applied"]), (&"claimed".into(), &false.into()));
    assert!(again["reason"].as_str().unwrap().contains(owner.as_deref().unwrap()), "{again}");
    assert_eq!(untouched(), owner);

    let said = committer.go_on();
    assert_eq!((&said["status"], &said["applied"]), (&"completed".into(), &true.into()));
    assert_eq!(world.tree(), after());
    assert_eq!(world.open().get(ID).unwrap().token, 1, "nobody else had it");
    assert!(world.all_or_nothing());
}
