//! `.jobq/config.toml`: what can be set, and what holds when nothing is.

mod handlers;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jobq::handlers::{AwsSettings, ClaudeCode};
use jobq::{Error, ErrorKind, JobTypes, ProgramSettings, Result, Retention};
use serde::Deserialize;

/// The file `jobq init` writes: every setting, commented out, with its default.
pub(crate) const TEMPLATE: &str = "\
# Settings of this queue. Every line shows the default; remove the # to change it.

# How long to wait for another process that is writing before giving up.
# busy_timeout = \"5s\"

# Whether a worker compares the disk with what completed jobs left when it starts.
# reconcile_at_start = true

# How long workers keep completed and cancelled jobs, and the events of those that
# are kept longer; \"forever\" is possible. Failed jobs stay until they are pruned.
# [retention]
# completed = \"14d\"
# events = \"14d\"

# The same for completed and cancelled jobs of one type.
# [retention.types]
## send_mail = \"3d\"
## nightly_report = \"forever\"

# What holds for the jobs of one type. Any type can have such a table; a job that
# brings its own timeout or attempts keeps them. Without concurrency there is no
# limit; with it, jobs are counted over all workers.
## [handlers.create_file]
## concurrency = 2
## timeout = \"5m\"
## max_attempts = 3
## backoff = \"1s\"
## backoff_max = \"30s\"

# How Claude Code is run for claude_extraction, besides the above.
## [handlers.claude_extraction]
## command = [\"claude\"]
## model = \"opus\"
## args = [\"--max-turns\", \"20\"]
## folder = \".\"
## timeout = \"10m\"
## concurrency = 2

# Where AWS is and as whom sync_aws calls it, where that is not said in the usual
# places (AWS_* variables, ~/.aws, the container, the machine).
## [handlers.sync_aws]
## region = \"eu-central-1\"
## profile = \"staging\"
## endpoint_url = \"http://127.0.0.1:4566\"

# A program as handler, besides executables in .jobq/handlers. It runs in the root.
## [handlers.resize]
## command = [\"python3\", \"tools/resize.py\"]
## permanent_exit_codes = [2, 64]
## pass_env = [\"AWS_*\", \"MAGICK_HOME\"]
## env = { MODE = \"fast\" }
## keep_output = 1048576
## grace = \"3s\"
";

pub(crate) struct Config {
    pub(crate) busy_timeout: Duration,
    pub(crate) reconcile_at_start: bool,
    pub(crate) retention: Retention,
    pub(crate) handlers: handlers::Handlers,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    busy_timeout: Option<String>,
    reconcile_at_start: Option<bool>,
    #[serde(default)]
    retention: RetentionTable,
    #[serde(default)]
    handlers: handlers::Handlers,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RetentionTable {
    completed: Option<String>,
    events: Option<String>,
    #[serde(default)]
    types: BTreeMap<String, String>,
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
            Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
                return Err(Error::invalid("config", "is not UTF-8 text").context(path.display()));
            }
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
        let reconcile_at_start = file.reconcile_at_start.unwrap_or(true);
        handlers::check(&file.handlers)?;
        let retention = retention(&file.retention)?;
        Ok(Self { busy_timeout, reconcile_at_start, retention, handlers: file.handlers })
    }

    /// What is said of programs, by type.
    pub(crate) fn programs(&self) -> Result<Vec<(String, ProgramSettings)>> {
        handlers::programs(&self.handlers)
    }

    /// How Claude Code is run.
    pub(crate) fn claude_code(&self) -> ClaudeCode {
        handlers::claude_code(&self.handlers)
    }

    /// Where AWS is, and as whom to call it.
    #[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "settings are checked by every build"))]
    pub(crate) fn aws(&self) -> AwsSettings {
        handlers::aws(&self.handlers)
    }

    /// These types, with what is said of those that come with jobq.
    pub(crate) fn with_defaults(&self, types: JobTypes) -> Result<JobTypes> {
        handlers::with_defaults(&self.handlers, types)
    }

    /// How many jobs of a type may run at once.
    pub(crate) fn limits(&self) -> BTreeMap<String, u32> {
        handlers::limits(&self.handlers)
    }
}

fn retention(table: &RetentionTable) -> Result<Retention> {
    let mut retention = Retention::default();
    if let Some(text) = &table.completed {
        retention.completed = kept("retention.completed", text)?;
    }
    if let Some(text) = &table.events {
        retention.events = kept("retention.events", text)?;
    }
    for (name, text) in &table.types {
        retention.types.insert(name.clone(), kept(&format!("retention.types.{name}"), text)?);
    }
    Ok(retention)
}

/// How long something is kept; `None` is for ever.
fn kept(field: &str, text: &str) -> Result<Option<Duration>> {
    if text == "forever" {
        return Ok(None);
    }
    let kept = super::args::duration(text).map_err(|e| Error::invalid(field, format_args!("{e}, or \"forever\"")))?;
    Ok(Some(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_shows_the_defaults_and_every_line_of_it_can_be_used() {
        let uncommented: String = TEMPLATE
            .lines()
            .filter_map(|l| l.strip_prefix("# "))
            .filter(|l| l.contains(" = ") || l.starts_with('['))
            .fold(String::new(), |a, l| a + l + "\n");
        let (shown, default) = (Config::parse(&uncommented).unwrap(), Config::parse("").unwrap());
        assert_eq!(shown.limits(), default.limits());
        assert_eq!((shown.busy_timeout, shown.retention), (default.busy_timeout, default.retention));
        assert!(uncommented.contains("completed = ") && uncommented.contains("[retention.types]"), "{uncommented}");
        assert_eq!(Config::parse("busy_timeout = \"soon\"").err().unwrap().field(), Some("busy_timeout"));
        assert!(Config::parse("bussy_timeout = \"5s\"").is_err());
        // Examples of what is not set by default.
        let all: String = TEMPLATE
            .lines()
            .filter_map(|l| l.strip_prefix("## ").or_else(|| l.strip_prefix("# ")))
            .filter(|l| l.contains(" = ") || l.starts_with('['))
            .fold(String::new(), |a, l| a + l + "\n");
        let all = Config::parse(&all).unwrap();
        assert_eq!(all.limits()["claude_extraction"], 2);
        let types = all.retention.types;
        assert_eq!(types["send_mail"], Some(Duration::from_secs(3 * 86_400)));
        assert_eq!(types["nightly_report"], None);
    }

    #[test]
    fn retention_is_a_time_or_for_ever() {
        let retention = Config::parse("[retention]\ncompleted = \"forever\"\nevents = \"1h\"").unwrap().retention;
        assert_eq!((retention.completed, retention.events), (None, Some(Duration::from_secs(3_600))));
        for (text, field) in [
            ("[retention]\ncompleted = \"soon\"", Some("retention.completed")),
            ("[retention]\nevents = \"\"", Some("retention.events")),
            ("[retention.types]\nx = \"never\"", Some("retention.types.x")),
            ("[retention]\nfailed = \"1d\"", Some("config")),
        ] {
            assert_eq!(Config::parse(text).err().unwrap().field(), field, "{text}");
        }
    }
}
