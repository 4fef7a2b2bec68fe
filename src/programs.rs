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
//!   below it is dead. It notices the worker's death by its link, and a frozen
//!   worker by missing signs of life;
//! - a *reaper*, one per run, becomes the parent of its program's orphans, so
//!   nothing gets away. A run is over when none of its processes lives.
//!
//! Both hide from the programs: they are not dumpable, and have neither the worker's
//! environment nor its terminal. Nothing here knows of jobs.
//!
//! Limit: when supervisor and reaper are both killed, the program dies, but processes
//! that it started may live on.

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
