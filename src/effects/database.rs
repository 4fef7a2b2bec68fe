//! The queue's own database, when it is where jobs may go.
//!
//! No job may touch it, and nobody here may even open it: when any handle of a
//! file is closed, POSIX takes away all locks that the process has on it, and
//! SQLite's are such locks.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode};

use super::error::FileError;
use super::meta::Meta;
use super::{FOLDER, Files};
use crate::error::{Error, ErrorKind, Result};

pub(super) struct Database {
    folder: OwnedFd,
    folder_id: (u64, u64),
    /// The file, and those that SQLite keeps beside it while it needs them.
    names: [String; 4],
}

impl Files {
    /// The same, with this database file out of reach of all jobs, and with it
    /// what SQLite keeps beside it: by their names, and by what they are.
    pub fn protecting(mut self, db: &Path) -> Result<Self> {
        let cannot = |e: std::io::Error| {
            Error::new(ErrorKind::Io, format!("cannot tell where {} is: {e}", db.display())).with_source(e)
        };
        // SQLite goes by the file that a link leads to.
        let real = std::fs::canonicalize(db).map_err(cannot)?;
        let (Some(folder), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(Error::invalid("db", "names a folder, not a file"));
        };
        let folder = rustix::fs::openat(CWD, folder, FOLDER, Mode::empty()).map_err(|e| cannot(e.into()))?;
        let folder_id = Meta::of(&folder).map_err(|e| cannot(e.into()))?.id();
        // Paths of jobs are text; a name that is not cannot be among them.
        let name = name.to_string_lossy();
        let names = ["", "-wal", "-shm", "-journal"].map(|end| format!("{name}{end}"));
        self.database = Some(Database { folder, folder_id, names });
        Ok(self)
    }
}

impl Database {
    /// Refuses a name in a folder, whether or not there is something of that
    /// name now: SQLite would take it for its own. Capitals make no difference,
    /// because they make none on some filesystems.
    pub(super) fn admit_name(&self, folder_id: (u64, u64), name: &str, path: &str) -> Result<(), FileError> {
        let is_ours = folder_id == self.folder_id && self.names.iter().any(|ours| ours.eq_ignore_ascii_case(name));
        if is_ours { Err(refusal(path)) } else { Ok(()) }
    }

    /// Refuses a file that is one of them by another name. They are looked up
    /// each time, because SQLite makes and removes some of them as it goes.
    pub(super) fn admit(&self, found: &Meta, path: &str) -> Result<(), FileError> {
        for name in &self.names {
            let ours = Meta::at(&self.folder, name);
            let ours = ours.map_err(|e| FileError::os(path, "tell it from jobq's own database", e))?;
            if ours.is_some_and(|ours| ours.id() == found.id()) {
                return Err(refusal(path));
            }
        }
        Ok(())
    }
}

fn refusal(path: &str) -> FileError {
    FileError::target(path, "this is jobq's own database, which no job may touch")
}
