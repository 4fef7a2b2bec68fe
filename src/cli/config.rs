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
use jobq::{Error, ErrorKind, FilePolicy, JobTypes, ProgramSettings, Result, Retention, WorkerOptions};
use toml::de::DeTable;

pub(super) use self::effective::Source;
pub(super) use self::print::{How, run};
pub(super) use self::problem::nearest;
use self::problem::{Problem, line_of};
use self::section::{Notes, Section};
use super::args::{self, WorkerArgs};

/// The file `jobq init` writes: every setting, commented out, with its default.
pub(crate) const TEMPLATE: &str = include_str!("config/template.toml");

/// No settings are that large.
const LARGEST: u64 = 1 << 20;
/// Of what is wrong with the form of a file, no more is told.
const MOST_TOLD: usize = 20;

pub(crate) struct Config {
    pub(crate) busy_timeout: Duration,
    pub(crate) reconcile_at_start: bool,
    worker: WorkerTable,
    pub(crate) retention: Retention,
    files: FilePolicy,
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
        let text = text_of(&path).map_err(|error| vec![error])?;
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
            files: files(file.section("files")),
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

    /// Which files jobs may change.
    pub(crate) fn files(&self, db: &Path) -> FilePolicy {
        let claude = self.claude_code();
        let folder = claude.folder.unwrap_or_default();
        let words = claude.command.iter().chain(&claude.args);
        // Also `--mcp-config=FILE`.
        let words = words.flat_map(|word| [Some(word.as_str()), word.split_once('=').map(|(_, value)| value)]);
        let in_folder = words.flatten().map(|word| folder.join(word));
        // The settings may be a link to a file below the root.
        let files = in_folder.chain(file_beside(db).and_then(|file| std::path::absolute(file).ok()));
        let command_words = files.map(|file| file.to_string_lossy().into_owned()).collect();
        FilePolicy { command_words, ..self.files.clone() }
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

/// Where the settings of a database are, by whatever link it was reached. Beside a database of the application's own,
/// a config.toml is the application's own.
fn file_beside(db: &Path) -> Option<PathBuf> {
    let is_link = std::fs::symlink_metadata(db).is_ok_and(|found| found.is_symlink());
    let db = is_link.then(|| std::fs::canonicalize(db).ok()).flatten().unwrap_or_else(|| db.to_owned());
    let ours = db.parent().and_then(Path::file_name) == Some(".jobq".as_ref());
    ours.then(|| db.with_file_name("config.toml"))
}

/// Without a file there is nothing set; but one that cannot be read is not without settings.
fn text_of(path: &Path) -> Result<String> {
    let wrong = |why: &str| Err(Error::invalid("config", why).context(path.display()));
    let trouble = |e: std::io::Error| Error::new(ErrorKind::Io, format!("cannot read {}: {e}", path.display()));
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let is_link = std::fs::symlink_metadata(path).is_ok();
            return if is_link { wrong("is a link to nothing") } else { Ok(String::new()) };
        }
        Err(e) => return Err(trouble(e)),
    };
    // A pipe or a device might never come to an end.
    if !found.is_file() {
        return wrong("is not a file");
    }
    if found.len() > LARGEST {
        return wrong("is larger than a MiB");
    }
    match std::fs::read_to_string(path) {
        Err(e) if e.kind() == std::io::ErrorKind::InvalidData => wrong("is not UTF-8 text"),
        read => read.map_err(trouble),
    }
}

fn not_toml(text: &str, error: &toml::de::Error) -> Problem {
    let span = error.span().unwrap_or(0..0);
    let why = error.message().replace('\n', ", ");
    // What it is about is what stands there.
    let about = text.get(span.clone()).filter(|what| why == "duplicate key" && !what.is_empty());
    let why = about.map_or_else(|| why.clone(), |key| format!("{why} `{key}`"));
    Problem { line: line_of(text, span.start), name: "config".to_owned(), why }
}

fn retention(mut table: Section<'_>) -> Retention {
    let mut retention = Retention::default();
    retention.completed = table.parsed("completed", kept).unwrap_or(retention.completed);
    retention.events = table.parsed("events", kept).unwrap_or(retention.events);
    retention.types = table.named("types", kept).unwrap_or_default();
    table.end();
    retention
}

fn files(mut table: Section<'_>) -> FilePolicy {
    let allow = table.texts("allow").unwrap_or_default();
    let files = FilePolicy { allow, writable: table.texts("writable"), ..FilePolicy::default() };
    if let Some((list, why)) = files.wrong_glob() {
        table.wrong(list, why);
    }
    table.end();
    files
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
