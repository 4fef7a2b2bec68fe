//! What does not look like an error yet, and takes suspiciously long.

use std::io::Write as _;
use std::time::Duration;

/// Longer than a busy machine keeps a task waiting, and shorter than a job may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Tells whoever looks on. Not by `eprintln!`: the test harness keeps that until the test has ended, and this one may
/// not end.
pub(super) fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "jobq::testing: {what}");
}
