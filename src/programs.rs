//! Programs that handlers run: started in an environment of their own, never
//! outliving the job they belong to.
//!
//! ```text
//! worker ─┬─ supervisor ─┬─ reaper ── program ── whatever it starts
//!         │  (keeps the  ├─ reaper ── program
//!         │   lock)      └─ …
//!         └─ handler threads: read and write the programs' pipes
//! ```
//!
//! - the *supervisor*, one per worker, keeps the worker's lock until everything
//!   below it is dead. It hears of the worker's death by its link, and of a frozen
//!   worker by signs of life that do not come;
//! - a *reaper*, one per run, is what orphans of its program become children of, so
//!   nothing gets away, and a run is over when nothing of it lives.
//!
//! Nothing here knows of jobs. What is not promised: that what a program has started
//! dies when supervisor and reaper are both killed. (The program itself does.)

mod environment;
mod kernel;
mod link;
mod program;
mod reaper;
mod run;
mod supervisor;
mod tail;
mod this_program;
mod tree;
mod wire;

pub(crate) use link::Link;
pub use program::{Exit, Program, ProgramEnd};
pub(crate) use program::{GRACE, KEEP};
pub(crate) use run::{Client, Ending, RunError, run};
pub use this_program::Supervisor;

/// The word that makes a program a supervisor.
const SUPERVISE: &str = "__jobq-supervise";

/// Where a program finds the line protocol; so low that every shell can write to it.
pub(crate) const PROTOCOL_FD: i32 = 3;
