//! What kind of trouble Claude Code had, by what it says about it.

use std::time::Duration;

use super::wait::{digits, pause_in};

/// The kinds that are told apart, because something else is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Too many requests, or the limit of a subscription: others of the type would fare the same.
    RateLimited,
    Overloaded,
    /// The network, or a server that fails.
    Unavailable,
    /// The key, the login or the account.
    NotAllowed,
    /// The request itself: no other attempt can help.
    BadRequest,
    Unknown,
}

/// Words by which trouble is known when there is no HTTP status; what may pass comes first. Those for which a job is
/// given up are whole phrases of Claude Code: others of its programs print warnings, too.
const WORDS: [(Trouble, &[&str]); 5] = [
    (
        Trouble::RateLimited,
        &["rate limit", "rate_limit", "rate-limit", "too many requests", "usage limit", "limit reached", "quota"],
    ),
    (Trouble::Overloaded, &["overloaded"]),
    (
        Trouble::Unavailable,
        &[
            "econnreset",
            "econnrefused",
            "etimedout",
            "enotfound",
            "eai_again",
            "epipe",
            "fetch failed",
            "connection error",
            "connection reset",
            "connection refused",
            "socket hang up",
            "network error",
            "timed out",
            "timeout",
            "internal server error",
            "service unavailable",
            "bad gateway",
        ],
    ),
    (
        Trouble::NotAllowed,
        &[
            "invalid api key",
            "please run /login",
            "authentication_error",
            "authentication error",
            "authentication failed",
            "permission_error",
            "credit balance is too low",
        ],
    ),
    (Trouble::BadRequest, &["prompt is too long", "prompt too long", "invalid_request_error", "request too large"]),
];

/// What Claude Code puts before the status of the service.
const API_ERROR: &str = "api error";

/// The word for programs that says: not now, and nobody else either.
pub(super) const RATE_LIMITED: &str = "rate_limited";

impl Trouble {
    /// By the status that was told, else by one in the text, else by its words. A job
    /// is given up only for what is certainly not from the prompt, however short; the
    /// longer pieces of it are not in the text any more.
    pub(super) fn of(status: Option<u16>, text: &str, prompt: &str) -> Self {
        if let Some(trouble) = status.and_then(Self::of_status) {
            return trouble;
        }
        let (text, prompt) = (text.to_lowercase(), prompt.to_lowercase());
        let certain = |trouble: Self, word: &str| !trouble.is_permanent() || !prompt.contains(word);
        let api = status_after(&[API_ERROR], &text).and_then(Self::of_status);
        if let Some(trouble) = api.filter(|trouble| certain(*trouble, API_ERROR)) {
            return trouble;
        }
        // Whose status that is nobody knows: of a look for updates, perhaps. Another attempt does no harm.
        let other = status_after(&["status code", "status", "http"], &text).and_then(Self::of_status);
        if let Some(trouble) = other.filter(|trouble| !trouble.is_permanent()) {
            return trouble;
        }
        let is_said = |trouble: Self, word: &&&str| text.contains(**word) && certain(trouble, word);
        let known = WORDS.iter().find(|(trouble, words)| words.iter().any(|word| is_said(*trouble, &word)));
        known.map_or(Self::Unknown, |(trouble, _)| *trouble)
    }

    fn of_status(status: u16) -> Option<Self> {
        Some(match status {
            429 => Self::RateLimited,
            529 => Self::Overloaded,
            408 | 500..=599 => Self::Unavailable,
            401 | 403 => Self::NotAllowed,
            400 | 404 | 413 | 422 => Self::BadRequest,
            _ => return None,
        })
    }

    pub(super) fn is_permanent(self) -> bool {
        matches!(self, Self::NotAllowed | Self::BadRequest)
    }

    /// The word for programs.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::RateLimited => RATE_LIMITED,
            Self::Overloaded => "overloaded",
            Self::Unavailable => "unavailable",
            Self::NotAllowed => "not_allowed",
            Self::BadRequest => "bad_request",
            Self::Unknown => "claude_failed",
        }
    }

    /// How long it says that nobody need try again. `now` is in seconds since 1970.
    pub(super) fn pause(self, text: &str, now: u64) -> Option<Duration> {
        if !matches!(self, Self::RateLimited | Self::Overloaded) {
            return None;
        }
        pause_in(&text.to_lowercase(), now)
    }
}

