//! One attempt: what is there, what is to be done about it, and waiting until AWS
//! has done it. Whatever is asked of AWS is on record before it is asked.

use std::future::Future;
use std::time::{Duration, Instant};

use aws_sdk_cloudcontrol::Client;
use serde_json::{Value, json};

use super::api::{self, Event, State};
use super::checkpoint::Asked;
use super::cloud::Cloud;
use super::difference::{fingerprint, patch};
use super::trouble::Trouble;
use super::{AwsSettings, Operation, SyncAws, SyncedResource};
use crate::{Context, Handler, HandlerError, Outcome};

/// How often someone who waits looks whether to stop.
const GLANCE: Duration = Duration::from_millis(50);
/// How long to wait between two looks at a request, unless AWS says.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// The longest wait that AWS is believed, whatever its clock says.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// What a call has come to, if it has come to anything.
type Called<T> = Result<T, Trouble>;

/// Runs `sync_aws` jobs. Threads that run them share one client.
#[derive(Default)]
pub struct SyncAwsHandler {
    pub(super) cloud: Cloud,
}

impl SyncAwsHandler {
    /// With these settings, and what the usual places say of the rest.
    #[must_use]
    pub fn new(settings: AwsSettings) -> Self {
        Self { cloud: Cloud::new(settings) }
    }
}

impl Handler for SyncAwsHandler {
    type Payload = SyncAws;

    fn run(&self, ctx: &Context, job: SyncAws) -> Result<Outcome<SyncedResource>, HandlerError> {
        let client = self.call(ctx, self.cloud.client())?.map_err(|trouble| self.failed(trouble))?;
        Ok(Outcome::new(Attempt { handler: self, ctx, job: &job, client }.run()?))
    }
}

impl SyncAwsHandler {
    /// Makes a call, and gives it up when the job must stop. That a worker wants to end
    /// is no reason to.
    fn call<T>(&self, ctx: &Context, call: impl Future<Output = Called<T>>) -> Result<Called<T>, HandlerError> {
        let call = async {
            let mut call = Box::pin(call);
            loop {
                if let Ok(answer) = tokio::time::timeout(GLANCE, call.as_mut()).await {
                    return Ok(answer);
                }
                if ctx.stop().is_some() {
                    ctx.check()?;
                }
            }
        };
        self.cloud.block_on(call).map_err(Trouble::into_error)?
    }

    fn failed(&self, trouble: Trouble) -> HandlerError {
        self.cloud.learn(&trouble);
        trouble.into_error()
    }
}

struct Attempt<'a> {
    handler: &'a SyncAwsHandler,
    ctx: &'a Context,
    job: &'a SyncAws,
    client: Client,
}

