//! The supervisor's program, which usually is the worker's own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::SUPERVISE;

/// The program that supervises what handlers run: this one, or `jobq`.
///
/// Processes that a job starts end with the job: at its timeout, at a cancel, and when
/// the worker dies. A separate process ensures that. Usually the application is its
/// program, too, and says so at the very start of its `main`:
///
/// ```no_run
/// use jobq::{Supervisor, WorkerOptions};
/// // Returns at once, except in the supervising process.
/// let supervisor = Supervisor::of_this_program();
/// let options = WorkerOptions { supervisor: Some(supervisor), ..WorkerOptions::default() };
/// ```
///
/// A worker without a supervisor leaves jobs that run programs to other workers.
///
/// The supervising process gets `PATH` and `LD_LIBRARY_PATH` only, and `/dev/null` as
/// its standard error. The programs cannot read its memory unless they run as root.
#[derive(Clone, Debug)]
pub struct Supervisor {
    program: PathBuf,
}

impl Supervisor {
    /// This program. Call it before anything else: in the supervising process it does
    /// not return.
    #[must_use]
    pub fn of_this_program() -> Self {
        let mut arguments = std::env::args_os().skip(1);
        if arguments.next().is_some_and(|word| word == SUPERVISE) {
            let lease = arguments.next().and_then(|millis| millis.to_str()?.parse().ok());
            let is_done = lease.is_some_and(|millis| super::supervisor::run(Duration::from_millis(millis)).is_ok());
            std::process::exit(i32::from(!is_done));
        }
        // The file that runs now, even if a newer one has replaced it.
        Self { program: PathBuf::from("/proc/self/exe") }
    }

    /// A `jobq` program, or another program that calls
    /// [`of_this_program`](Supervisor::of_this_program).
    #[must_use]
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self { program: path.into() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.program
    }
}
