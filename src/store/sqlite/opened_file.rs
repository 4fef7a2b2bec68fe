//! Which file was opened. A database that is deleted, replaced or moved away can be
//! read and written by those who have it open for ever, and nobody else sees it.
//!
//! The path is only asked about, never opened: when any handle of a file is closed,
//! POSIX takes away all locks that the process has on it, and SQLite's are such locks.
//! (A handle that can do nothing but stand for the file is none of these.)

use std::fs::Metadata;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, ffi};

use crate::error::{Error, ErrorKind, Result};

#[derive(Clone, Debug)]
pub(super) struct OpenedFile {
    path: PathBuf,
    /// Device and inode.
    id: (u64, u64),
    /// No other file gets these as long as this one is open, whatever becomes of the connections to it.
    _pin: Option<Arc<OwnedFd>>,
}

impl OpenedFile {
    /// What is opened here. It is asked before and after: what is put in its place between the two must not be taken for
    /// it. (To open a file may make another of it, where a filesystem has layers; then it is opened once more.)
    pub(super) fn opening<T>(path: &Path, mut open: impl FnMut() -> Result<T>) -> Result<(T, Self)> {
        for _ in 0..3 {
            let before = id_of(path)?;
            let opened = open()?;
            let pin = pin(path);
            let id = id_of(path)?.ok_or_else(|| gone(path))?;
            if before.is_none_or(|before| before == id) {
                return Ok((opened, Self { path: path.to_owned(), id, _pin: pin }));
            }
        }
        Err(told(path, "is replaced all the time; start again when that is over"))
    }

    /// One more handle of it.
    pub(super) fn once_more<T>(&self, open: impl FnOnce() -> Result<T>) -> Result<T> {
        self.check()?;
        let opened = open()?;
        self.check().map(|()| opened)
    }

    /// An error, of kind `NoDatabase`, if the path does not lead there any more. What cannot be found out (no permission,
    /// a disk that does not answer) is not known to be gone: if that is trouble, SQLite has it as well, and who only asks
    /// must not make more of it.
    pub(super) fn check(&self) -> Result<()> {
        match id_of(&self.path) {
            Ok(Some(id)) if id != self.id => Err(told(
                &self.path,
                "was replaced by another file; start again to use that one, without a -wal and -shm that the old one has left",
            )),
            Ok(None) => Err(gone(&self.path)),
            Ok(Some(_)) => Ok(()),
            Err(error) => {
                tracing::debug!(%error, "not known");
                Ok(())
            }
        }
    }

    /// The same for the main database of a connection of the caller's: it is this file, and no other that is or was at
    /// some path.
    pub(super) fn check_main_of(&self, conn: &Connection) -> Result<()> {
        self.check()?;
        // No path is told of one that is not text.
        let is_it = conn.path().map_or(Ok(true), |path| id_of(Path::new(path)).map(|id| id == Some(self.id)))?;
        if is_it && !has_moved(conn) {
            return Ok(());
        }
        Err(told(&self.path, "is the queue's, and the main database of this connection is another file"))
    }
}

/// Whether the path of a connection's main database leads to another file by now.
#[expect(unsafe_code, reason = "SQLite is asked about the file that it has open")]
fn has_moved(conn: &Connection) -> bool {
    let mut moved: std::ffi::c_int = 0;
    // SAFETY: the connection is open as long as it is borrowed, and what is asked for is written to one int.
    let code = unsafe {
        ffi::sqlite3_file_control(conn.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_HAS_MOVED, (&raw mut moved).cast())
    };
    code == ffi::SQLITE_OK && moved != 0
}

/// Asked for while SQLite has the file open, so that it is the same one. Where there is no such handle, an inode that
/// is used again is the least of what could go wrong.
#[cfg(target_os = "linux")]
fn pin(path: &Path) -> Option<Arc<OwnedFd>> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok().map(Arc::new)
}

#[cfg(not(target_os = "linux"))]
fn pin(_: &Path) -> Option<Arc<OwnedFd>> {
    None
}

fn id_of(path: &Path) -> Result<Option<(u64, u64)>> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some((Metadata::dev(&found), Metadata::ino(&found)))),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(e) => {
            let text = format!("cannot tell whether {} is still the database that was opened: {e}", path.display());
            Err(Error::new(ErrorKind::Io, text).with_source(e))
        }
    }
}

fn gone(path: &Path) -> Error {
    told(path, "is no longer there; start again when it is back, or where it is now")
}

fn told(path: &Path, what: &str) -> Error {
    Error::new(ErrorKind::NoDatabase, format!("the database {} {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_until_another_is_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("some.db"), folder.path().join("other.db"));
        std::fs::write(&path, "1").unwrap();
        let ((), file) = OpenedFile::opening(&path, || Ok(())).unwrap();
        std::fs::write(&path, "its content is its own affair").unwrap();
        file.check().unwrap();
        std::fs::rename(&path, &other).unwrap();
        let error = file.check().unwrap_err();
        let expected = "some.db is no longer there; start again when it is back, or where it is now";
        assert!(error.kind() == ErrorKind::NoDatabase && error.to_string().ends_with(expected), "{error}");
        std::fs::write(&path, "1").unwrap();
        let error = file.check().unwrap_err();
        let expected = "some.db was replaced by another file; start again to use that one";
        assert!(error.kind() == ErrorKind::NoDatabase && error.to_string().contains(expected), "{error}");
        std::fs::rename(&other, &path).unwrap();
        file.check().unwrap();
    }

    #[test]
    fn what_takes_its_place_meanwhile_is_not_taken_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        std::fs::write(&path, "old").unwrap();
        let mut times = 0;
        let mut replaced_once = || {
            let opened = std::fs::File::open(&path)?;
            times += 1;
            if times == 1 {
                std::fs::write(folder.path().join("new"), "new")?;
                std::fs::rename(folder.path().join("new"), &path)?;
            }
            io::read_to_string(opened)
        };
        let (read, file) = OpenedFile::opening(&path, || Ok(replaced_once().unwrap())).unwrap();
        assert_eq!(read, "new");
        let opened_late = file.once_more(|| {
            std::fs::remove_file(&path).unwrap();
            Ok(())
        });
        assert_eq!(opened_late.unwrap_err().kind(), ErrorKind::NoDatabase);
    }

    /// Filesystems give an inode that is free to the next file.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_inode_is_not_used_again_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        std::fs::write(&path, "1").unwrap();
        let ((), file) = OpenedFile::opening(&path, || Ok(())).unwrap();
        for _ in 0..20 {
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, "1").unwrap();
            assert_eq!(file.check().unwrap_err().kind(), ErrorKind::NoDatabase);
        }
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_gone() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("folder");
        std::fs::create_dir(&at).unwrap();
        std::fs::write(at.join("some.db"), "1").unwrap();
        let ((), file) = OpenedFile::opening(&at.join("some.db"), || Ok(())).unwrap();
        std::fs::rename(&at, folder.path().join("away")).unwrap();
        // A link that leads to itself.
        std::os::unix::fs::symlink(&at, &at).unwrap();
        file.check().unwrap();
        std::fs::remove_file(&at).unwrap();
        std::fs::write(&at, "a file where the folder was").unwrap();
        assert_eq!(file.check().unwrap_err().kind(), ErrorKind::NoDatabase);
    }
}
