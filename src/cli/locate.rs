//! Finding the database as git finds its repository: `--db`, then `JOBQ_DB`,
//! then `.jobq/jobq.db` here or in a parent folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jobq::clock::{Clock as _, Millis, SystemClock};
use jobq::handlers::ClaudeExtractionHandler;
use jobq::{Error, ErrorKind, JobTypes, ProgramHandlers, Queue, QueueOptions, Registry, Result};

use super::args::Global;
use super::config::{Config, How, Source};
use super::trust;

/// A database and the settings beside it.
pub(crate) struct Place {
    pub(crate) db: PathBuf,
    pub(crate) config: Config,
    pub(crate) root: Option<PathBuf>,
    /// By walking up; nobody named it.
    found: bool,
}

impl Place {
    pub(crate) fn find(global: &Global) -> Result<Self> {
        let (db, how) = database_and_how(global)?;
        let config = Config::beside(&db)?;
        Ok(Self::new(db, how, config, global))
    }

    pub(crate) fn new(db: PathBuf, (_, named_by): How, config: Config, global: &Global) -> Self {
        Self { db, config, root: global.root.clone(), found: named_by.is_none() }
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
        let mut options = options.recover(recover).types(types).files(self.config.files(&self.db));
        if self.found {
            options = options.own_root_only();
        }
        match &self.root {
            Some(root) => options.root(root).open(),
            None => options.open(),
        }
    }
}

/// Where the database is, and what has led there.
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
    refuse_folder(&db, how.1.unwrap_or("--db"))?;
    // As it was typed, so that the next command can be, too.
    let (place, like) = match (&global.db, &global.root) {
        (Some(db), _) => (db.display().to_string(), format!(" --db {}", quoted(db))),
        (None, Some(root)) => (db.display().to_string(), format!(" --root {}", quoted(root))),
        (None, None) => (format!("{} (as JOBQ_DB says)", db.display()), String::new()),
    };
    Err(none_at(&place, &like))
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
    for folder in here.ancestors() {
        let (db, state) = (in_folder(folder), folder.join(".jobq"));
        let found = db.metadata();
        let is_closed =
            found.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied) && state.exists();
        let has_database = is_closed || db.symlink_metadata().is_ok();
        if !has_database && !state.join("config.toml").exists() {
            continue;
        }
        // Before any advice: it would lead into somebody else's folder.
        trust::check(&state)?;
        let (shown, root) = (db.display(), quoted(folder));
        let why = match found {
            Ok(found) if found.is_file() => return Ok(db),
            Err(e) if is_closed => return Err(Error::new(ErrorKind::Io, format!("cannot look at {shown}: {e}"))),
            _ if has_database => format!("{shown} is not a file; put it right, or remove it"),
            _ => format!("{} has settings and no database; `jobq init --root {root}` makes one", state.display()),
        };
        return Err(Error::new(ErrorKind::NoDatabase, why));
    }
    Err(none_at(&format!("{} or its parent folders", here.display()), ""))
}

fn none_at(place: &str, like: &str) -> Error {
    Error::new(ErrorKind::NoDatabase, format!("no jobq database at {place}; `jobq init{like}` makes one"))
}

/// `by` is what has named it.
pub(crate) fn refuse_folder(db: &Path, by: &str) -> Result<()> {
    if !db.is_dir() {
        return Ok(());
    }
    let root = match db.parent() {
        Some(root) if db.file_name() == Some(".jobq".as_ref()) && root.as_os_str().is_empty() => Path::new("."),
        Some(root) if db.file_name() == Some(".jobq".as_ref()) => root,
        _ => db,
    };
    let text = format!("is a folder, and {by} is for the file of a database; for the queue in a folder there is");
    Err(Error::new(ErrorKind::NoDatabase, format!("{} {text} `--root {}`", db.display(), quoted(root))))
}

/// The time now, for "how long ago".
pub(crate) fn now() -> Millis {
    SystemClock.now()
}
