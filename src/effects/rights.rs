//! Who may do what with a file. A new file that replaces another takes its rights over, and never has more.

use std::fs::File;

use rustix::fs::{Gid, Mode, Uid, XattrFlags, fchmod, fchown};
use rustix::io::Errno;

/// Where Linux keeps a file's access list. The group bits of the mode are then the most that the list gives anybody.
const LIST: &str = "system.posix_acl_access";

#[derive(PartialEq, Eq)]
struct Rights {
    owner: u32,
    group: u32,
    mode: Mode,
    list: Option<Vec<u8>>,
}

/// Gives a new file the rights of the one that it replaces, as far as this process may, and says whether that changed
/// anything. Rights of a group that cannot be set, or of a list that cannot be copied, are left out.
pub(super) fn take_rights(new: &File, replaced: &File) -> Result<bool, Errno> {
    let (had, wanted) = (Rights::of(new)?, Rights::of(replaced)?);
    if had == wanted {
        return Ok(false);
    }
    match fchmod(new, Mode::RUSR | Mode::WUSR) {
        // Another user has staged it, and has given it what that user could.
        Err(Errno::PERM) if had.are_within(&wanted) => return Ok(false),
        closed => closed?,
    }
    let has_group = fchown(new, None, Some(Gid::from_raw(wanted.group))).is_ok();
    let list = wanted.list.as_deref().filter(|_| has_group);
    let copied = match list {
        list if list == had.list.as_deref() => Ok(()),
        Some(list) => rustix::fs::fsetxattr(new, LIST, list, XattrFlags::empty()),
        None => rustix::fs::fremovexattr(new, LIST),
    };
    let group_bits = if has_group && copied.is_ok() { Mode::RWXG } else { Mode::empty() };
    fchmod(new, wanted.mode & (Mode::RWXU | group_bits | Mode::RWXO))?;
    // Last, because who gives a file away may not change it any more. Only root may do that.
    let _ = fchown(new, Some(Uid::from_raw(wanted.owner)), None);
    Ok(true)
}

impl Rights {
    fn of(file: &File) -> Result<Self, Errno> {
        let found = rustix::fs::fstat(file)?;
        // Set-uid and its kin belong to the old content and are not passed on.
        let mode = Mode::from_raw_mode(found.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
        let mut list = Vec::with_capacity(64 << 10);
        let list = match rustix::fs::fgetxattr(file, LIST, rustix::buffer::spare_capacity(&mut list)) {
            Ok(_) => Some(list),
            Err(Errno::NODATA | Errno::OPNOTSUPP) => None,
            // Other systems have no such name.
            Err(_) if cfg!(not(target_os = "linux")) => None,
            Err(errno) => return Err(errno),
        };
        Ok(Self { owner: found.st_uid, group: found.st_gid, mode, list })
    }

    fn are_within(&self, other: &Self) -> bool {
        let same_group = self.group == other.group || !self.mode.intersects(Mode::RWXG);
        other.mode.contains(self.mode) && same_group && (self.list.is_none() || self.list == other.list)
    }
}
