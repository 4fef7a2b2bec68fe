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
/// anything. If the group or the list cannot be set, their users become others: these get only what all of them had.
pub(super) fn take_rights(new: &File, replaced: &File) -> Result<bool, Errno> {
    let (had, wanted) = (Rights::of(new)?, Rights::of(replaced)?);
    if had == wanted {
        return Ok(false);
    }
    fchmod(new, Mode::RUSR | Mode::WUSR)?;
    let has_group = fchown(new, None, Some(Gid::from_raw(wanted.group))).is_ok();
    let list = wanted.list.as_deref().filter(|_| has_group);
    let copied = match list {
        list if list == had.list.as_deref() => Ok(()),
        Some(list) => rustix::fs::fsetxattr(new, LIST, list, XattrFlags::empty()),
        None => rustix::fs::fremovexattr(new, LIST),
    };
    let group_as_others = Mode::from_raw_mode(wanted.mode.as_raw_mode() >> 3);
    let kept = match &wanted.list {
        _ if has_group && copied.is_ok() => Mode::RWXU | Mode::RWXG | Mode::RWXO,
        Some(_) => Mode::RWXU,
        None => Mode::RWXU | (Mode::RWXO & group_as_others),
    };
    fchmod(new, wanted.mode & kept)?;
    // Last, because the process may not change a file that it has given away. Only root may give it away.
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
        // Nobody else could change the owner, nor the rights of a file that another user has staged.
        let owner = if rustix::process::geteuid().is_root() { found.st_uid } else { 0 };
        Ok(Self { owner, group: found.st_gid, mode, list })
    }
}
