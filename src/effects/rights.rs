//! Who may do what with a file. A new file that replaces another takes its rights over, and never has more.

use std::fs::File;

use rustix::fs::{Gid, Mode, Uid, XattrFlags, fchmod, fchown};
use rustix::io::Errno;

/// Where Linux keeps a file's access list. The group bits of the mode are then the most that the list gives anybody.
const LIST: &str = "system.posix_acl_access";

#[derive(PartialEq, Eq)]
pub(super) struct Rights {
    owner: u32,
    group: u32,
    mode: Mode,
    list: Option<Vec<u8>>,
}

impl Rights {
    pub(super) fn of(file: &File) -> Result<Self, Errno> {
        let found = rustix::fs::fstat(file)?;
        // Set-uid and its kin belong to the old content and are not passed on.
        let mode = Mode::from_raw_mode(found.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
        Ok(Self { owner: found.st_uid, group: found.st_gid, mode, list: list_of(file)? })
    }

    /// Gives a new file these rights, as far as this process may, and says whether that changed anything. Rights of a
    /// group that cannot be set, or of a list that cannot be copied, are left out.
    pub(super) fn give_to(&self, new: &File) -> Result<bool, Errno> {
        let had = Self::of(new)?;
        if had == *self {
            return Ok(false);
        }
        match fchmod(new, Mode::RUSR | Mode::WUSR) {
            // Another user has staged it, and has given it what that user could.
            Err(Errno::PERM) if had.are_within(self) => return Ok(false),
            closed => closed?,
        }
        let has_group = fchown(new, None, Some(Gid::from_raw(self.group))).is_ok();
        let list = self.list.as_deref().filter(|_| has_group);
        let has_list = set_list(new, list).is_ok();
        let group_bits = if has_group && has_list { Mode::RWXG } else { Mode::empty() };
        fchmod(new, self.mode & (Mode::RWXU | group_bits | Mode::RWXO))?;
        // Last, because who gives a file away may not change it any more. Only root may do that.
        let _ = fchown(new, Some(Uid::from_raw(self.owner)), None);
        Ok(true)
    }

    fn are_within(&self, other: &Self) -> bool {
        let same_group = self.group == other.group || !self.mode.intersects(Mode::RWXG);
        other.mode.contains(self.mode) && same_group && (self.list.is_none() || self.list == other.list)
    }
}

#[cfg(target_os = "linux")]
fn list_of(file: &File) -> Result<Option<Vec<u8>>, Errno> {
    let mut list = Vec::with_capacity(64 << 10);
    match rustix::fs::fgetxattr(file, LIST, rustix::buffer::spare_capacity(&mut list)) {
        Ok(_) => Ok(Some(list)),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(errno) => Err(errno),
    }
}

#[cfg(target_os = "linux")]
fn set_list(file: &File, list: Option<&[u8]>) -> Result<(), Errno> {
    let set = match list {
        Some(list) => return rustix::fs::fsetxattr(file, LIST, list, XattrFlags::empty()),
        None => rustix::fs::fremovexattr(file, LIST),
    };
    if let Err(Errno::NODATA | Errno::OPNOTSUPP) = set { Ok(()) } else { set }
}

/// Lists of other systems are not copied.
#[cfg(not(target_os = "linux"))]
fn list_of(_file: &File) -> Result<Option<Vec<u8>>, Errno> {
    Ok(None)
}

#[cfg(not(target_os = "linux"))]
fn set_list(_file: &File, _list: Option<&[u8]>) -> Result<(), Errno> {
    Ok(())
}
