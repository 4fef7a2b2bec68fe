//! Values as they are typed, and as they stand in the settings.

use std::time::Duration;

use jobq::worker::SHORTEST_LEASE;

/// `10s`, `5m`, `1h 30m`, `14d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|e| format!("{e}; write it as 10s, 5m, 1h30m or 14d"))
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
    let number = text.parse().map_err(|_| "is not a number".to_owned())?;
    if (1..=1024).contains(&number) { Ok(number) } else { Err("is between 1 and 1024".to_owned()) }
}
