//! What is at a name, as the system describes it.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) dev: u64,
    pub(super) mode: u32,
    pub(super) links: u64,
    pub(super) stamp: Stamp,
}

/// What changes whenever a file's content is changed, except within one tick of
/// the clock. Kept as JSON beside a planned effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    pub(super) size: u64,
    /// Nanoseconds.
    pub(super) mtime: i64,
    /// Nanoseconds.
    pub(super) ctime: i64,
    pub(super) inode: u64,
}

impl Meta {
    pub(super) fn of(handle: impl AsFd) -> Result<Self, Errno> {
        rustix::fs::fstat(handle).map(Self::from)
    }

    /// Of a name in a folder; a symlink is described itself, not followed.
    pub(super) fn at(folder: impl AsFd, name: impl rustix::path::Arg) -> Result<Option<Self>, Errno> {
        match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Which file or folder this is, as long as somebody has it open.
    pub(super) fn id(&self) -> (u64, u64) {
        (self.dev, self.stamp.inode)
    }

    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// Who may read, write and run it. Set-uid and its kin belong to the old
    /// content and are not passed on.
    pub(super) fn permissions(&self) -> Mode {
        Mode::from_raw_mode(self.mode & 0o777)
    }
}

impl From<Stat> for Meta {
    #[allow(
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        clippy::unnecessary_cast,
        reason = "the types differ from platform to platform"
    )]
    fn from(stat: Stat) -> Self {
        let nanos = |secs: i64, nanos: i64| secs.saturating_mul(1_000_000_000).saturating_add(nanos);
        Self {
            dev: stat.st_dev as u64,
            mode: stat.st_mode as u32,
            links: stat.st_nlink as u64,
            stamp: Stamp {
                size: stat.st_size as u64,
                mtime: nanos(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
                ctime: nanos(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
                inode: stat.st_ino as u64,
            },
        }
    }
}

/// What a message calls something that is not a regular file.
pub(super) fn name_of(kind: FileType) -> &'static str {
    match kind {
        FileType::Symlink => "a symbolic link",
        FileType::Directory => "a folder",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::RegularFile => "a file",
        FileType::Unknown => "neither a file nor a folder",
    }
}

/// Whether files can be renamed from one folder to a name in another. The same
/// device is not enough: a bind mount shows one device at two places that
/// rename(2) keeps apart, and a single file can be a mount point too.
pub(super) fn same_mount(from: BorrowedFd<'_>, (to, device): (BorrowedFd<'_>, u64), name: &str) -> Result<bool, Errno> {
    if Meta::of(from)?.dev != device {
        return Ok(false);
    }
    // Unknown when the kernel is too old or nothing has that name; the rename will tell.
    let ours = mount_of(from, "");
    let same = |other: Option<u64>| other.is_none_or(|other| ours.is_none_or(|ours| ours == other));
    Ok(same(mount_of(to, "")) && same(mount_of(to, name)))
}

#[cfg(target_os = "linux")]
fn mount_of(folder: BorrowedFd<'_>, name: &str) -> Option<u64> {
    use rustix::fs::StatxFlags;
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
    let known = rustix::fs::statx(folder, name, flags, StatxFlags::MNT_ID).ok()?;
    (known.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(known.stx_mnt_id)
}

#[cfg(not(target_os = "linux"))]
fn mount_of(_folder: BorrowedFd<'_>, _name: &str) -> Option<u64> {
    None
}
