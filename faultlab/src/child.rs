//! The process under fault: does one thing on its main thread, as an application
//! would, and tells what it was answered.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jobq::{ErrorKind, Queue};
use rustix::time::{ClockId, clock_gettime};

use crate::jobs;
use crate::said::{Said, Speaker};
use crate::scenarios;

/// A call is repeated this often before the process gives up.
const TRIES: u32 = 3;

/// Nothing more can be done.
pub struct GaveUp;

pub type Deed<T = ()> = Result<T, GaveUp>;

pub struct Child {
    pub root: PathBuf,
    pub speaker: Speaker,
    /// Staged files so far: each has a name of its own.
    pub staged: Cell<usize>,
}

impl Child {
    pub fn tell(&self, said: &Said) {
        self.speaker.tell(said);
    }

    /// Makes a call, and makes it again when it fails: a fault may be over by then.
    pub fn attempt<T, E: Into<jobq::Error>>(&self, mut call: impl FnMut() -> Result<T, E>) -> Deed<T> {
        for _ in 0..TRIES {
            match call().map_err(Into::into) {
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    self.failed(error.kind(), &error.to_string());
                }
            }
        }
        Err(GaveUp)
    }

    pub fn failed(&self, kind: ErrorKind, words: &str) {
        self.tell(&Said::Failed(format!("{kind:?}"), words.to_owned()));
    }

    pub fn open(&self) -> Deed<Queue> {
        self.attempt(|| jobs::options(&self.root).open())
    }
}

/// What `faultlab child` does.
pub fn run(deed: &str, root: &Path) -> ExitCode {
    let child = Child { root: root.to_owned(), speaker: Speaker::new(), staged: Cell::new(0) };
    let deed = scenarios::deed(deed).expect("a scenario, or a part of one");
    let done = deed(&child);
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let millis = u64::try_from(time.tv_sec * 1_000 + time.tv_nsec / 1_000_000).unwrap_or(0);
    child.tell(&if done.is_ok() { Said::Done(millis) } else { Said::GaveUp(millis) });
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(3) }
}
