//! How an attempt can fail.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::effects::FileError;
use crate::error::{Error, ErrorKind};
use crate::json::JsonText;
use crate::store::Failure;

/// Why an attempt did not succeed, and whether another one might.
///
/// ```
/// use jobq::HandlerError;
/// let busy = HandlerError::retry("the printer is out of paper").with_code("no_paper");
/// assert!(busy.is_retryable());
/// assert_eq!(busy.to_string(), "no_paper: the printer is out of paper");
/// assert!(!HandlerError::permanent("no such printer").is_retryable());
/// ```
#[derive(Clone, Debug)]
pub struct HandlerError {
    pub(crate) verdict: Verdict,
    pub(crate) failure: Failure,
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Another attempt, after the policy's wait or this one.
    Retry(Option<Duration>),
    Permanent,
    /// Back as if it had not been claimed.
    Release,
    /// Stopped because someone asked for it.
    Cancelled,
    /// There is no room: nobody's fault, the attempt is given back.
    DiskFull,
    /// What the handler runs with is gone: not the job's fault, as above.
    RuntimeEnded,
}

impl HandlerError {
    /// An error that may go away.
    pub fn retry(message: impl fmt::Display) -> Self {
        Self::new(Verdict::Retry(None), "handler_error", message)
    }

    /// An error that no other attempt can help.
    pub fn permanent(message: impl fmt::Display) -> Self {
        Self::new(Verdict::Permanent, "handler_error", message)
    }

    /// Not an error: the handler stops at a safe point because the worker shuts
    /// down. The job goes back and the attempt does not count. From a worker that
    /// does not shut down it is an attempt that failed.
    #[must_use]
    pub fn released() -> Self {
        Self::new(Verdict::Release, "released", "the worker is shutting down")
    }

    pub(crate) fn new(verdict: Verdict, code: &str, message: impl fmt::Display) -> Self {
        Self { verdict, failure: Failure::new(code, message.to_string()) }
    }

    /// A word for programs instead of `handler_error`.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.failure.code = code.into();
        self
    }

    /// Anything more, kept in the job's events.
    #[must_use]
    pub fn with_details(mut self, details: serde_json::Value) -> Self {
        self.failure.details = Some(details);
        self
    }

    /// What this attempt leaves although it failed, as the job's `result`: an answer
    /// that was paid for and cannot be used, say. It stays until a later attempt has
    /// one. Like the pause, it is for errors that are retried or permanent.
    #[must_use]
    pub fn with_result(mut self, result: impl Into<serde_json::Value>) -> Self {
        let result = result.into();
        // Null is nothing, as it is in an outcome.
        self.failure.result = (!result.is_null()).then(|| Arc::new(JsonText(result.to_string())));
        self
    }

    /// No job of this type is claimed for that long, by any worker of the database:
    /// the others would only hear the same. A week at most; what is longer is
    /// cut, and a pause that is there and longer stays as it is. What runs goes on,
    /// and what is decided is applied.
    ///
    /// An attempt that is to be retried does not count then: the job was told to
    /// wait, however often, and comes back with as many attempts as before. It needs
    /// no [`after`](Self::after): the pause keeps it back, and whoever ends the pause
    /// early lets it go on. A permanent error fails the job all the same.
    ///
    /// ```
    /// use std::time::Duration;
    /// use jobq::HandlerError;
    /// // The service has answered 429, and to come back in a minute.
    /// let wait = Duration::from_secs(60);
    /// let error = HandlerError::retry("too many requests").with_code("rate_limited").pausing_type(wait);
    /// assert_eq!(error.type_pause(), Some(wait));
    /// ```
    #[must_use]
    pub fn pausing_type(mut self, pause: Duration) -> Self {
        self.failure = self.failure.pausing_type(pause);
        self
    }

    /// For how long the job's type is to be paused.
    #[must_use]
    pub fn type_pause(&self) -> Option<Duration> {
        self.failure.pause
    }

    /// When to try again, if not after the usual wait.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Self {
        if let Verdict::Retry(after) = &mut self.verdict {
            *after = Some(wait);
        }
        self
    }

    /// Whether another attempt may help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.verdict, Verdict::Retry(_))
    }

    /// The word for programs.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.failure.code
    }

    /// The sentence for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.failure.message
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.failure.code, self.failure.message)
    }
}

impl std::error::Error for HandlerError {}

impl From<FileError> for HandlerError {
    fn from(error: FileError) -> Self {
        if error.is_disk_full() {
            Self::new(Verdict::DiskFull, "disk_full", error)
        } else if error.is_permanent() {
            Self::permanent(error).with_code("file_refused")
        } else {
            Self::retry(error).with_code("file_error")
        }
    }
}

impl From<Error> for HandlerError {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Invalid => Self::permanent(error).with_code("invalid_input"),
            ErrorKind::DiskFull => Self::new(Verdict::DiskFull, "disk_full", error),
            _ => Self::retry(error),
        }
    }
}

impl From<std::io::Error> for HandlerError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Self::new(Verdict::DiskFull, "disk_full", error)
            }
            _ => Self::retry(error),
        }
    }
}
