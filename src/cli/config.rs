//! `.jobq/config.toml`: what can be set, and what holds when nothing is.

use std::path::Path;
use std::time::Duration;

use jobq::{Error, ErrorKind, Result};
use serde::Deserialize;

/// The file `jobq init` writes: every setting, commented out, with its default.
pub(crate) const TEMPLATE: &str = "\
# Settings of this queue. Every line shows the default; remove the # to change it.

# How long to wait for another process that is writing before giving up.
# busy_timeout = \"5s\"

# Whether a worker compares the disk with what completed jobs left when it starts.
# reconcile_at_start = true
";

pub(crate) struct Config {
    pub(crate) busy_timeout: Duration,
    pub(crate) reconcile_at_start: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    busy_timeout: Option<String>,
    reconcile_at_start: Option<bool>,
}

impl Config {
    /// The settings beside a database; the defaults when there is no file.
    pub(crate) fn beside(db: &Path) -> Result<Self> {
        // Beside a database of the application's own, a config.toml is the application's own.
        if db.parent().and_then(Path::file_name) != Some(".jobq".as_ref()) {
            return Self::parse("");
        }
        let path = db.with_file_name("config.toml");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(Error::new(ErrorKind::Io, format!("cannot read {}: {e}", path.display()))),
        };
        Self::parse(&text).map_err(|e| e.context(path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text).map_err(|e| Error::invalid("config", e.message()))?;
        let busy_timeout = match &file.busy_timeout {
            Some(text) => super::args::duration(text).map_err(|e| Error::invalid("busy_timeout", e))?,
            None => Duration::from_secs(5),
        };
        Ok(Self { busy_timeout, reconcile_at_start: file.reconcile_at_start.unwrap_or(true) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_shows_the_defaults_and_every_line_of_it_can_be_used() {
        let uncommented: String = TEMPLATE
            .lines()
            .filter_map(|l| l.strip_prefix("# "))
            .filter(|l| l.contains(" = "))
            .fold(String::new(), |a, l| a + l + "\n");
        assert_eq!(Config::parse(&uncommented).unwrap().busy_timeout, Config::parse("").unwrap().busy_timeout);
        assert_eq!(Config::parse("busy_timeout = \"soon\"").err().unwrap().field(), Some("busy_timeout"));
        assert!(Config::parse("bussy_timeout = \"5s\"").is_err());
    }
}
