//! How an attempt ends: what AWS has done, refused or given up, and what of it is
//! kept for the next one.

use serde_json::{Value, json};

use super::api;
use super::attempt::Attempt;
use super::checkpoint::Asked;
use super::difference::fingerprint;
use super::trouble::Trouble;
use super::{Operation, SyncAws, SyncedResource};
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
        // Who is not let in learns nothing of a create that was accepted before.
        let is_unknown = asked.operation == Operation::Created && trouble.is_about_credentials();
        let is_settled =
            (trouble.is_permanent() && !is_unknown) || trouble.is("AlreadyExists") || trouble.is("ClientTokenConflict");
        // Otherwise AWS may have accepted it all the same: the next attempt asks with the same token.
        if is_stale || is_settled {
            Asked::forget(self.ctx)?;
        }
        Err(self.handler.failed(trouble))
    }

    /// AWS has given it up; the next attempt makes another request.
    pub(super) fn over(&self, asked: &Asked, trouble: Trouble) -> Result<SyncedResource, HandlerError> {
        Asked::forget(self.ctx)?;
        if asked.operation == Operation::Deleted && trouble.is("NotFound") {
            return Ok(self.deleted(asked, None));
        }
        Err(self.handler.failed(trouble))
    }

    /// AWS has done it. What it has made of it is read back.
    pub(super) fn done(&self, mut asked: Asked, identifier: Option<String>) -> Result<SyncedResource, HandlerError> {
        let Some(given) = &self.job.config else { return Ok(self.deleted(&asked, identifier)) };
        let actual = self.call(api::read(&self.client, self.job))?;
        let identifier = identifier.unwrap_or_else(|| self.job.resource_id.clone());
        let Some(actual) = actual else {
            if asked.operation == Operation::Created && identifier != self.job.resource_id {
                asked.made_as = Some(identifier.clone());
                asked.keep(self.ctx)?;
                return Err(self.made_as_another(&identifier, &asked));
            }
            let message = "AWS says that it is done, and cannot find the resource";
            return Err(Trouble::new("not_there_yet", message)
                .with_request(asked.request_token.as_deref())
                .into_error());
        };
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

    /// Another sync would not find it, and make one more.
    pub(super) fn made_as_another(&self, identifier: &str, asked: &Asked) -> HandlerError {
        let SyncAws { resource_type, resource_id, .. } = self.job;
        let token = asked.request_token.as_deref().unwrap_or("unknown");
        let message = format!(
            "AWS has made the {resource_type} as {identifier}, and there is none of the resourceId {resource_id}; use the \
             identifier from now on, or name the resource in its config (request token {token})"
        );
        let made: Value = json!({ "identifier": identifier, "operation": "created", "request_token": token });
        HandlerError::permanent(message).with_code("other_identifier").with_details(made.clone()).with_result(made)
    }
}
