//! What a handler returns: what it found out, what is to happen to files, and
//! what is to be queued next.

use serde::Serialize;

use super::HandlerError;
use crate::effects::{Content, Expect, FileEffect, Staged};
use crate::new_job::NewJob;

/// What an attempt came to. Nothing of it has happened yet; all of it happens
/// when the job completes, or nothing does.
///
/// ```
/// use jobq::{NewJob, Outcome};
/// let outcome = Outcome::new(42).remove("draft.txt").follow_up(NewJob::raw("announce", "{}"));
/// let nothing_to_tell: Outcome = Outcome::done();
/// # let _ = (outcome, nothing_to_tell);
/// ```
#[derive(Debug)]
pub struct Outcome<R = ()> {
    result: R,
    effects: Vec<FileEffect>,
    follow_ups: Vec<NewJob>,
}

impl Outcome {
    /// Done, nothing to tell.
    #[must_use]
    pub fn done() -> Self {
        Self::new(())
    }
}

impl<R> Outcome<R> {
    /// Done, with a result.
    pub fn new(result: R) -> Self {
        Self { result, effects: Vec::new(), follow_ups: Vec::new() }
    }

    /// A file gets this content, whatever it holds now.
    #[must_use]
    pub fn put(self, path: impl Into<String>, content: Staged) -> Self {
        self.effect(FileEffect::Put { path: path.into(), content: Content::Staged(content), expect: Expect::Any })
    }

    /// A file goes, if it is there.
    #[must_use]
    pub fn remove(self, path: impl Into<String>) -> Self {
        self.effect(FileEffect::Remove { path: path.into(), expect: Expect::Any })
    }

    /// Something happens to a file, if it is as expected.
    #[must_use]
    pub fn effect(mut self, effect: FileEffect) -> Self {
        self.effects.push(effect);
        self
    }

    /// A job that is queued in the transaction that completes this one. As when jobs are
    /// enqueued, two with the same key are one, and without a key of their own that is two of
    /// a type with the same payload: [`NewJob::no_key`] makes both run.
    #[must_use]
    pub fn follow_up(mut self, job: impl Into<NewJob>) -> Self {
        self.follow_ups.push(job.into());
        self
    }
}

/// An outcome without its type.
pub(crate) struct Prepared {
    pub(crate) result: Option<String>,
    pub(crate) effects: Vec<FileEffect>,
    pub(crate) follow_ups: Vec<NewJob>,
}

impl Prepared {
    pub(crate) fn of<R: Serialize>(outcome: Outcome<R>) -> Result<Self, HandlerError> {
        let result = serde_json::to_string(&outcome.result).map_err(|e| {
            HandlerError::permanent(format_args!("its result is not JSON: {e}")).with_code("internal_error")
        })?;
        // `()` is nothing, not the JSON word for it.
        let result = (result != "null").then_some(result);
        Ok(Self { result, effects: outcome.effects, follow_ups: outcome.follow_ups })
    }
}
