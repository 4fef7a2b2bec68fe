//! Tests that cannot run here say so where it is seen.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Past the harness, which keeps what passing tests print; and into the list that `scripts/check.sh` ends with.
pub fn skipped(what: &str, why: &str) {
    let line = format!("!!! SKIPPED: {what}: NOT TESTED: {why} !!!\n");
    let _ = writeln!(std::io::stderr(), "\n{line}");
    if let Some(list) = std::env::var_os("JOBQ_TEST_SKIPPED") {
        let mut list = OpenOptions::new().create(true).append(true).open(list).expect("the list of skipped tests");
        list.write_all(line.as_bytes()).expect("the list of skipped tests");
    }
}
