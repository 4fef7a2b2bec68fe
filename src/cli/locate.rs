//! Finding the database as git finds its repository: `--db`, then `JOBQ_DB`,
//! then `.jobq/jobq.db` here or in a parent folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jobq::clock::{Clock as _, Millis, SystemClock};
use jobq::handlers::ClaudeExtractionHandler;
use jobq::{Error, ErrorKind, JobTypes, ProgramHandlers, Queue, QueueOptions, Registry, Result};

use super::args::Global;
use super::config::{Config, How, Source};

/// A database and the settings beside it.
pub(crate) struct Place {
    pub(crate) db: PathBuf,
    pub(crate) config: Config,
    pub(crate) root: Option<PathBuf>,
}

impl Place {
    pub(crate) fn find(global: &Global) -> Result<Self> {
        let db = database(global)?;
        let config = Config::beside(&db)?;
        Ok(Self { db, config, root: global.root.clone() })
    }

    /// For those who change something: what dead processes have accepted is
    /// brought to its end first.
    pub(crate) fn open(&self) -> Result<Queue> {
        self.open_with(true)
    }

    /// For those who only look, and for those who see to the dead by themselves.
    pub(crate) fn open_as_it_is(&self) -> Result<Queue> {
        self.open_with(false)
    }

    /// The programs that handle jobs here.
    pub(crate) fn programs(&self) -> Result<ProgramHandlers> {
        let programs = ProgramHandlers::in_folder(QueueOptions::at(&self.db).handlers_folder()?);
        let settings = self.config.programs();
        Ok(settings.into_iter().fold(programs, |programs, (name, settings)| programs.with(name, settings)))
    }

    /// The handlers a worker has here.
    pub(crate) fn registry(&self) -> Result<Registry> {
        let claude = ClaudeExtractionHandler::new(self.config.claude_code());
        let registry = Registry::builtin().with(claude);
        #[cfg(feature = "aws")]
        let registry = registry.with(self.aws());
        Ok(registry.with_programs(&self.programs()?))
    }

    /// AWS as the settings have it.
    #[cfg(feature = "aws")]
    pub(crate) fn aws(&self) -> jobq::handlers::SyncAwsHandler {
        jobq::handlers::SyncAwsHandler::new(self.config.aws())
    }

    /// The types that are known here, with their settings.
    pub(crate) fn types(&self) -> Result<JobTypes> {
        Ok(self.config.with_defaults(JobTypes::builtin()).with_programs(&self.programs()?))
    }

    fn open_with(&self, recover: bool) -> Result<Queue> {
        let types = self.types()?;
        let options = QueueOptions::at(&self.db).busy_timeout(self.config.busy_timeout).clock(Arc::new(SystemClock));
        let options = options.recover(recover).types(types);
        match &self.root {
            Some(root) => options.root(root).open(),
            None => options.open(),
        }
    }
}

/// Where the database is.
pub(crate) fn database(global: &Global) -> Result<PathBuf> {
    database_and_how(global).map(|(db, _)| db)
}

/// The same with what has led there.
pub(crate) fn database_and_how(global: &Global) -> Result<(PathBuf, How)> {
    let (db, how) = match (&global.db, &global.root, from_environment()) {
        (Some(db), ..) => (db.clone(), (Source::Flag, Some("--db"))),
        (None, Some(root), _) => (in_folder(root), (Source::Flag, Some("--root"))),
        (None, None, Some(db)) => (db, (Source::Env, Some("JOBQ_DB"))),
        (None, None, None) => (search_upwards()?, (Source::Default, None)),
    };
    if db.is_file() {
        return Ok((db, how));
    }
    // As it was typed, so that the next command can be, too.
    let like = match (&global.db, &global.root) {
        (Some(db), _) if db.is_dir() => return Err(is_folder(db)),
        (Some(db), _) => format!(" --db {}", quoted(db)),
        (None, Some(root)) => format!(" --root {}", quoted(root)),
        (None, None) => String::new(),
    };
    Err(none_at(&db.display().to_string(), &like))
}

/// `JOBQ_DB`; an empty one is as good as none.
pub(crate) fn from_environment() -> Option<PathBuf> {
    std::env::var_os("JOBQ_DB").filter(|db| !db.is_empty()).map(PathBuf::from)
}

/// A path as a shell takes it.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

pub(crate) fn in_folder(root: &Path) -> PathBuf {
    root.join(".jobq").join("jobq.db")
}

fn search_upwards() -> Result<PathBuf> {
    let here = std::env::current_dir()
        .map_err(|e| Error::new(ErrorKind::Io, format!("cannot tell the current folder: {e}")))?;
    here.ancestors()
        .map(in_folder)
        .find(|db| db.is_file())
        .ok_or_else(|| none_at(&format!("{} or its parent folders", here.display()), ""))
}

fn none_at(place: &str, like: &str) -> Error {
    Error::new(ErrorKind::NoDatabase, format!("no jobq database at {place}; `jobq init{like}` makes one"))
}

fn is_folder(db: &Path) -> Error {
    let text = "is a folder, and --db is for the file of a database; for the queue in a folder there is";
    Error::new(ErrorKind::NoDatabase, format!("{0} {text} --root {0}", db.display()))
}

/// The time now, for "how long ago".
pub(crate) fn now() -> Millis {
    SystemClock.now()
}
