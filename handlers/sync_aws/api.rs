//! The calls, and what their answers mean.

use std::time::{Duration, SystemTime};

use aws_sdk_cloudcontrol::Client;
use aws_sdk_cloudcontrol::types::{OperationStatus, ProgressEvent};
use serde_json::Value;

use super::checkpoint::Asked;
use super::difference::without_nulls;
use super::trouble::{Trouble, UNREADABLE};
use super::{Operation, SyncAws};

/// How far a request is.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) state: State,
    pub(super) request_token: Option<String>,
    /// Of a new resource it is known only some time after it was asked for.
    pub(super) identifier: Option<String>,
    /// In words.
    pub(super) message: Option<String>,
    /// When there may be news.
    pub(super) retry_after: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(super) enum State {
    /// By AWS's own name for it.
    Waiting(String),
    Done,
    /// It failed, or somebody cancelled it.
    Over(Trouble),
}

/// The properties of a resource; `None` if there is none.
pub(super) async fn read(client: &Client, resource_type: &str, id: &str) -> Result<Option<Value>, Trouble> {
    let call = client.get_resource().type_name(resource_type).identifier(id);
    let answer = match call.send().await {
        Ok(answer) => answer,
        Err(error) => {
            let trouble = Trouble::of(&error);
            return if trouble.is("ResourceNotFound") { Ok(None) } else { Err(trouble) };
        }
    };
    let text = answer.resource_description().and_then(|resource| resource.properties());
    let properties = text.and_then(|text| serde_json::from_str(text).ok()).filter(Value::is_object);
    properties.map(Some).ok_or_else(|| Trouble::new(UNREADABLE, "AWS told no properties that are a JSON object"))
}

/// Creates, updates or deletes; the same call with the same token is the same request.
pub(super) async fn ask(client: &Client, job: &SyncAws, asked: &Asked) -> Result<Event, Trouble> {
    let (resource_type, id, token) = (&job.resource_type, &job.resource_id, &asked.client_token);
    let event = match asked.operation {
        Operation::Created => {
            let state = job.config.as_ref().map(|config| without_nulls(config).to_string());
            let call = client.create_resource().type_name(resource_type).set_desired_state(state).client_token(token);
            call.send().await.map_err(|e| Trouble::of(&e))?.progress_event
        }
        Operation::Deleted => {
            let call = client.delete_resource().type_name(resource_type).identifier(id).client_token(token);
            call.send().await.map_err(|e| Trouble::of(&e))?.progress_event
        }
        Operation::Updated | Operation::Unchanged => {
            let call = client.update_resource().type_name(resource_type).identifier(id).client_token(token);
            let call = call.set_patch_document(asked.patch.clone());
            call.send().await.map_err(|e| Trouble::of(&e))?.progress_event
        }
    };
    let event = event.ok_or_else(|| Trouble::new(UNREADABLE, "AWS told nothing of the request"))?;
    if event.request_token.is_none() {
        return Err(Trouble::new(UNREADABLE, "AWS told no token of the request"));
    }
    Ok(Event::from(event))
}

/// How far a request is; `None` if AWS knows of it no more, which it does for a week.
pub(super) async fn status(client: &Client, request_token: &str) -> Result<Option<Event>, Trouble> {
    match client.get_resource_request_status().request_token(request_token).send().await {
        Ok(answer) => {
            let unreadable = || Trouble::new(UNREADABLE, "AWS told nothing of the request");
            answer.progress_event.map(|event| Some(event.into())).ok_or_else(unreadable)
        }
        Err(error) => {
            let trouble = Trouble::of(&error).with_request(Some(request_token));
            if trouble.is("RequestTokenNotFound") { Ok(None) } else { Err(trouble) }
        }
    }
}

impl From<ProgressEvent> for Event {
    fn from(event: ProgressEvent) -> Self {
        let token = event.request_token.as_deref();
        let message = event.status_message.as_deref();
        let over = |code: &str, message: &str| State::Over(Trouble::new(code, message).with_request(token));
        let state = match event.operation_status {
            Some(OperationStatus::Success) => State::Done,
            Some(OperationStatus::Failed) => {
                let code = event.error_code.as_ref().map_or("InternalFailure", |code| code.as_str());
                over(code, message.unwrap_or("AWS gives no reason"))
            }
            Some(OperationStatus::CancelComplete) => {
                over("request_cancelled", message.unwrap_or("somebody cancelled the request"))
            }
            Some(other) => State::Waiting(other.as_str().to_owned()),
            None => State::Waiting("PENDING".to_owned()),
        };
        let retry_after = event.retry_after.and_then(|moment| SystemTime::try_from(moment).ok());
        Self {
            state,
            request_token: event.request_token,
            identifier: event.identifier,
            message: event.status_message,
            // One that lies in the past says nothing, or clocks differ.
            retry_after: retry_after.and_then(|moment| moment.duration_since(SystemTime::now()).ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_cloudcontrol::types::HandlerErrorCode;

    use super::*;

    fn state(status: OperationStatus, code: Option<HandlerErrorCode>) -> State {
        let event = ProgressEvent::builder().request_token("r").operation_status(status).set_error_code(code).build();
        Event::from(event).state
    }

    #[test]
    fn a_request_waits_is_done_or_is_over() {
        assert!(matches!(state(OperationStatus::Success, None), State::Done));
        for waiting in [OperationStatus::Pending, OperationStatus::InProgress, OperationStatus::CancelInProgress] {
            assert!(matches!(state(waiting, None), State::Waiting(_)));
        }
        let over = |status, code| match state(status, code) {
            State::Over(trouble) => (trouble.is_permanent(), trouble.to_string()),
            other => panic!("{other:?}"),
        };
        let (permanent, said) = over(OperationStatus::Failed, Some(HandlerErrorCode::InvalidRequest));
        assert!(permanent && said == "InvalidRequest: AWS gives no reason (request token r)", "{said}");
        assert!(!over(OperationStatus::Failed, Some(HandlerErrorCode::NotStabilized)).0);
        assert!(!over(OperationStatus::Failed, None).0);
        assert!(!over(OperationStatus::CancelComplete, None).0);
    }
}