impl Attempt<'_> {
    fn run(&self) -> Result<SyncedResource, HandlerError> {
        if let Some(asked) = Asked::before(self.ctx)?
            && let Some(synced) = self.go_on(asked)?
        {
            return Ok(synced);
        }
        self.begin()
    }

    /// Where an earlier attempt was. `None`: AWS knows nothing of it any more.
    fn go_on(&self, asked: Asked) -> Result<Option<SyncedResource>, HandlerError> {
        if let Some(identifier) = &asked.made_as {
            return Err(self.made_as_another(identifier, &asked));
        }
        let Some(token) = asked.request_token.clone() else {
            return self.ask(asked).map(Some);
        };
        let Some(event) = self.call(api::status(&self.client, &token))? else {
            Asked::forget(self.ctx)?;
            return Ok(None);
        };
        self.wait_for(asked, event).map(Some)
    }

    fn begin(&self) -> Result<SyncedResource, HandlerError> {
        let actual = self.call(api::read(&self.client, self.job))?;
        let asked = match (&self.job.config, actual) {
            (None, None) => return Ok(self.unchanged(None)),
            (None, Some(_)) => Asked::new(Operation::Deleted, None),
            (Some(_), None) => Asked::new(Operation::Created, None),
            (Some(given), Some(actual)) => {
                let patch = patch(given, &actual);
                if patch.is_empty() {
                    return Ok(self.unchanged(Some(fingerprint(given, &actual))));
                }
                Asked::new(Operation::Updated, Some(patch.to_string()))
            }
        };
        asked.keep(self.ctx)?;
        self.ask(asked)
    }

    fn unchanged(&self, properties_sha256: Option<String>) -> SyncedResource {
        let identifier = self.job.resource_id.clone();
        SyncedResource { identifier, operation: Operation::Unchanged, request_token: None, properties_sha256 }
    }

    /// Makes a call that is on record.
    fn ask(&self, mut asked: Asked) -> Result<SyncedResource, HandlerError> {
        // The last moment at which a cancelled job has done nothing.
        self.ctx.check()?;
        self.ctx.progress(10, doing(&asked));
        let event = match self.handler.call(self.ctx, api::ask(&self.client, self.job, &asked))? {
            Ok(event) => event,
            Err(trouble) => return self.refused(&asked, trouble),
        };
        asked.request_token.clone_from(&event.request_token);
        asked.keep(self.ctx)?;
        self.wait_for(asked, event)
    }

    /// The call came to nothing, as far as is known.
    fn refused(&self, asked: &Asked, trouble: Trouble) -> Result<SyncedResource, HandlerError> {
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

    /// Until AWS is done with a request that it has accepted.
    fn wait_for(&self, asked: Asked, mut event: Event) -> Result<SyncedResource, HandlerError> {
        let token = asked.request_token.clone().unwrap_or_default();
        let (mut usual, mut told) = (FIRST_WAIT, None);
        loop {
            let waiting = match event.state {
                State::Done => return self.done(asked, event.identifier),
                State::Over(trouble) => return self.over(&asked, trouble),
                State::Waiting(waiting) => waiting,
            };
            let how_far = [Some(doing(&asked)), Some(waiting), event.message];
            let how_far = how_far.into_iter().flatten().collect::<Vec<_>>().join(": ");
            // Each is an event of the job, so only what is new.
            if told.as_ref() != Some(&how_far) {
                self.ctx.progress(50, how_far.clone());
                told = Some(how_far);
            }
            let wait = event.retry_after.map_or(usual, |wait| wait.clamp(FIRST_WAIT, LONGEST_RETRY_AFTER));
            usual = (usual * 2).min(LONGEST_WAIT);
            self.sleep(wait)?;
            let Some(next) = self.call(api::status(&self.client, &token))? else {
                let lost = Trouble::new("RequestTokenNotFound", "AWS no longer knows the request");
                return self.over(&asked, lost.with_request(Some(&token)));
            };
            event = next;
        }
    }

    /// AWS has given it up; the next attempt makes another request.
    fn over(&self, asked: &Asked, trouble: Trouble) -> Result<SyncedResource, HandlerError> {
        Asked::forget(self.ctx)?;
        if asked.operation == Operation::Deleted && trouble.is("NotFound") {
            return Ok(self.deleted(asked, None));
        }
        Err(self.handler.failed(trouble))
    }

    /// AWS has done it. What it has made of it is read back.
    fn done(&self, mut asked: Asked, identifier: Option<String>) -> Result<SyncedResource, HandlerError> {
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
    fn made_as_another(&self, identifier: &str, asked: &Asked) -> HandlerError {
        let SyncAws { resource_type, resource_id, .. } = self.job;
        let token = asked.request_token.as_deref().unwrap_or("unknown");
        let message = format!(
            "AWS has made the {resource_type} as {identifier}, and there is none of the resourceId {resource_id}; use the \
             identifier from now on, or name the resource in its config (request token {token})"
        );
        let made: Value = json!({ "identifier": identifier, "operation": "created", "request_token": token });
        HandlerError::permanent(message).with_code("other_identifier").with_details(made.clone()).with_result(made)
    }

    fn call<T>(&self, call: impl Future<Output = Called<T>>) -> Result<T, HandlerError> {
        self.handler.call(self.ctx, call)?.map_err(|trouble| self.handler.failed(trouble))
    }

    /// A safe point for as long as it lasts: nothing is lost by stopping here.
    fn sleep(&self, wait: Duration) -> Result<(), HandlerError> {
        let start = Instant::now();
        loop {
            self.ctx.check()?;
            let Some(left) = wait.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) else { return Ok(()) };
            std::thread::sleep(left.min(GLANCE));
        }
    }
}

fn doing(asked: &Asked) -> String {
    let doing = match asked.operation {
        Operation::Created => "creating",
        Operation::Deleted => "deleting",
        Operation::Updated | Operation::Unchanged => "updating",
    };
    doing.to_owned()
}
