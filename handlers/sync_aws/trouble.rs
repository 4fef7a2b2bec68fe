//! What went wrong, and whether another attempt may help.
//!
//! Only the code and the sentence that AWS gives are told. The SDK's own long form
//! of an error has the answer with all its headers in it.

use std::error::Error as StdError;

use aws_sdk_cloudcontrol::error::{ProvideErrorMetadata, SdkError};
use serde_json::json;

use crate::HandlerError;

/// The longest sentence that is kept of what AWS says.
const LONGEST: usize = 1_000;

/// No other attempt can help with these: the request, the type, or what the caller
/// may do has to change. Some services end them with `Exception`.
const PERMANENT: [&str; 20] = [
    BAD_SETTINGS,
    NO_CREDENTIALS,
    NO_REGION,
    "AccessDenied",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidCredentials",
    "InvalidRequest",
    "InvalidSignature",
    "MissingAuthenticationToken",
    "NotAuthorized",
    "NotUpdatable",
    "OptInRequired",
    "PrivateType",
    "SignatureDoesNotMatch",
    "TypeNotFound",
    "UnauthorizedTaggingOperation",
    "UnrecognizedClient",
    "UnsupportedAction",
    "Validation",
];

/// After these, credentials and settings are read afresh: someone may have put
/// them right.
const ABOUT_CREDENTIALS: [&str; 11] = [
    BAD_SETTINGS,
    NO_CREDENTIALS,
    NO_REGION,
    "AccessDenied",
    "ExpiredToken",
    "InvalidClientTokenId",
    "InvalidCredentials",
    "InvalidSignature",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClient",
];

pub(super) const NO_CREDENTIALS: &str = "no_credentials";
pub(super) const NO_REGION: &str = "no_region";
/// No call can be made with what the settings say.
pub(super) const BAD_SETTINGS: &str = "bad_settings";
const LOOK_AT: &str =
    "; look at region and endpoint_url in .jobq/config.toml, AWS_REGION, AWS_ENDPOINT_URL and ~/.aws/config";
/// The call did not reach AWS, or its answer did not come back.
pub(super) const UNREACHABLE: &str = "aws_unreachable";
/// AWS has answered something that is no answer.
pub(super) const UNREADABLE: &str = "aws_answer";

/// Why a call, or a request that AWS had accepted, came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    code: String,
    message: String,
    request_token: Option<String>,
}

impl Trouble {
    pub(super) fn new(code: &str, message: impl Into<String>) -> Self {
        let mut message: String = message.into();
        if let Some((end, _)) = message.char_indices().nth(LONGEST) {
            message.truncate(end);
            message.push('…');
        }
        Self { code: code.to_owned(), message, request_token: None }
    }

    /// Of a call that failed.
    pub(super) fn of<E>(error: &SdkError<E>) -> Self
    where
        E: ProvideErrorMetadata + StdError + 'static,
    {
        match error {
            SdkError::ServiceError(answer) => {
                let status = answer.raw().status().as_u16();
                let code = answer.err().code().map_or_else(|| format!("http_{status}"), str::to_owned);
                let message = answer.err().message().map_or_else(|| format!("HTTP status {status}"), str::to_owned);
                Self::new(&code, message)
            }
            SdkError::TimeoutError(_) => Self::new(UNREACHABLE, "AWS did not answer in time"),
            // What is at the bottom of it says enough; what is above may have the whole request in it.
            SdkError::DispatchFailure(failure) if failure.is_other() => {
                let is_endpoint = causes(error).contains("failed to apply endpoint");
                let (code, hint) = if is_endpoint { (BAD_SETTINGS, LOOK_AT) } else { (UNREACHABLE, "") };
                Self::new(code, format!("the call came to nothing: {}{hint}", last_cause(error)))
            }
            SdkError::DispatchFailure(_) => Self::new(UNREACHABLE, causes(error)),
            SdkError::ConstructionFailure(_) => {
                Self::new(BAD_SETTINGS, format!("the call came to nothing: {}{LOOK_AT}", last_cause(error)))
            }
            SdkError::ResponseError(answer) => {
                let status = answer.raw().status().as_u16();
                Self::new(UNREADABLE, format!("the answer (HTTP status {status}) cannot be read: {}", causes(error)))
            }
            _ => Self::new(UNREADABLE, causes(error)),
        }
    }

