//! One attempt: what is there, what is to be done about it, and waiting until AWS
//! has done it. Whatever is asked of AWS is on record before it is asked.

use std::future::Future;
use std::time::{Duration, Instant};

use aws_sdk_cloudcontrol::Client;
use serde_json::Value;

use super::api::{self, Event, State};
use super::checkpoint::Asked;
use super::difference::{fingerprint, patch};
use super::doubt::not_known;
use super::handler::{Called, GLANCE, SyncAwsHandler};
use super::{Operation, SyncAws, SyncedResource};
use crate::{Context, HandlerError};

/// How long to wait between two looks at a request, unless AWS says.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// The longest wait that AWS is believed, whatever its clock says.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

pub(super) struct Attempt<'a> {
    pub(super) handler: &'a SyncAwsHandler,
    pub(super) ctx: &'a Context,
    pub(super) job: &'a SyncAws,
    pub(super) client: Client,
}

impl Attempt<'_> {
    pub(super) fn run(&self) -> Result<SyncedResource, HandlerError> {
        if let Some(asked) = Asked::before(self.ctx)?
            && let Some(synced) = self.go_on(asked)?
        {
            return Ok(synced);
        }
        self.begin()
    }

    /// Where an earlier attempt was. `None`: AWS knows nothing of it any more, and
    /// nothing is lost by beginning anew.
    fn go_on(&self, asked: Asked) -> Result<Option<SyncedResource>, HandlerError> {
        if asked.made_as.is_some() {
            return Err(self.is_another(&asked));
        }
        let Some(token) = asked.request_token.clone() else {
            if asked.is_remembered() {
                return self.ask(asked).map(Some);
            }
            // The same call would be another request by now.
            return self.is_lost(&asked).map(|()| None);
        };
        match self.call(api::status(&self.client, &token))? {
            Some(event) => self.wait_for(asked, event).map(Some),
            None => self.is_unknown(&asked).map(|()| None),
        }
    }

    pub(super) fn begin(&self) -> Result<SyncedResource, HandlerError> {
        let actual = self.read()?;
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

    /// Until AWS is done with a request that it has accepted.
    fn wait_for(&self, asked: Asked, mut event: Event) -> Result<SyncedResource, HandlerError> {
        let token = asked.request_token.clone().unwrap_or_default();
        let (mut usual, mut told) = (FIRST_WAIT, None);
        loop {
            let waiting = match event.state {
                State::Done => return self.done(asked, event.identifier),
                State::Over(trouble) => return self.over(asked, event.identifier, trouble),
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
            event = self.look_after(wait, &asked, &token)?;
        }
    }

    /// What AWS says of the request some time later. Trouble on the way there is waited
    /// out, for as long as the attempt may take: AWS goes on meanwhile.
    fn look_after(&self, mut wait: Duration, asked: &Asked, token: &str) -> Result<Event, HandlerError> {
        loop {
            self.sleep(wait)?;
            match self.handler.call(self.ctx, api::status(&self.client, token))? {
                Ok(Some(event)) => return Ok(event),
                Ok(None) => return Err(self.is_unknown(asked).err().unwrap_or_else(|| not_known(token))),
                Err(trouble) if trouble.is_permanent() || trouble.is_about_credentials() => {
                    return Err(self.handler.failed(trouble));
                }
                Err(trouble) => self.ctx.progress(50, format!("{}: {trouble}", doing(asked))),
            }
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// The resource of the job.
    pub(super) fn read(&self) -> Result<Option<Value>, HandlerError> {
        self.read_as(&self.job.resource_id)
    }

    /// One of its type.
    pub(super) fn read_as(&self, id: &str) -> Result<Option<Value>, HandlerError> {
        self.call(api::read(&self.client, &self.job.resource_type, id))
    }

    pub(super) fn call<T>(&self, call: impl Future<Output = Called<T>>) -> Result<T, HandlerError> {
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
