//! Runs the jobs: one client for all threads, and calls that can be given up.

use std::future::Future;
use std::time::Duration;

use super::attempt::Attempt;
use super::cloud::Cloud;
use super::trouble::Trouble;
use super::{AwsSettings, SyncAws, SyncedResource};
use crate::{Context, Handler, HandlerError, Outcome};

/// How often someone who waits looks whether to stop.
pub(super) const GLANCE: Duration = Duration::from_millis(50);

/// What a call has come to, if it has come to anything.
pub(super) type Called<T> = Result<T, Trouble>;

/// Runs `sync_aws` jobs. Threads that run them share one client.
///
/// ```
/// use jobq::{Registry, handlers::{AwsSettings, SyncAwsHandler}};
/// let settings = AwsSettings { profile: Some("staging".to_owned()), ..AwsSettings::default() };
/// let registry = Registry::builtin().with(SyncAwsHandler::new(settings));
/// # let _ = registry;
/// ```
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
    pub(super) fn call<T>(
        &self,
        ctx: &Context,
        call: impl Future<Output = Called<T>>,
    ) -> Result<Called<T>, HandlerError> {
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

    pub(super) fn failed(&self, trouble: Trouble) -> HandlerError {
        self.cloud.learn(&trouble);
        trouble.into_error()
    }
}
