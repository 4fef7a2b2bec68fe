//! Looking at many files one after the other, as the reconciler does. Looks
//! only, and never leaves the root.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::Files;
use super::meta::{Meta, name_of};
use super::walk::LOOK;
use crate::json::hex;
use crate::store::FileStamp;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Absent,
    /// A regular file of this size.
    File {
        size: u64,
        stamp: FileStamp,
        /// Of its last change of any kind: with the rest, whether it is the same still.
        ctime: i64,
    },
    Folder,
    /// Something else.
    NotAFile(String),
    /// Something on the way is no folder, so it cannot be there.
    Blocked(String),
    /// It cannot be looked at.
    Unreadable(String),
}

/// Looks at files in order of their paths: the folder of the last one is kept.
pub(crate) struct Inspector<'f> {
    files: &'f Files,
    /// The folder of the last path and its handle.
    folder: Option<(String, Arc<OwnedFd>)>,
    buffer: Vec<u8>,
}

impl<'f> Inspector<'f> {
    pub(crate) fn new(files: &'f Files) -> Self {
        Self { files, folder: None, buffer: Vec::new() }
    }

    /// Folders may be swapped; what is kept is only for a moment.
    pub(crate) fn forget(&mut self) {
        self.folder = None;
    }

    pub(crate) fn look(&mut self, path: &str) -> Found {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if let Some((kept, folder)) = &self.folder
            && kept == parent
            && is_name(name)
        {
            return at(folder, name);
        }
        let spot = match self.files.walk(path, LOOK) {
            Ok(spot) => spot,
            Err(error) if error.is_permanent() => return Found::Blocked(error.message().to_owned()),
            Err(error) => return Found::Unreadable(error.message().to_owned()),
        };
        if !spot.reached {
            return Found::Absent;
        }
        let found = at(&spot.folder, spot.name);
        self.folder = Some((parent.to_owned(), spot.folder));
        found
    }

    /// sha256 of a file's content, and how it looked while it was read. `Err`: why
    /// it cannot be read.
    pub(crate) fn hash(&mut self, path: &str) -> Result<(String, Found), Found> {
        let spot = self.files.walk(path, LOOK).map_err(|e| Found::Unreadable(e.message().to_owned()))?;
        let (file, _) = match spot.open_file() {
            Ok(Some(opened)) => opened,
            Ok(None) => return Err(Found::Absent),
            Err(error) if error.is_permanent() => return Err(Found::NotAFile(error.message().to_owned())),
            Err(error) => return Err(Found::Unreadable(error.message().to_owned())),
        };
        let sha256 = self.digest(&file).map_err(|e| Found::Unreadable(format!("cannot read it: {e}")))?;
        let meta = Meta::of(&file).map_err(|e| Found::Unreadable(format!("cannot look at it: {e}")))?;
        Ok((sha256, file_of(&meta)))
    }

    fn digest(&mut self, mut file: &File) -> io::Result<String> {
        self.buffer.resize(128 << 10, 0);
        let mut hasher = Sha256::new();
        loop {
            match file.read(&mut self.buffer) {
                Ok(0) => return Ok(hex(&hasher.finalize())),
                Ok(count) => hasher.update(&self.buffer[..count]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

fn at(folder: &OwnedFd, name: &str) -> Found {
    match Meta::at(folder, name) {
        Ok(None) => Found::Absent,
        Ok(Some(meta)) if meta.kind() == FileType::RegularFile => file_of(&meta),
        Ok(Some(meta)) if meta.kind() == FileType::Directory => Found::Folder,
        Ok(Some(meta)) => Found::NotAFile(format!("is {}", name_of(meta.kind()))),
        Err(Errno::NOTDIR) => Found::Absent,
        Err(errno) => Found::Unreadable(format!("cannot look at it: {errno}")),
    }
}

fn file_of(meta: &Meta) -> Found {
    let stamp = FileStamp { mtime: meta.stamp.mtime, inode: meta.stamp.inode.cast_signed() };
    Found::File { size: meta.stamp.size, stamp, ctime: meta.stamp.ctime }
}

/// Recorded paths are judged by the walk; a name beside one that was walked to
/// only has to be a name.
fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
}
