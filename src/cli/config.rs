//! `.jobq/config.toml`: what can be set, and what holds when nothing is.

mod effective;
mod handlers;
mod print;
mod problem;
mod section;
mod slips;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jobq::handlers::{AwsSettings, ClaudeCode};
use jobq::{Error, ErrorKind, JobTypes, ProgramSettings, Result, Retention, WorkerOptions};
use toml::de::DeTable;

pub(super) use self::effective::Source;
pub(super) use self::print::{How, run};
pub(super) use self::problem::nearest;
use self::problem::{Problem, line_of};
use self::section::{Notes, Section};
use super::args::{self, WorkerArgs};

/// The file `jobq init` writes: every setting, commented out, with its default.
pub(crate) const TEMPLATE: &str = include_str!("config/template.toml");

/// Of what is wrong with the form of a file, no more is told.
const MOST_TOLD: usize = 20;

pub(crate) struct Config {
    pub(crate) busy_timeout: Duration,
    pub(crate) reconcile_at_start: bool,
    worker: WorkerTable,
    pub(crate) retention: Retention,
    handlers: handlers::Handlers,
    /// On which line of the file a setting stands.
    lines: BTreeMap<String, usize>,
}

/// What of a worker can be set; its options count before this.
struct WorkerTable {
    concurrency: usize,
    lease: Duration,
    poll_interval: Duration,
    grace: Option<Duration>,
}

impl Config {
    /// The settings beside a database; the defaults when there is no file.
    pub(crate) fn beside(db: &Path) -> Result<Self> {
        Self::read(db).map_err(|mut errors| {
            let more = errors.len() - 1;
            let first = errors.swap_remove(0);
            if more == 0 {
                return first;
            }
            let more = format!("(and {more} more; `jobq config` tells all of them)");
            Error::new(first.kind(), format!("{} {more}", first.message()))
        })
    }

    /// The same with all that is wrong, in order of line; that is one error at least.
    fn read(db: &Path) -> Result<Self, Vec<Error>> {
        let Some(path) = file_beside(db) else { return Ok(Self::default()) };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
                return Err(vec![Error::invalid("config", "is not UTF-8 text").context(path.display())]);
            }
            Err(e) => return Err(vec![Error::new(ErrorKind::Io, format!("cannot read {}: {e}", path.display()))]),
        };
        Self::parse(&text).map_err(|wrong| wrong.into_iter().map(|problem| problem.into_error(&path)).collect())
    }

    fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let mut problems: Vec<_> = errors.iter().take(MOST_TOLD).map(|error| not_toml(text, error)).collect();
            problems.sort_by_key(|problem| problem.line);
            return Err(problems);
        }
        let notes = RefCell::new(Notes::default());
        let mut config = Self::of(Section::new(text, Some(table.get_ref()), &notes));
        let (problems, lines) = notes.into_inner().finish();
        config.lines = lines;
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// Each setting with its default, in one place.
    fn of(mut file: Section<'_>) -> Self {
        let config = Self {
            busy_timeout: file.time("busy_timeout").unwrap_or(Duration::from_secs(5)),
            reconcile_at_start: file.switch("reconcile_at_start").unwrap_or(true),
            worker: WorkerTable::read(file.section("worker")),
            retention: retention(file.section("retention")),
            handlers: handlers::read(&mut file),
            lines: BTreeMap::new(),
        };
        file.end();
        config
    }

    /// How a worker runs that is told this.
    pub(crate) fn worker_options(&self, args: &WorkerArgs) -> WorkerOptions {
        WorkerOptions {
            concurrency: args.concurrency.unwrap_or(self.worker.concurrency),
            types: args.types.clone(),
            drain: args.drain,
            poll_interval: args.poll_interval.unwrap_or(self.worker.poll_interval),
            lease: args.lease.unwrap_or(self.worker.lease),
            grace: args.grace.or(self.worker.grace),
            reconcile: !args.no_reconcile && self.reconcile_at_start,
            retention: self.retention.clone(),
            supervisor: None,
            limits: self.limits(),
        }
    }

    /// What is said of programs, by type.
    pub(crate) fn programs(&self) -> Vec<(String, ProgramSettings)> {
        handlers::programs(&self.handlers)
    }

    /// How Claude Code is run.
    pub(crate) fn claude_code(&self) -> ClaudeCode {
        handlers::claude_code(&self.handlers)
    }

    /// Where AWS is, and as whom to call it.
    pub(crate) fn aws(&self) -> AwsSettings {
        handlers::aws(&self.handlers)
    }

    /// These types, with what is said of those that come with jobq.
    pub(crate) fn with_defaults(&self, types: JobTypes) -> JobTypes {
        handlers::with_defaults(&self.handlers, types)
    }

    /// How many jobs of a type may run at once.
    pub(crate) fn limits(&self) -> BTreeMap<String, u32> {
        handlers::limits(&self.handlers)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::of(Section::new("", None, &RefCell::default()))
    }
}

impl WorkerTable {
    fn read(mut table: Section<'_>) -> Self {
        let usual = WorkerOptions::default();
        let concurrency: Option<usize> = table.number("concurrency");
        // The same bounds as on the command line.
        if let Some(Err(why)) = concurrency.map(|number| args::concurrency(&number.to_string())) {
            table.wrong("concurrency", why);
        }
        let read = Self {
            concurrency: concurrency.unwrap_or(usual.concurrency),
            lease: table.parsed("lease", args::lease).unwrap_or(usual.lease),
            poll_interval: table.parsed("poll_interval", args::some_time).unwrap_or(usual.poll_interval),
            grace: table.time("grace"),
        };
        table.end();
        read
    }
}

/// Where the settings of a database are. Beside a database of the application's own,
/// a config.toml is the application's own.
fn file_beside(db: &Path) -> Option<PathBuf> {
    let ours = db.parent().and_then(Path::file_name) == Some(".jobq".as_ref());
    ours.then(|| db.with_file_name("config.toml"))
}

fn not_toml(text: &str, error: &toml::de::Error) -> Problem {
    let line = line_of(text, error.span().map_or(0, |span| span.start));
    Problem { line, name: "config".to_owned(), why: error.message().replace('\n', ", ") }
}

fn retention(mut table: Section<'_>) -> Retention {
    let mut retention = Retention::default();
    retention.completed = table.parsed("completed", kept).unwrap_or(retention.completed);
    retention.events = table.parsed("events", kept).unwrap_or(retention.events);
    retention.types = table.named("types", kept).unwrap_or_default();
    table.end();
    retention
}

/// How long something is kept; `None` is for ever.
fn kept(text: &str) -> Result<Option<Duration>, String> {
    if text == "forever" {
        return Ok(None);
    }
    args::duration(text).map(Some).map_err(|why| format!("{why}, or \"forever\""))
}

#[cfg(test)]
mod tests;
