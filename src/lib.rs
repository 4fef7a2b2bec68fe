//! jobq is a durable outbox and job queue for programs whose data lives in
//! files: every accepted job is on disk before the call returns, is run, retried
//! and visible, and never silently lost or doubled.
//!
//! ```
//! use jobq::{Queue, handlers::CreateFile};
//! # fn main() -> jobq::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let folder = folder.path();
//! let queue = Queue::init(folder)?;
//! let job = queue.enqueue(CreateFile::text("out/hello.txt", "hello"))?;
//! assert_eq!(queue.get(&job.id)?.status, jobq::Status::Pending);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! - `aws`, `bundled`, `cli` are on by default. A library user wants
//!   `default-features = false, features = ["bundled"]`, which compiles SQLite in.
//! - `testing`: the module of that name, for the tests of applications.
//! - `tokio`: async handlers (`AsyncHandler`, `Registry::with_async`), and
//!   `Queue::enqueue_async`, `commit_async` and `call_async`, which do not block
//!   the runtime. Everything else blocks: a worker needs a thread, and has to stop
//!   before the runtime of its handlers ends.
//!
//! What handlers log with `tracing` is within a span `job.execute` with the fields
//! `job_id`, `type`, `attempt` and, if there is one, `correlation_id`.
//!
//! # Layout
//!
//! ```text
//! state            the state machine: one enum, one pure function
//! new_job, job     a job as it is asked for, and as it is kept
//! payload          typed payloads, and the types a process knows
//! json, path       payload text and its meaning; paths as text
//! path_policy      which files jobs may change
//! queue            what applications call
//! commit           files and jobs accepted as one
//! extract          from a requirement to the job that asks Claude about it
//! reconcile        what completed jobs did beside what is on the disk
//! handler          what runs a job: trait, context, outcome, registry
//! program_handlers programs as handlers, without Rust
//! programs         child processes: started, watched, and ended with their job
//! worker           the loop that claims, runs, decides and applies
//! testing          for applications' tests: run everything now, with a clock of one's own
//! effects          staging and apply: the one place that changes users' files
//! liveness         who is alive: lock files, and sweeps for those who are not
//! doctor           is this queue in order, and if not, what to do
//! store            the contract of the storage engine
//! store::sqlite    its implementation: writer, schema, one file per verb
//! handlers         the built-in job types
//! clock, retry     time and backoff, as arguments
//! error            the one error type
//! ```
//!
//! Data flows one way: `main → cli → queue, liveness → store → job, state, error`.

#![deny(missing_docs)]

pub mod clock;
mod commit;
pub mod doctor;
pub mod effects;
mod error;
pub mod extract;
pub mod handler;
#[path = "../handlers/mod.rs"]
pub mod handlers;
mod job;
mod job_object;
mod json;
pub mod liveness;
mod new_job;
mod path;
mod path_policy;
mod payload;
mod program_handlers;
mod programs;
#[cfg(test)]
mod properties;
mod queue;
mod reconcile;
mod retry;
mod site;
pub mod state;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod worker;

pub use commit::{Accepted, Draft, Snapshot};
pub use effects::{Expect, FileEffect, Sight, Staged};
pub use error::{Error, ErrorKind, Result, printable};
#[cfg(feature = "tokio")]
pub use handler::AsyncHandler;
pub use handler::{Context, Ended, Handler, HandlerError, Outcome, Registry, Stop};
pub use job::Job;
pub use json::{JsonText, MAX_JSON_BYTES, MAX_JSON_DEPTH, sha256_hex};
pub use new_job::{MAX_TIME, NewJob, Unique};
pub use path::normalise_path;
pub use path_policy::FilePolicy;
pub use payload::{DefaultKey, Defaults, Hold, JobTypes, Keep, Payload};
pub use program_handlers::{ListedProgram, ProgramHandlers, ProgramSettings};
pub use programs::{Exit, Program, ProgramEnd, Supervisor};
pub use queue::{Queue, QueueOptions};
pub use reconcile::{
    Actual, Difference, DiskWatch, Drift, Finding, PathFilter, ReconcileOptions, Reconciled, Repair, StopWatch,
};
pub use retry::Backoff;
pub use site::Attach;
pub use state::{Gate, Status};
pub use store::{
    Cancellation, EnqueueOutcome, Enqueued, Event, EventQuery, Filter, PruneRequest, Recent, RecentQuery, Stats,
};
pub use worker::{Retention, Shutdown, Worker, WorkerEvent, WorkerOptions, WorkerSummary};

/// The README's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So do those of the guide, which has a part about each of these features.
#[cfg(all(doctest, feature = "testing", feature = "tokio"))]
#[doc = include_str!("../docs/guide.md")]
struct Guide;

/// Those of the tour, too.
#[cfg(doctest)]
#[doc = include_str!("../docs/tour.md")]
struct Tour;