/// `API Error: 529 …`, `status code 503`, `HTTP 401`.
fn status_after(markers: &[&str], text: &str) -> Option<u16> {
    markers.iter().find_map(|marker| {
        text.match_indices(marker).find_map(|(at, _)| {
            let rest = text[at + marker.len()..].trim_start_matches([' ', ':', '=', '(', '"']);
            let (digits, after) = digits(rest)?;
            let status = (digits.len() == 3).then(|| digits.parse().ok())??;
            ((400..600).contains(&status) && !after.starts_with(char::is_alphanumeric)).then_some(status)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_tells_what_kind_of_trouble_it_is() {
        for (status, trouble) in [
            (429, Trouble::RateLimited),
            (529, Trouble::Overloaded),
            (408, Trouble::Unavailable),
            (500, Trouble::Unavailable),
            (503, Trouble::Unavailable),
            (401, Trouble::NotAllowed),
            (403, Trouble::NotAllowed),
            (400, Trouble::BadRequest),
            (404, Trouble::BadRequest),
            (413, Trouble::BadRequest),
            (422, Trouble::BadRequest),
            (409, Trouble::Unknown),
        ] {
            assert_eq!(Trouble::of(Some(status), "something", ""), trouble, "{status}");
            assert_eq!(Trouble::of(None, &format!("API Error: {status} {{}}"), ""), trouble, "{status} in the text");
        }
        assert_eq!(Trouble::of(Some(401), "overloaded", ""), Trouble::NotAllowed, "the status counts before words");
    }

    #[test]
    fn without_a_status_words_tell() {
        for (text, trouble) in [
            ("Claude AI usage limit reached|1760000000", Trouble::RateLimited),
            ("You've hit your rate limit", Trouble::RateLimited),
            ("Overloaded", Trouble::Overloaded),
            ("{\"type\":\"overloaded_error\"}", Trouble::Overloaded),
            ("read ECONNRESET", Trouble::Unavailable),
            ("connect ETIMEDOUT 1.2.3.4:443", Trouble::Unavailable),
            ("TypeError: fetch failed", Trouble::Unavailable),
            ("API Error: Connection error.", Trouble::Unavailable),
            ("Request timed out.", Trouble::Unavailable),
            ("Invalid API key · Please run /login", Trouble::NotAllowed),
            ("authentication_error", Trouble::NotAllowed),
            ("Credit balance is too low", Trouble::NotAllowed),
            ("Prompt is too long", Trouble::BadRequest),
            ("request failed with status code 503", Trouble::Unavailable),
            ("update check: HTTP 404", Trouble::Unknown),
            ("no authentication helper, unauthorized", Trouble::Unknown),
            ("status: 7 of 4290 items, API Error: 4291", Trouble::Unknown),
            ("", Trouble::Unknown),
            ("something else", Trouble::Unknown),
        ] {
            assert_eq!(Trouble::of(None, text, ""), trouble, "{text}");
        }
    }

    #[test]
    fn words_that_the_prompt_has_too_give_no_job_up() {
        for (text, prompt) in [
            ("Invalid API key", "When is it an invalid api key?"),
            ("API Error: 400", "explain \"API Error: 400\""),
            ("prompt is too long", "say why a Prompt is too long"),
        ] {
            assert!(Trouble::of(None, text, "").is_permanent(), "{text}");
            assert_eq!(Trouble::of(None, text, prompt), Trouble::Unknown, "{text}");
        }
        assert_eq!(Trouble::of(None, "Overloaded", "overloaded?"), Trouble::Overloaded, "which is tried again anyway");
        assert_eq!(Trouble::of(Some(401), "invalid api key", "invalid api key?"), Trouble::NotAllowed);
    }

    #[test]
    fn only_a_key_an_account_or_a_request_is_given_up() {
        use Trouble::{BadRequest, NotAllowed, Overloaded, RateLimited, Unavailable, Unknown};
        for trouble in [RateLimited, Overloaded, Unavailable, Unknown] {
            assert!(!trouble.is_permanent(), "{trouble:?}");
        }
        assert!(NotAllowed.is_permanent() && BadRequest.is_permanent());
    }

    #[test]
    fn only_what_others_would_meet_too_pauses() {
        let pause = |trouble: Trouble| trouble.pause("Retry after 5 seconds", 0);
        assert_eq!(pause(Trouble::RateLimited), Some(Duration::from_secs(5)));
        assert_eq!(pause(Trouble::Overloaded), Some(Duration::from_secs(5)));
        assert_eq!(pause(Trouble::Unavailable), None);
    }
}
