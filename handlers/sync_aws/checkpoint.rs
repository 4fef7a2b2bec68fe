//! What an attempt leaves for the next one, so that nothing is asked of AWS twice.
//!
//! ```text
//! nothing ──► asked: the client token ──► accepted: the request token ──► ended
//!        written before the call     written after it
//! ```
//!
//! AWS answers a call that comes again with the same client token with the request
//! that is there. So an attempt that finds the token alone repeats the call, to the
//! letter; one that finds the request goes on waiting for it. After a while AWS knows
//! neither any more, and the same call would be another request; so what is kept has
//! its time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::{Context, HandlerError};

/// AWS knows a client token for 36 hours. An hour less, because it counts from when the call has come in, by its
/// own clock, and a call takes its time.
const TOKEN_IS_KNOWN: Duration = Duration::from_secs(35 * 3_600);
/// It knows a request for a week.
const REQUEST_IS_KNOWN: Duration = Duration::from_secs(7 * 24 * 3_600);

/// A call that has been made, or was about to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked {
    /// Whether it creates, updates or deletes.
    pub(super) operation: Operation,
    /// What makes a second call the same as the first.
    pub(super) client_token: String,
    /// When, in seconds since 1970. What does not say is as good as forgotten.
    #[serde(default)]
    pub(super) since: u64,
    /// The patch of an update, word for word: computed again it would be another
    /// one, because the resource may have changed by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) patch: Option<String>,
    /// AWS's name for it, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) request_token: Option<String>,
    /// The identifier of what was created, if it is not the one that was asked for.
    /// There will be no other attempt to create it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) made_as: Option<String>,
    /// Why AWS has given it up after that, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) made_with: Option<String>,
    /// Whether an earlier attempt has left it, which may have made the call.
    #[serde(skip)]
    pub(super) is_from_before: bool,
}

impl Asked {
    /// A call that nobody has made yet. Tokens are random: one that was derived from
    /// the job would be the same after a request has failed, and so would its answer.
    pub(super) fn new(operation: Operation, patch: Option<String>) -> Self {
        let client_token = format!("jobq-{}", ulid::Ulid::generate());
        Self {
            operation,
            client_token,
            since: since_1970().as_secs(),
            patch,
            request_token: None,
            made_as: None,
            made_with: None,
            is_from_before: false,
        }
    }

    /// What an earlier attempt has left.
    pub(super) fn before(ctx: &Context) -> Result<Option<Self>, HandlerError> {
        let left = ctx.last_checkpoint::<Option<Self>>()?.flatten();
        Ok(left.map(|asked| Self { is_from_before: true, ..asked }))
    }

    /// Whether AWS has to know it still: the request, or else the client token.
    /// A clock that has been set back makes nothing old.
    pub(super) fn is_remembered(&self) -> bool {
        let known = if self.request_token.is_some() { REQUEST_IS_KNOWN } else { TOKEN_IS_KNOWN };
        since_1970().saturating_sub(Duration::from_secs(self.since)) < known
    }

    /// Durable when this returns.
    pub(super) fn keep(&self, ctx: &Context) -> Result<(), HandlerError> {
        ctx.checkpoint(self)
    }

    /// The request has come to nothing: the next attempt begins anew.
    pub(super) fn forget(ctx: &Context) -> Result<(), HandlerError> {
        ctx.checkpoint(&None::<Self>)
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
