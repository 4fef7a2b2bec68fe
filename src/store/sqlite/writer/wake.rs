//! Telling workers of other processes that something has changed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};

/// The file they watch. Opening it for writing and closing it is an event for them and
/// changes nothing on the disk. From the handle of its folder: walking a whole path takes
/// several times as long, and a lone caller waits for it.
pub(super) struct Wake {
    folder: File,
    name: OsString,
}

impl Wake {
    /// None if there is no such folder: others look by themselves, so that costs time only.
    pub(super) fn at(path: &Path) -> Option<Self> {
        let (folder, name) = (path.parent()?, path.file_name().map(OsStr::to_owned)?);
        let folder = File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
        folder.inspect_err(|error| untold(path, error)).ok().map(|folder| Self { folder, name })
    }

    pub(super) fn others(&self) {
        // Something else in its place, such as a pipe that nobody reads, must not keep a caller from its answer.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        if let Err(error) = openat(&self.folder, &self.name, flags, Mode::from_raw_mode(0o666)) {
            untold(Path::new(&self.name), &error.into());
        }
    }
}

fn untold(path: &Path, error: &std::io::Error) {
    tracing::debug!(path = %path.display(), %error, "cannot wake other processes");
}