    /// With AWS's name for the request.
    pub(super) fn with_request(mut self, token: Option<&str>) -> Self {
        self.request_token = token.map(str::to_owned);
        self
    }

    /// By its name, however the service spells it.
    pub(super) fn is(&self, code: &str) -> bool {
        bare(&self.code) == code
    }

    pub(super) fn is_permanent(&self) -> bool {
        PERMANENT.contains(&bare(&self.code))
    }

    pub(super) fn is_about_credentials(&self) -> bool {
        ABOUT_CREDENTIALS.contains(&bare(&self.code))
    }

    /// Asked too often, or the network: it is worth waiting for a little.
    pub(super) fn passes_soon(&self) -> bool {
        let is_throttled =
            ["Throttling", "TooManyRequests", "RequestLimitExceeded", "SlowDown", "http_429", "http_503"];
        self.is_of_the_network() || is_throttled.contains(&bare(&self.code))
    }

    pub(super) fn is_of_the_network(&self) -> bool {
        self.code == UNREACHABLE
    }

    /// Nobody can be asked anything.
    pub(super) fn is_for_all(&self) -> bool {
        [BAD_SETTINGS, NO_CREDENTIALS, NO_REGION].contains(&&*self.code)
    }

    /// As an error of the attempt.
    pub(super) fn into_error(self) -> HandlerError {
        let kind = if self.is_permanent() { HandlerError::permanent } else { HandlerError::retry };
        let error = kind(&self.sentence()).with_code(&self.code);
        match self.request_token {
            Some(token) => error.with_details(json!({ "request_token": token })),
            None => error,
        }
    }

    /// The sentence with the request it is about.
    fn sentence(&self) -> String {
        match &self.request_token {
            Some(token) => format!("{} (request token {token})", self.message),
            None => self.message.clone(),
        }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.sentence())
    }
}

fn bare(code: &str) -> &str {
    code.strip_suffix("Exception").unwrap_or(code)
}

/// An error and what is behind it, each by its own sentence.
pub(super) fn causes(error: &dyn StdError) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        // Some repeat what they wrap.
        if !said.ends_with(&text) {
            said.push_str(": ");
            said.push_str(&text);
        }
        cause = next.source();
    }
    said
}

fn last_cause(mut error: &dyn StdError) -> String {
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_troubles_are_given_up_at_once() {
        for code in [
            "InvalidRequestException",
            "InvalidRequest",
            "AccessDeniedException",
            "AccessDenied",
            "TypeNotFoundException",
            "UnsupportedActionException",
            "NotUpdatable",
            "ValidationException",
            "UnrecognizedClientException",
            NO_CREDENTIALS,
        ] {
            assert!(!Trouble::new(code, "").into_error().is_retryable(), "{code}");
        }
        for code in [
            "ThrottlingException",
            "Throttling",
            "ConcurrentOperationException",
            "ResourceConflict",
            "NotStabilized",
            "ServiceInternalErrorException",
            "GeneralServiceException",
            "InternalFailure",
            "ServiceTimeout",
            "NetworkFailure",
            "ServiceLimitExceeded",
            "ExpiredTokenException",
            "AlreadyExists",
            "ClientTokenConflictException",
            "http_503",
            UNREACHABLE,
            "SomethingNew",
        ] {
            assert!(Trouble::new(code, "").into_error().is_retryable(), "{code}");
        }
    }

    #[test]
    fn an_error_names_code_and_request_and_is_short() {
        let error = Trouble::new("InvalidRequest", "x".repeat(5_000)).with_request(Some("r-1")).into_error();
        assert_eq!(error.code(), "InvalidRequest");
        assert!(error.message().ends_with("… (request token r-1)") && error.message().len() < 1_100);
    }
}
