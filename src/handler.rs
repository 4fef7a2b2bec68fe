//! What runs a job: the trait an application implements for its own types, what
//! it returns, and the table of handlers a worker has.

#[cfg(feature = "tokio")]
mod async_handler;
mod context;
mod error;
mod outcome;
mod programs;
mod registry;
mod run;
#[cfg(feature = "tokio")]
mod runtime;

#[cfg(feature = "tokio")]
pub use async_handler::AsyncHandler;
pub use context::Context;
pub(crate) use context::timed_out;
pub use error::HandlerError;
pub(crate) use error::Verdict;
pub use outcome::Outcome;
pub(crate) use outcome::Prepared;
pub(crate) use registry::AnyHandler;
pub use registry::Registry;
pub use run::Stop;
pub(crate) use run::{Run, Sending};
#[cfg(all(feature = "testing", feature = "tokio"))]
pub(crate) use runtime::Runtime;
#[cfg(feature = "tokio")]
pub(crate) use runtime::Watch;

use crate::job::Job;
use crate::payload::Payload;
use crate::store::Failure;

/// Runs jobs of one type.
///
/// A handler *prepares*: it may talk to the outside world, but it changes no
/// file below the root by itself. New content is staged
/// ([`Context::stage`]) and named in the [`Outcome`]; jobq records what will be
/// done, then does it, so that a crash at any point leaves all of it or none,
/// and the handler is not run twice for work that was already decided.
///
/// ```
/// use jobq::{Context, Handler, HandlerError, Outcome, Payload};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Greet { name: String }
///
/// impl Payload for Greet {
///     const TYPE: &'static str = "greet";
///     type Output = String;
/// }
///
/// struct Greeter;
///
/// impl Handler for Greeter {
///     type Payload = Greet;
///     fn run(&self, ctx: &Context, greet: Greet) -> Result<Outcome<String>, HandlerError> {
///         let text = format!("hello {}", greet.name);
///         let staged = ctx.stage(text.as_bytes())?;
///         Ok(Outcome::new(text).put(format!("greetings/{}.txt", greet.name), staged))
///     }
/// }
/// ```
pub trait Handler: Send + Sync + 'static {
    /// What the jobs of this type carry.
    type Payload: Payload;

    /// One attempt. Called again with the same payload after an error that may
    /// be retried, or after a crash.
    fn run(
        &self,
        ctx: &Context,
        payload: Self::Payload,
    ) -> Result<Outcome<<Self::Payload as Payload>::Output>, HandlerError>;

    /// Whether it calls [`Context::run_program`]. Jobs of such a handler are left to
    /// others by a worker that has no [`Supervisor`](crate::Supervisor).
    fn runs_programs(&self) -> bool {
        false
    }

    /// After a job has durably completed. Best effort: it may be missed in a
    /// crash, and an error is only logged. What must happen is a follow-up job.
    fn on_success(&self, _ended: &Ended<'_>) -> Result<(), HandlerError> {
        Ok(())
    }

    /// After a job has durably failed for good, not after every attempt. Best
    /// effort, as [`on_success`](Handler::on_success).
    fn on_failure(&self, _ended: &Ended<'_>) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// A job that has ended, for the hooks.
///
/// ```
/// use jobq::{Context, Ended, Handler, HandlerError, Outcome, handlers::CreateFile};
/// struct Loud;
/// # impl Loud { fn page_somebody(&self, _: &str) {} }
/// impl Handler for Loud {
///     type Payload = CreateFile;
///     # fn run(&self, _: &Context, _: CreateFile) -> Result<Outcome<jobq::handlers::CreatedFile>, HandlerError> {
///     #     Err(HandlerError::permanent("no"))
///     # }
///     // …
///     fn on_failure(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
///         let why = ended.failure.map_or("no reason", |failure| failure.message.as_str());
///         self.page_somebody(&format!("{} failed: {why}", ended.job.id));
///         Ok(())
///     }
/// }
/// # let _ = Loud;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// The job as it was when its last attempt began.
    pub job: &'a Job,
    /// What it left, as JSON.
    pub result: Option<&'a str>,
    /// Why it failed.
    pub failure: Option<&'a Failure>,
}
