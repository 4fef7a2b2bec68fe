//! The handlers a worker has, by type.

use std::collections::HashMap;
use std::sync::Arc;

#[cfg(feature = "tokio")]
use super::runtime::Runtime;
use super::{Context, Ended, Handler, HandlerError, Prepared};
use crate::job::Job;
use crate::payload::{JobTypes, MoreTypes, Payload};

/// A handler without its types.
pub(crate) trait AnyHandler: Send + Sync {
    fn run(&self, ctx: &Context, job: &Job) -> Result<Prepared, HandlerError>;
    fn runs_programs(&self) -> bool;
    fn on_success(&self, ended: &Ended<'_>) -> Result<(), HandlerError>;
    fn on_failure(&self, ended: &Ended<'_>) -> Result<(), HandlerError>;
}

impl<H: Handler> AnyHandler for H {
    fn run(&self, ctx: &Context, job: &Job) -> Result<Prepared, HandlerError> {
        // Checked when it was queued, and again: the type may have learned since.
        let payload: H::Payload = job.payload()?;
        payload.validate()?;
        Prepared::of(Handler::run(self, ctx, payload)?)
    }

    fn runs_programs(&self) -> bool {
        Handler::runs_programs(self)
    }

    fn on_success(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
        Handler::on_success(self, ended)
    }

    fn on_failure(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
        Handler::on_failure(self, ended)
    }
}

/// The handlers of a worker. A type of which there is none stays pending, for a
/// worker that has one.
///
/// ```
/// use jobq::Registry;
/// use jobq::handlers::{CreateFileHandler, DeleteFile};
/// let registry = Registry::new().with(CreateFileHandler).knowing::<DeleteFile>();
/// assert_eq!(registry.names(), ["create_file"], "what it can run");
/// assert!(registry.types().knows("delete_file"), "what can be queued");
/// ```
#[derive(Clone, Default)]
pub struct Registry {
    handlers: HashMap<String, Arc<dyn AnyHandler>>,
    types: JobTypes,
    /// Of those that are async.
    #[cfg(feature = "tokio")]
    runtimes: HashMap<String, Runtime>,
}

impl Registry {
    /// No handlers at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The handlers that come with jobq, and every built-in type as known.
    #[must_use]
    pub fn builtin() -> Self {
        crate::handlers::registry()
    }

    /// These handlers and one more. The last one of a type counts.
    #[must_use]
    pub fn with<H: Handler>(mut self, handler: H) -> Self {
        self.types = self.types.with::<H::Payload>();
        self.handlers.insert(H::Payload::TYPE.to_owned(), Arc::new(handler));
        #[cfg(feature = "tokio")]
        self.runtimes.remove(H::Payload::TYPE);
        self
    }

    /// These handlers, and a type that can be queued but not run here.
    #[must_use]
    pub fn knowing<P: Payload>(mut self) -> Self {
        self.types = self.types.with::<P>();
        self
    }

    /// These handlers, and programs for types that are not known yet.
    pub(crate) fn and(
        mut self,
        programs: impl IntoIterator<Item = (String, Arc<dyn AnyHandler>)>,
        types: Arc<dyn MoreTypes>,
    ) -> Self {
        for (name, handler) in programs {
            if !self.types.knows(&name) {
                self.handlers.insert(name, handler);
            }
        }
        self.types = self.types.and(types);
        self
    }

    /// The types to open the queue with.
    #[must_use]
    pub fn types(&self) -> JobTypes {
        self.types.clone()
    }

    /// The types that can be run, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.handlers.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// These handlers, each with something around it.
    #[cfg(feature = "testing")]
    pub(crate) fn each(mut self, around: impl Fn(Arc<dyn AnyHandler>) -> Arc<dyn AnyHandler>) -> Self {
        self.handlers = self.handlers.into_iter().map(|(name, handler)| (name, around(handler))).collect();
        self
    }

    #[cfg(feature = "tokio")]
    pub(super) fn on_runtime(mut self, job_type: &str, runtime: Runtime) -> Self {
        self.runtimes.insert(job_type.to_owned(), runtime);
        self
    }

    /// What the handler of this type runs with, if it is async.
    #[cfg(feature = "tokio")]
    pub(crate) fn runtime(&self, job_type: &str) -> Option<&Runtime> {
        self.runtimes.get(job_type)
    }

    pub(crate) fn get(&self, job_type: &str) -> Option<&Arc<dyn AnyHandler>> {
        self.handlers.get(job_type)
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Registry").field(&self.names()).finish()
    }
}
