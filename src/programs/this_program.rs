//! The program that supervises: the worker's own, once more.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::SUPERVISE;

/// The program that supervises what handlers run: this one, or `jobq`.
///
/// Whatever a job starts must not outlive it: not its timeout, not a cancel, not
/// the worker's own death. A process of its own sees to that, and it needs a
/// program to be. An application says at the very start of its `main` that it can
/// be that program:
///
/// ```no_run
/// use jobq::{Supervisor, WorkerOptions};
/// // Returns at once, except in the process that is to supervise.
/// let supervisor = Supervisor::of_this_program();
/// let options = WorkerOptions { supervisor: Some(supervisor), ..WorkerOptions::default() };
/// ```
///
/// A worker without a supervisor leaves jobs that run programs to others.
#[derive(Clone, Debug)]
pub struct Supervisor {
    program: PathBuf,
}

impl Supervisor {
    /// This program. To be called before anything else is done: in the process that
    /// is to supervise it does not return.
    #[must_use]
    pub fn of_this_program() -> Self {
        let mut arguments = std::env::args_os().skip(1);
        if arguments.next().is_some_and(|word| word == SUPERVISE) {
            let lease = arguments.next().and_then(|millis| millis.to_str()?.parse().ok());
            let is_done = lease.is_some_and(|millis| super::supervisor::run(Duration::from_millis(millis)).is_ok());
            std::process::exit(i32::from(!is_done));
        }
        // The file that runs now, also when another has taken its place.
        Self { program: PathBuf::from("/proc/self/exe") }
    }

    /// A `jobq` program, or another one that calls
    /// [`of_this_program`](Supervisor::of_this_program).
    #[must_use]
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self { program: path.into() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.program
    }
}
