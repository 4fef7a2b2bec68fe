//! What an attempt leaves for the next one, so that nothing is asked of AWS twice.
//!
//! ```text
//! nothing ──► asked: the client token ──► accepted: the request token ──► ended
//!        written before the call     written after it
//! ```
//!
//! AWS answers a call that comes again with the same client token with the request
//! that is there. So an attempt that finds the token alone repeats the call, to the
//! letter; one that finds the request goes on waiting for it.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::{Context, HandlerError};

/// A call that has been made, or was about to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked {
    /// Whether it creates, updates or deletes.
    pub(super) operation: Operation,
    /// What makes a second call the same as the first.
    pub(super) client_token: String,
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
}

impl Asked {
    /// A call that nobody has made yet. Tokens are random: one that was derived from
    /// the job would be the same after a request has failed, and so would its answer.
    pub(super) fn new(operation: Operation, patch: Option<String>) -> Self {
        let client_token = format!("jobq-{}", ulid::Ulid::generate());
        Self { operation, client_token, patch, request_token: None, made_as: None }
    }

    /// What an earlier attempt has left.
    pub(super) fn before(ctx: &Context) -> Result<Option<Self>, HandlerError> {
        Ok(ctx.last_checkpoint::<Option<Self>>()?.flatten())
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
