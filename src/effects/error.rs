//! Why something cannot be done with a file.

use std::fmt;

use rustix::io::Errno;

use crate::error::{Error, ErrorKind, printable};

/// Why something cannot be done with a file. The message names the path, says
/// what is there and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The target will not do, now or later.
    Target,
    /// The disk is not as it was expected to be.
    Conflict {
        permanent: bool,
    },
    DiskFull,
    Temporary,
}

impl FileError {
    /// The target itself is wrong: a symlink, a device, another filesystem.
    pub(super) fn target(path: &str, why: impl fmt::Display) -> Self {
        Self { kind: Kind::Target, message: format!("{}: {why}", shown(path)) }
    }

    /// The disk does not hold what the caller said it would.
    pub(super) fn conflict(path: &str, why: impl fmt::Display, permanent: bool) -> Self {
        Self { kind: Kind::Conflict { permanent }, message: format!("{}: {why}", shown(path)) }
    }

    /// May be better the next time.
    pub(super) fn temporary(path: &str, why: impl fmt::Display) -> Self {
        Self { kind: Kind::Temporary, message: format!("{}: {why}", shown(path)) }
    }

    /// What the system said while `doing` something with a path.
    pub(super) fn os(path: &str, doing: &str, errno: Errno) -> Self {
        let kind = match errno {
            Errno::LOOP | Errno::NOTDIR | Errno::ISDIR | Errno::NAMETOOLONG => Kind::Target,
            Errno::XDEV | Errno::NXIO | Errno::ILSEQ | Errno::INVAL => Kind::Target,
            Errno::NOSPC | Errno::DQUOT => Kind::DiskFull,
            _ => Kind::Temporary,
        };
        let hint = match errno {
            Errno::LOOP => "; only files reached without symbolic links are touched",
            Errno::NAMETOOLONG => "; give it a shorter name",
            Errno::XDEV => {
                "; the target is on another filesystem than .jobq, where files cannot be moved to in one step"
            }
            Errno::NOSPC | Errno::DQUOT => "; free some room",
            Errno::ACCESS | Errno::PERM => "; check who may write there",
            Errno::ROFS => "; make it writable",
            Errno::MFILE | Errno::NFILE => "; allow more open files",
            _ => "",
        };
        Self { kind, message: format!("{}: cannot {doing}: {errno}{hint}", shown(path)) }
    }

    /// The same, from the standard library.
    pub(super) fn io(path: &str, doing: &str, error: &std::io::Error) -> Self {
        Self::os(path, doing, Errno::from_io_error(error).unwrap_or(Errno::IO))
    }

    pub(super) fn prefixed(mut self, text: &str) -> Self {
        self.message.insert_str(0, text);
        self
    }

    /// What happened, to which path, and what to do.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// A word for programs: `bad_target`, `conflict`, `disk_full` or `file_error`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            Kind::Target => "bad_target",
            Kind::Conflict { .. } => "conflict",
            Kind::DiskFull => "disk_full",
            Kind::Temporary => "file_error",
        }
    }

    /// Trying again does not help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        matches!(self.kind, Kind::Target | Kind::Conflict { permanent: true })
    }

    /// There is no room; it may work when there is.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        self.kind == Kind::DiskFull
    }

    /// The disk holds something else than the caller expected.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self.kind, Kind::Conflict { .. })
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FileError {}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        let kind = match error.kind {
            Kind::Target => ErrorKind::Invalid,
            Kind::Conflict { .. } => ErrorKind::Conflict,
            Kind::DiskFull => ErrorKind::DiskFull,
            Kind::Temporary => ErrorKind::Io,
        };
        Self::new(kind, error.message)
    }
}

/// A path as messages have it: fit for a terminal, and not a screenful.
pub(super) fn shown(path: &str) -> String {
    const ENDS: usize = 90;
    let path = printable(path);
    let count = path.chars().count();
    if count <= 2 * ENDS {
        return path;
    }
    let head: String = path.chars().take(ENDS).collect();
    let tail: String = path.chars().skip(count - ENDS).collect();
    format!("{head}…{tail}")
}
