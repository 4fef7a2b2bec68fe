//! Creates that must not be repeated: AWS has named the resource itself, or nobody
//! can say any more whether it has made one. A sync finds a resource by its id
//! alone, so it would make one more each time.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use super::attempt::Attempt;
use super::checkpoint::Asked;
use super::trouble::Trouble;
use super::{Operation, SyncAws};
use crate::HandlerError;

impl Attempt<'_> {
    /// AWS does not know the request. One that it has to know still may not have got
    /// around yet, and is asked for again.
    pub(super) fn is_unknown(&self, asked: &Asked) -> Result<(), HandlerError> {
        if asked.operation == Operation::Created && asked.is_remembered() && self.read()?.is_none() {
            return Err(not_known(asked.request_token.as_deref().unwrap_or_default()));
        }
        self.is_lost(asked)
    }

    /// Nobody can say any more what became of it. A resource that is there answers
    /// that, and an update or a deletion may as well be asked for anew; of a create
    /// somebody has to find out.
    pub(super) fn is_lost(&self, asked: &Asked) -> Result<(), HandlerError> {
        if asked.operation == Operation::Created && self.read()?.is_none() {
            return Err(self.in_doubt(asked));
        }
        Asked::forget(self.ctx)
    }

    fn in_doubt(&self, asked: &Asked) -> HandlerError {
        let SyncAws { resource_type, resource_id, .. } = self.job;
        let Asked { client_token, request_token, .. } = asked;
        let when = UNIX_EPOCH.checked_add(Duration::from_secs(asked.since)).unwrap_or(UNIX_EPOCH);
        let when = humantime::format_rfc3339_seconds(when);
        let request = request_token.as_ref().map(|token| format!(", request token {token}")).unwrap_or_default();
        let message = format!(
            "AWS was asked on {when} to make this {resource_type} (client token {client_token}{request}) and can no longer say \
             whether it has. There is none of the resourceId {resource_id}, but it may have another. Look for it with `aws \
             cloudcontrol list-resources --type-name {resource_type}`: if it is there, use its identifier as resourceId; if not, \
             queue the job again, because a retry of this one makes none"
        );
        let details = json!({ "client_token": client_token, "request_token": request_token });
        HandlerError::permanent(message).with_code("create_in_doubt").with_details(details)
    }

    /// AWS has made it under another name, and perhaps given it up then. Remembered,
    /// so that even a retry makes no second one.
    pub(super) fn made_as_another(
        &self,
        identifier: String,
        mut asked: Asked,
        trouble: Option<&Trouble>,
    ) -> Result<HandlerError, HandlerError> {
        asked.made_as = Some(identifier);
        asked.made_with = trouble.map(ToString::to_string);
        asked.keep(self.ctx)?;
        Ok(self.is_another(&asked))
    }

    /// What was made is not what was asked for.
    pub(super) fn is_another(&self, asked: &Asked) -> HandlerError {
        let SyncAws { resource_type, resource_id, .. } = self.job;
        let identifier = asked.made_as.as_deref().unwrap_or(resource_id);
        let token = asked.request_token.as_deref().unwrap_or("unknown");
        let trouble = asked.made_with.as_ref().map(|said| format!(", then failed ({said})")).unwrap_or_default();
        let message = format!(
            "AWS has made the {resource_type} as {identifier}{trouble}, and there is none of the resourceId {resource_id}; use the \
             identifier from now on, or name the resource in its config (request token {token})"
        );
        let made: Value = json!({ "identifier": identifier, "operation": "created", "request_token": token });
        HandlerError::permanent(message).with_code("other_identifier").with_details(made.clone()).with_result(made)
    }
}

pub(super) fn not_known(request_token: &str) -> HandlerError {
    let message = "AWS does not know the request; if that goes on, look whether region or account have changed";
    Trouble::new("RequestTokenNotFound", message).with_request(Some(request_token)).into_error()
}
