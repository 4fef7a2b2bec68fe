//! Where a queue's things are. All of it follows from the database, so that all
//! processes agree, by whatever name they know it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::store::sqlite::SqliteStore;

pub(crate) struct QueuePaths {
    /// The database file.
    pub(crate) db: PathBuf,
    /// Lock files, staged contents, what wakes workers.
    pub(crate) state: PathBuf,
    /// The folder jobs may touch, unless another one is on record.
    pub(crate) home: PathBuf,
}

impl QueuePaths {
    /// Of this database; its folder is made if it may be.
    pub(crate) fn of(db: PathBuf, create: bool) -> Result<Self> {
        // SQLite goes by the file that a link leads to.
        let is_link = std::fs::symlink_metadata(&db).is_ok_and(|found| found.is_symlink());
        let target = if is_link { std::fs::canonicalize(&db).ok() } else { None };
        let db = target.unwrap_or(db);
        let folder = match db.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        refuse_second_root(&folder)?;
        let folder = by_its_own_name(folder);
        let folder = absolute(&folder)?;
        let name = db.file_name().ok_or_else(|| Error::invalid("db", "names a folder, not a file"))?;
        let inside = folder.file_name() == Some(".jobq".as_ref());
        let home = folder.parent().filter(|_| inside).unwrap_or(&folder).to_owned();
        let paths = Self { db: folder.join(name), state: state_folder(&folder, name), home };
        if create {
            paths.make_folders()?;
        }
        Ok(paths)
    }

    /// Others can neither read `.jobq` nor lock its files: prompts are private, and a shared lock stops every writer.
    fn make_folders(&self) -> Result<()> {
        use std::os::unix::fs::DirBuilderExt as _;
        let make = |folder: &Path, mode| {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(mode)
                .create(folder)
                .map_err(|e| Error::new(ErrorKind::Io, format!("cannot make {}: {e}", folder.display())))
        };
        make(&self.home, 0o777)?;
        make(&self.state, 0o700)
    }

    /// Programs that handle jobs, and schemas.
    pub(crate) fn handlers(&self) -> PathBuf {
        self.state.join("handlers")
    }

    /// The folder jobs may touch, and its name for the record. What one process has accepted, another may have to
    /// apply: so the first to change something puts it on record, and it holds for all.
    pub(super) fn root(&self, named: Option<&Path>, own_only: bool, store: &SqliteStore) -> Result<(PathBuf, String)> {
        let in_home = |root: Option<&str>| root.map_or_else(|| self.home.clone(), |root| self.home.join(root));
        let Some(named) = named else {
            let root = in_home(store.root());
            if own_only && !same_folder(&root, &self.home) {
                return Err(self.root_elsewhere(&root));
            }
            return Ok((root, store.root().unwrap_or_default().to_owned()));
        };
        let named = absolute(named)?;
        if real(&named).starts_with(real(self.own_folder())) {
            return Err(Error::invalid(
                "root",
                format_args!("{} is in the queue's own folder, which its jobs must not touch", named.display()),
            ));
        }
        let (on_record, used) = store.root_and_use()?;
        let kept = in_home(on_record.as_deref());
        if same_folder(&named, &kept) {
            return Ok((named, on_record.unwrap_or_default()));
        }
        if on_record.is_none() && !used {
            let name = self.shortened(&named)?;
            return Ok((named, name));
        }
        Err(Error::wrong_state(format!(
            "jobs of this queue touch {}, not {}; leave the root out, or make another queue",
            kept.display(),
            named.display()
        )))
    }

    fn root_elsewhere(&self, root: &Path) -> Error {
        let (db, root) = (self.db.display(), root.display());
        let text = format!("jobs of the queue {db} change files in {root}, not in the folder in which it was found");
        Error::new(ErrorKind::NotTrusted, format!("{text}; if that is right, name it with `--db {db}` or JOBQ_DB"))
    }

    /// Relative if that will do, so that all of it can be moved together, by whatever links one comes there. If it is a
    /// link itself, that is its name: others may be put in its place.
    fn shortened(&self, root: &Path) -> Result<String> {
        let root = match (root.parent(), root.file_name()) {
            (Some(parent), Some(name)) => real(parent).join(name),
            _ => real(root),
        };
        let text = root.strip_prefix(real(&self.home)).unwrap_or(&root).to_str().map(str::to_owned);
        text.ok_or_else(|| Error::invalid("root", "is not text; give it another name"))
    }

    /// The `.jobq` in which or beside which everything of jobq's is.
    fn own_folder(&self) -> &Path {
        if self.state.file_name() == Some(".jobq".as_ref()) {
            &self.state
        } else {
            self.state.parent().unwrap_or(&self.state)
        }
    }
}

/// One queue has one root. Through a link to its folder it would have another, and what was accepted for the one
/// would be done in the other.
fn refuse_second_root(folder: &Path) -> Result<()> {
    let is_link = std::fs::symlink_metadata(folder).is_ok_and(|found| found.is_symlink());
    if !is_link || folder.file_name() != Some(".jobq".as_ref()) {
        return Ok(());
    }
    let next = match std::fs::canonicalize(folder).ok() {
        Some(target) if target.file_name() != Some(".jobq".as_ref()) => {
            format!("put {} in the place of the link, under its name", target.display())
        }
        target => {
            let home = target.as_deref().and_then(Path::parent).unwrap_or(Path::new("its folder"));
            format!("use `--root {}`, or make a queue here", home.display())
        }
    };
    let text =
        format_args!("{} is a link, and a queue has one folder that its jobs may touch; {next}", folder.display());
    Err(Error::invalid("db", text))
}

/// What is in `.jobq` is so by whatever link one comes to it: the folder around it is the one its jobs may touch.
fn by_its_own_name(folder: PathBuf) -> PathBuf {
    let is_link = std::fs::symlink_metadata(&folder).is_ok_and(|found| found.is_symlink());
    let target = if is_link { std::fs::canonicalize(&folder).ok() } else { None };
    target.filter(|target| target.file_name() == Some(".jobq".as_ref())).unwrap_or(folder)
}

/// So that the process may change its folder.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path)
        .map_err(|e| Error::new(ErrorKind::Io, format!("cannot tell where {} is: {e}", path.display())))
}

fn same_folder(one: &Path, other: &Path) -> bool {
    one == other || real(one) == real(other)
}

/// Without links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    })
}

/// Where lock files and staged contents are: in `.jobq` for the database that is
/// there, and in a folder of its own beside any other, which may have neighbours.
/// Two databases must never share one: each would take what the other has staged
/// for litter.
fn state_folder(folder: &Path, name: &OsStr) -> PathBuf {
    if folder.file_name() == Some(".jobq".as_ref()) && name == "jobq.db" {
        return folder.to_owned();
    }
    let mut own = OsString::from(name);
    own.push(".d");
    folder.join(".jobq").join(own)
}
