//! From the root to a name, one folder at a time, each from the handle of the
//! one before. A folder that is swapped for a symbolic link meanwhile is either
//! the folder it was or an error; it never leads out.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::database::Database;
use super::error::{FileError, shown};
use super::meta::{Meta, name_of};
use super::{Act, FOLDER, Files, FolderId};

/// Where a path leads: the last name, and the folder it is in.
pub(super) struct Spot<'p> {
    pub(super) path: &'p str,
    pub(super) name: &'p str,
    pub(super) folder: Arc<OwnedFd>,
    pub(super) folder_id: FolderId,
    /// Where the folder is, for messages.
    folder_path: &'p str,
    /// False when a folder on the way is missing; `folder` is then the last
    /// that is there.
    pub(super) reached: bool,
    /// What is out of reach, wherever this leads.
    pub(super) database: Option<&'p Database>,
}

/// A folder's handle, and which folder it is.
type Folder = (Arc<OwnedFd>, FolderId);

/// How to walk.
#[derive(Clone, Copy, Default)]
pub(super) struct Walk {
    /// Make folders that are missing.
    pub(super) make: bool,
    /// An earlier run may have made folders on this way and not lived to sync
    /// them: all of them are to be synced.
    pub(super) doubt: bool,
}

/// Only looks.
pub(super) const LOOK: Walk = Walk { make: false, doubt: false };

/// The one spelling of a path, or why it is none.
pub(super) fn normal(path: &str) -> Result<String, FileError> {
    crate::normalise_path(path).map_err(|error| {
        // "path: contains …": the path itself says more than its field's name.
        let why = error.message().strip_prefix("path: ").unwrap_or(error.message()).to_owned();
        FileError::target(path, format!("the path {why}"))
    })
}

impl Files {
    /// Walks to a normalised path. Recorded paths are judged again: others than
    /// jobq can write into the database.
    pub(super) fn walk<'p>(&'p self, path: &'p str, walk: Walk) -> Result<Spot<'p>, FileError> {
        if normal(path)? != path {
            return Err(FileError::target(path, "the path is not in its one spelling"));
        }
        let (folder, folder_id) = (Arc::clone(&self.root_folder), self.root_id);
        let database = self.database.as_ref();
        let mut spot = Spot { path, name: path, folder, folder_id, folder_path: ".", reached: true, database };
        while let Some((part, rest)) = spot.name.split_once('/') {
            let here = &path[..path.len() - rest.len() - 1];
            spot.admit(part)?;
            let mut new = false;
            let (folder, folder_id) = match self.enter(spot.folder.as_fd(), part, here, walk.make.then_some(&mut new)) {
                Ok(Some(entered)) => entered,
                Ok(None) => {
                    spot.reached = false;
                    return Ok(spot);
                }
                Err(error) => {
                    if new {
                        self.remember(spot);
                    }
                    return Err(error.within(path, here));
                }
            };
            let next = Spot { path, name: rest, folder, folder_id, folder_path: here, reached: true, database };
            let left = std::mem::replace(&mut spot, next);
            if new || walk.doubt {
                self.remember(left);
            }
        }
        spot.admit(spot.name)?;
        Ok(spot)
    }

    /// Opens one folder, `None` when it is missing. With `new` a missing one is
    /// made, and that is noted there.
    fn enter(
        &self,
        from: BorrowedFd<'_>,
        part: &str,
        here: &str,
        new: Option<&mut bool>,
    ) -> Result<Option<Folder>, FileError> {
        let open = || rustix::fs::openat(from, part, FOLDER | OFlags::NOFOLLOW, Mode::empty());
        let mut opened = open();
        if opened.as_ref().err() == Some(&Errno::NOENT) {
            let Some(new) = new else { return Ok(None) };
            let mode = Mode::from_raw_mode(0o777);
            match self.about_to(Act::MakeFolder, here).and_then(|()| rustix::fs::mkdirat(from, part, mode)) {
                // Somebody else's folder is as good, and its entry as new.
                Ok(()) | Err(Errno::EXIST) => *new = true,
                Err(errno) => return Err(FileError::os(here, "make the folder", errno)),
            }
            opened = open();
        }
        let folder = opened.map_err(|errno| not_entered(from, part, here, errno))?;
        self.admissible(folder, here).map(Some)
    }

    /// jobq's own folder is known by what it is, not by its name: not every
    /// filesystem has one spelling for a name, and the queue may be elsewhere.
    fn admissible(&self, folder: OwnedFd, here: &str) -> Result<Folder, FileError> {
        let id = Meta::of(&folder).map_err(|e| FileError::os(here, "look at the folder", e))?.id();
        if self.off_limits == Some(id) {
            return Err(FileError::target(here, "this is jobq's own folder, which no job may touch"));
        }
        Ok((Arc::new(folder), id))
    }

    /// The folder of this spot is to be synced before the next COMMIT.
    pub(super) fn remember(&self, spot: Spot<'_>) {
        self.touched.remember(self, spot.folder, spot.folder_id, spot.folder_path);
    }
}

impl Spot<'_> {
    /// Refuses a name in this spot's folder that is the database's.
    fn admit(&self, name: &str) -> Result<(), FileError> {
        self.database.map_or(Ok(()), |database| database.admit_name(self.folder_id, name, self.path))
    }

    /// Refuses a file that is the database's, by whatever name it was found.
    pub(super) fn admit_file(&self, meta: &Meta) -> Result<(), FileError> {
        self.database.map_or(Ok(()), |database| database.admit(meta, self.path))
    }
}

/// Says what is in the way. Only the words depend on this second look.
fn not_entered(from: BorrowedFd<'_>, part: &str, here: &str, errno: Errno) -> FileError {
    match Meta::at(from, part) {
        Ok(Some(meta)) if meta.kind() != FileType::Directory => {
            FileError::target(here, format!("is {}; a folder is needed here", name_of(meta.kind())))
        }
        _ => FileError::os(here, "open the folder", errno),
    }
}

impl FileError {
    /// Names the whole path too, when only a part of it is the trouble.
    fn within(self, path: &str, here: &str) -> Self {
        if path == here { self } else { self.prefixed(&format!("{}: ", shown(path))) }
    }
}
