//! What kind of trouble Claude Code had, by what it says about it.

use std::time::Duration;

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

/// Words by which trouble is known when there is no HTTP status; what may pass comes first.
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
            "authentication",
            "unauthorized",
            "permission_error",
            "credit balance is too low",
        ],
    ),
    (Trouble::BadRequest, &["prompt is too long", "prompt too long", "invalid_request_error", "request too large"]),
];

/// The word for programs that says: not now, and nobody else either.
pub(super) const RATE_LIMITED: &str = "rate_limited";

/// The longest pause that is believed.
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

impl Trouble {
    /// By the status that was told, else by one in the text, else by its words.
    pub(super) fn of(status: Option<u16>, text: &str) -> Self {
        let text = text.to_lowercase();
        match status.or_else(|| status_in(&text)) {
            Some(429) => Self::RateLimited,
            Some(529) => Self::Overloaded,
            Some(408 | 500..=599) => Self::Unavailable,
            Some(401 | 403) => Self::NotAllowed,
            Some(400 | 404 | 413 | 422) => Self::BadRequest,
            _ => {
                let known = WORDS.iter().find(|(_, words)| words.iter().any(|word| text.contains(word)));
                known.map_or(Self::Unknown, |(trouble, _)| *trouble)
            }
        }
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
        let text = text.to_lowercase();
        let pause = reset_in(&text, now).or_else(|| wait_in(&text))?;
        (!pause.is_zero()).then_some(pause.min(LONGEST))
    }
}

/// `API Error: 529 …`, `status code 503`, `HTTP 401`.
fn status_in(text: &str) -> Option<u16> {
    ["api error", "status code", "status", "http"].iter().find_map(|marker| {
        text.match_indices(marker).find_map(|(at, _)| {
            let rest = text[at + marker.len()..].trim_start_matches([' ', ':', '=', '(', '"']);
            let (digits, after) = digits(rest)?;
            let status = (digits.len() == 3).then(|| digits.parse().ok())??;
            ((400..600).contains(&status) && !after.starts_with(char::is_alphanumeric)).then_some(status)
        })
    })
}

/// `usage limit reached|1760000000`: when it is over.
fn reset_in(text: &str, now: u64) -> Option<Duration> {
    let (_, rest) = text.split_once("limit reached|")?;
    let time: u64 = digits(rest)?.0.parse().ok()?;
    // Some tell milliseconds.
    let seconds = if time > 100_000_000_000 { time / 1_000 } else { time };
    seconds.checked_sub(now).map(Duration::from_secs)
}

/// `retry after 30 seconds`, `retry-after: 30`, `try again in 2 minutes`.
fn wait_in(text: &str) -> Option<Duration> {
    ["retry after", "retry-after", "retry_after", "try again in", "retry in"].iter().find_map(|marker| {
        text.match_indices(marker).find_map(|(at, _)| {
            let rest = text[at + marker.len()..].trim_start_matches([' ', ':', '=', '"', '\'']);
            let (number, unit) = digits(rest)?;
            // What is after the point is less than anybody waits for.
            let unit = unit.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit()).trim_start_matches([' ', '"']);
            let seconds = match unit {
                unit if unit.starts_with("ms") || unit.starts_with("milli") => return Some(Duration::from_secs(1)),
                unit if unit.starts_with("min") || unit == "m" || unit.starts_with("m ") => 60,
                unit if unit.starts_with("hour") || unit == "h" || unit.starts_with("h ") => 3_600,
                _ => 1,
            };
            Some(Duration::from_secs(number.parse::<u64>().ok()?.saturating_mul(seconds)))
        })
    })
}

/// The digits at the beginning, if there are any, and the rest.
fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
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
            assert_eq!(Trouble::of(Some(status), "something"), trouble, "{status}");
            assert_eq!(Trouble::of(None, &format!("API Error: {status} {{}}")), trouble, "{status} in the text");
        }
        assert_eq!(Trouble::of(Some(401), "overloaded"), Trouble::NotAllowed, "the status counts before words");
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
            ("HTTP 401", Trouble::NotAllowed),
            ("status: 7 of 4290 items, API Error: 4291", Trouble::Unknown),
            ("", Trouble::Unknown),
            ("something else", Trouble::Unknown),
        ] {
            assert_eq!(Trouble::of(None, text), trouble, "{text}");
        }
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
    fn a_limit_may_say_when_it_is_over() {
        let now = 1_760_000_000;
        for (text, seconds) in [
            ("Claude AI usage limit reached|1760000090", Some(90)),
            ("Claude AI usage limit reached|1760000090000", Some(90)),
            ("Claude AI usage limit reached|1750000000", None),
            ("Claude AI usage limit reached|1760000000", None),
            ("Claude AI usage limit reached|1900000000", Some(LONGEST.as_secs())),
            ("429: retry after 30 seconds", Some(30)),
            ("Retry-After: 12", Some(12)),
            ("\"retry_after\": 7,", Some(7)),
            ("Please try again in 2 minutes.", Some(120)),
            ("try again in 1 hour", Some(3_600)),
            ("try again in 20.5s", Some(20)),
            ("retry after 250ms", Some(1)),
            ("retry after 99999999999999999999999", None),
            ("retry after a while", None),
            ("try again later", None),
            ("", None),
        ] {
            let pause = Trouble::RateLimited.pause(text, now);
            assert_eq!(pause.map(|pause| pause.as_secs()), seconds, "{text}");
        }
        assert!(Trouble::Overloaded.pause("retry after 5 seconds", now).is_some());
        assert_eq!(Trouble::Unavailable.pause("retry after 5 seconds", now), None, "it is not about others");
    }
}
