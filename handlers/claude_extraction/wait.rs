//! How long a limit says that it lasts.

use std::time::Duration;

/// The longest pause that is believed.
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

/// How long to wait by this text, in small letters. `now` is in seconds since 1970.
pub(super) fn pause_in(text: &str, now: u64) -> Option<Duration> {
    let pause = reset_in(text, now).or_else(|| wait_in(text))?;
    (!pause.is_zero()).then_some(pause.min(LONGEST))
}

/// `usage limit reached|1760000000`: when it is over.
fn reset_in(text: &str, now: u64) -> Option<Duration> {
    let (_, rest) = text.split_once("limit reached|")?;
    let time: u64 = digits(rest)?.0.parse().ok()?;
    // Some tell milliseconds.
    let seconds = if time > 100_000_000_000 { time / 1_000 } else { time };
    seconds.checked_sub(now).map(Duration::from_secs)
}

/// `retry after 30 seconds`, `retry-after: 30`, `try again in 2 minutes`, `in 1m30s.`
fn wait_in(text: &str) -> Option<Duration> {
    ["retry after", "retry-after", "retry_after", "try again in", "retry in"].iter().find_map(|marker| {
        text.match_indices(marker).find_map(|(at, _)| {
            let mut rest = text[at + marker.len()..].trim_start_matches([' ', ':', '=', '"', '\'']);
            let (first, unit, after) = quantity(rest)?;
            let mut seconds = first.saturating_mul(unit.unwrap_or(1_000));
            rest = after;
            // `1h 5m`: as long as there are units.
            while let (Some(_), Some((number, Some(unit), after))) = (unit, quantity(rest.trim_start())) {
                seconds = seconds.saturating_add(number.saturating_mul(unit));
                rest = after;
            }
            Some(Duration::from_secs(seconds.div_ceil(1_000)))
        })
    })
}

/// A number, its unit in milliseconds if it has one, and the rest.
fn quantity(text: &str) -> Option<(u64, Option<u64>, &str)> {
    let (number, rest) = digits(text)?;
    // What is after the point is less than anybody waits for; a point alone ends a sentence.
    let rest = rest.strip_prefix('.').and_then(digits).map_or(rest, |(_, rest)| rest);
    let word = rest.trim_start_matches([' ', '"']);
    let end = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
    let unit = match &word[..end] {
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => 1,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        _ => return Some((number.parse().ok()?, None, rest)),
    };
    Some((number.parse().ok()?, Some(unit), &word[end..]))
}

/// The digits at the beginning, if there are any, and the rest.
pub(super) fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("try again in 5m.", Some(300)),
            ("try again in 5m", Some(300)),
            ("try again in 5 min, please", Some(300)),
            ("try again in 2h.", Some(7_200)),
            ("try again in 3 hrs", Some(10_800)),
            ("try again in 90s.", Some(90)),
            ("try again in 1m30s.", Some(90)),
            ("try again in 1h 5m. 3 seconds are not enough", Some(3_900)),
            ("retry after 5. 3 attempts are left", Some(5)),
            ("retry after 99999999999999999999999", None),
            ("retry after a while", None),
            ("try again later", None),
            ("", None),
        ] {
            let pause = pause_in(&text.to_lowercase(), now);
            assert_eq!(pause.map(|pause| pause.as_secs()), seconds, "{text}");
        }
    }
}
