//! How often a property is tried.

use proptest::test_runner::Config;

/// So often, or as `PROPTEST_CASES` says.
pub(crate) fn cases(usual: u32) -> Config {
    let given = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    Config { cases: given.unwrap_or(usual), failure_persistence: None, ..Config::default() }
}
