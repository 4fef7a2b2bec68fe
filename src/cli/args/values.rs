//! Values as they are typed, and as they stand in the settings.

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use jobq::worker::SHORTEST_LEASE;
use jobq::{MAX_TIME, Status};

/// One of the words, which shells complete.
pub(crate) fn status() -> impl TypedValueParser<Value = Status> {
    PossibleValuesParser::new(Status::ALL.map(Status::as_str)).try_map(|word| word.parse::<Status>())
}

/// A whole number, said so where it is none.
pub(crate) fn number<N: FromStr<Err = ParseIntError>>(text: &str) -> Result<N, String> {
    text.parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => "is too large".to_owned(),
        IntErrorKind::NegOverflow => "is too small".to_owned(),
        _ => "is not a whole number".to_owned(),
    })
}

pub(crate) fn at_least_one(text: &str) -> Result<u32, String> {
    number(text).and_then(|number| if number == 0 { Err("must be at least 1".to_owned()) } else { Ok(number) })
}

/// `10s`, `5m`, `1h 30m`, `14d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|e| format!("{e}; write it as 10s, 5m, 1h30m or 14d"))?;
    match time {
        _ if time > MAX_TIME => Err("is longer than a hundred years".to_owned()),
        // Times are kept in milliseconds.
        _ if time < Duration::from_millis(1) && !time.is_zero() => Err("is shorter than a millisecond".to_owned()),
        _ => Ok(time),
    }
}

pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|time| if time.is_zero() { Err("must not be zero".to_owned()) } else { Ok(time) })
}

/// At least as long as a worker can keep.
pub(crate) fn lease(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|time| {
        if time < SHORTEST_LEASE { Err(format!("must be at least {SHORTEST_LEASE:?}")) } else { Ok(time) }
    })
}

pub(crate) fn concurrency(text: &str) -> Result<usize, String> {
    let number = number(text)?;
    if (1..=1024).contains(&number) { Ok(number) } else { Err("is between 1 and 1024".to_owned()) }
}

/// One of a list, around which people put spaces.
#[expect(clippy::unnecessary_wraps, reason = "so clap has it")]
pub(crate) fn trimmed(text: &str) -> Result<String, String> {
    Ok(text.trim().to_owned())
}
