//! How an attempt ends: what AWS has done, refused or given up, and what of it is
//! kept for the next one.

use super::attempt::Attempt;
use super::checkpoint::Asked;
use super::difference::{fingerprint, has_more};
use super::trouble::Trouble;
use super::{Operation, SyncedResource};
use crate::HandlerError;

impl Attempt<'_> {
    pub(super) fn unchanged(&self, properties_sha256: Option<String>) -> SyncedResource {
        let identifier = self.job.resource_id.clone();
        SyncedResource { identifier, operation: Operation::Unchanged, request_token: None, properties_sha256 }
    }

    /// The call came to nothing, as far as is known.
    pub(super) fn refused(&self, asked: &Asked, trouble: Trouble) -> Result<SyncedResource, HandlerError> {
        if asked.operation == Operation::Deleted && trouble.is("ResourceNotFound") {
            Asked::forget(self.ctx)?;
            return Ok(self.deleted(asked, None));
        }
        // A patch is for the resource as it was; one who works on it will leave another.
        let is_stale = asked.operation == Operation::Updated
            && ["ConcurrentOperation", "ResourceConflict", "ResourceNotFound"].iter().any(|code| trouble.is(code));
        let is_create = asked.operation == Operation::Created;
        if is_create && asked.is_from_before && trouble.is("ClientTokenConflict") {
            // Nobody else has this token, so AWS has accepted the call before, even if it takes this one for another.
            self.is_lost(asked)?;
        }
        // Who repeats a create, or is not let in, learns nothing of a call that was accepted before.
        let is_unknown = is_create && (asked.is_from_before || trouble.is_about_credentials());
        let is_settled =
            (trouble.is_permanent() && !is_unknown) || trouble.is("AlreadyExists") || trouble.is("ClientTokenConflict");
        // Otherwise AWS may have accepted it all the same: the next attempt asks with the same token.
        if is_stale || is_settled {
            Asked::forget(self.ctx)?;
        }
        Err(self.handler.failed(trouble))
    }

    /// AWS has given it up; the next attempt makes another request, unless it has made
    /// something before that. A resource with the id of the job is found by that one.
    pub(super) fn over(
        &self,
        asked: Asked,
        identifier: Option<String>,
        trouble: Trouble,
    ) -> Result<SyncedResource, HandlerError> {
        let another = identifier.filter(|id| asked.operation == Operation::Created && *id != self.job.resource_id);
        if let Some(identifier) = another
            && self.read_as(&identifier)?.is_some()
        {
            return Err(self.made_as_another(identifier, asked, Some(&trouble))?);
        }
        Asked::forget(self.ctx)?;
        if asked.operation == Operation::Deleted && trouble.is("NotFound") {
            return Ok(self.deleted(&asked, None));
        }
        Err(self.handler.failed(trouble))
    }

    /// AWS has done it. What it has made of it is read back.
    pub(super) fn done(&self, asked: Asked, identifier: Option<String>) -> Result<SyncedResource, HandlerError> {
        let Some(given) = &self.job.config else { return Ok(self.deleted(&asked, identifier)) };
        let identifier = identifier.unwrap_or_else(|| self.job.resource_id.clone());
        let is_another = asked.operation == Operation::Created && identifier != self.job.resource_id;
        let actual = match self.read() {
            // The id that was asked for may be one that no resource could have.
            Err(error) if is_another && !error.is_retryable() => None,
            actual => actual?,
        };
        let Some(actual) = actual else {
            if is_another {
                return Err(self.made_as_another(identifier, asked, None)?);
            }
            // Gone since: there is nothing to wait for.
            if asked.operation == Operation::Updated {
                Asked::forget(self.ctx)?;
            }
            let message = "AWS says that it is done, and cannot find the resource";
            return Err(Trouble::new("not_there_yet", message)
                .with_request(asked.request_token.as_deref())
                .into_error());
        };
        if asked.is_from_before && asked.patch.as_ref().is_some_and(|before| has_more(given, &actual, before)) {
            // While nobody was there, more has come apart than this update was for.
            Asked::forget(self.ctx)?;
            return self.begin();
        }
        Ok(SyncedResource {
            identifier,
            operation: asked.operation,
            request_token: asked.request_token,
            properties_sha256: Some(fingerprint(given, &actual)),
        })
    }

    fn deleted(&self, asked: &Asked, identifier: Option<String>) -> SyncedResource {
        SyncedResource {
            identifier: identifier.unwrap_or_else(|| self.job.resource_id.clone()),
            operation: Operation::Deleted,
            request_token: asked.request_token.clone(),
            properties_sha256: None,
        }
    }
}
