//! The paths of a queue. All follow from the path of its database, so processes agree whatever name they use for it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::path::real;
use crate::store::sqlite::SqliteStore;

pub(crate) struct QueuePaths {
    /// The database file.
    pub(crate) db: PathBuf,
    /// The state folder: lock files, staged contents, the file that wakes workers.
    pub(crate) state: PathBuf,
    /// The folder that jobs may touch, unless the database records another.
    pub(crate) home: PathBuf,
}

impl QueuePaths {
    /// The paths of this database. With `create`, makes the folders.
    pub(crate) fn of(db: PathBuf, create: bool) -> Result<Self> {
        // SQLite names its log after the target of a link.
        let is_link = std::fs::symlink_metadata(&db).is_ok_and(|found| found.is_symlink());
        let target = if is_link { std::fs::canonicalize(&db).ok() } else { None };
        let db = target.unwrap_or(db);
        let folder = match db.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        refuse_second_root(&folder)?;
        let folder = without_link(folder);
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

    /// The folder that jobs may touch, and its name for the database. One process may apply what another accepted, so the
    /// first one that changes something records the root for all.
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
                format_args!("{} is in the queue's own folder, which jobs must not touch", named.display()),
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

    /// The root relative to the home if it is below it, so both can be moved together. Links on the way are resolved. A
    /// root that is itself a link keeps its name, because its user may point it elsewhere.
    fn shortened(&self, root: &Path) -> Result<String> {
        let root = match (root.parent(), root.file_name()) {
            (Some(parent), Some(name)) => real(parent).join(name),
            _ => real(root),
        };
        let text = root.strip_prefix(real(&self.home)).unwrap_or(&root).to_str().map(str::to_owned);
        text.ok_or_else(|| Error::invalid("root", "is not text; give it another name"))
    }

    /// The `.jobq` that holds the state folder, or is it.
    fn own_folder(&self) -> &Path {
        if self.state.file_name() == Some(".jobq".as_ref()) {
            &self.state
        } else {
            self.state.parent().unwrap_or(&self.state)
        }
    }
}

/// A link to `.jobq` would give the queue a second root: jobs accepted for one root would change files in the other.
fn refuse_second_root(folder: &Path) -> Result<()> {
    let is_link = std::fs::symlink_metadata(folder).is_ok_and(|found| found.is_symlink());
    if !is_link || folder.file_name() != Some(".jobq".as_ref()) {
        return Ok(());
    }
    let text =
        format_args!("{} is a link; open the queue from the folder that holds the real `.jobq`", folder.display());
    Err(Error::invalid("db", text))
}

/// Replaces a link of another name by the `.jobq` that it leads to, so that the home is the folder around `.jobq`.
fn without_link(folder: PathBuf) -> PathBuf {
    let is_link = std::fs::symlink_metadata(&folder).is_ok_and(|found| found.is_symlink());
    let target = if is_link { std::fs::canonicalize(&folder).ok() } else { None };
    target.filter(|target| target.file_name() == Some(".jobq".as_ref())).unwrap_or(folder)
}

/// The process may change its working folder later.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path)
        .map_err(|e| Error::new(ErrorKind::Io, format!("cannot tell where {} is: {e}", path.display())))
}

fn same_folder(one: &Path, other: &Path) -> bool {
    one == other || real(one) == real(other)
}

/// `.jobq` itself for `.jobq/jobq.db`, and a folder in `.jobq` for any other database. Two databases never share a state
/// folder, because each would delete the other's staged files as leftovers.
fn state_folder(folder: &Path, name: &OsStr) -> PathBuf {
    if folder.file_name() == Some(".jobq".as_ref()) && name == "jobq.db" {
        return folder.to_owned();
    }
    let mut own = OsString::from(name);
    own.push(".d");
    folder.join(".jobq").join(own)
}
