//! Handlers and hooks that know which run they are in.

use std::cell::RefCell;
use std::sync::Arc;

use super::watch::Watch;
use crate::handler::{AnyHandler, Context, Ended, HandlerError, Prepared};
use crate::job::Job;
use crate::queue::Queue;

thread_local! {
    /// What this thread is at.
    static HERE: RefCell<Option<Within>> = const { RefCell::new(None) };
}

/// A job, and the run that it is in.
#[derive(Clone)]
pub(super) struct Within {
    pub(super) run: Watch,
    /// Its type and id, for messages.
    pub(super) job: Arc<String>,
}

/// What calls this, if it is a handler or a hook in a run.
pub(super) fn here() -> Option<Within> {
    HERE.with_borrow(Clone::clone)
}

/// Why no run of this queue can begin on this thread. It would wait for a handler that waits for it.
pub(super) fn refused(queue: &Arc<Queue>) -> Option<String> {
    let Within { run, job } = here().filter(|here| here.run.is_of(queue))?;
    let why = format!(
        "{job} runs the queue in its handler or hook, which is within a run of the same queue already; queue jobs \
         instead: that run comes to them"
    );
    // The panic of a hook is only logged, and that of a handler is an attempt among others.
    run.give_up(why.clone());
    Some(why)
}

/// A handler as it is called in a run.
pub(super) struct Watched {
    pub(super) handler: Arc<dyn AnyHandler>,
    pub(super) run: Watch,
}

impl Watched {
    fn enter(&self, job: &Job) -> Entered {
        let job = Arc::new(format!("`{}` {}", job.job_type, job.id));
        HERE.set(Some(Within { run: self.run.clone(), job }));
        Entered
    }
}

/// Left when it is dropped, by a panic too.
struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        HERE.set(None);
    }
}

impl AnyHandler for Watched {
    fn run(&self, ctx: &Context, job: &Job) -> Result<Prepared, HandlerError> {
        let _within = self.enter(job);
        self.handler.run(ctx, job)
    }

    fn runs_programs(&self) -> bool {
        self.handler.runs_programs()
    }

    fn on_success(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
        let _within = self.enter(ended.job);
        self.handler.on_success(ended)
    }

    fn on_failure(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
        let _within = self.enter(ended.job);
        self.handler.on_failure(ended)
    }
}
