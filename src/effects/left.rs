//! Walking through what programs have left in the stage: folders in folders, as deep
//! as they like, with whatever rights.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use super::FolderId;
use super::error::FileError;
use super::meta::Meta;
use super::stage_own::{open_folder, open_left, own_again};
use crate::error::Result;

/// Something that is not a folder: the folder it is in, its name there, its path
/// and what it is.
pub(super) type Leftover<'l> = (&'l OwnedFd, &'l CStr, &'l str, &'l Meta);

/// A folder on the way down, and what is still to be looked at in it.
struct Level {
    name: CString,
    id: FolderId,
    names: Vec<CString>,
}

/// Shows everything below this folder that is not a folder itself; `path` is what
/// the folder is called. With `remove` folders are removed once they are empty, and
/// one that cannot be entered otherwise is made so first.
///
/// One handle is held at a time, and the way back up is checked: however deep it
/// goes, it costs neither handles nor stack.
pub(super) fn each_leftover(
    top: OwnedFd,
    path: &str,
    remove: bool,
    show: &mut dyn FnMut(Leftover<'_>) -> Result<()>,
) -> Result<()> {
    let os = |errno| FileError::os(path, "look through what is staged", errno);
    let mut folder = top;
    if remove {
        // If it cannot be, the first name that stays says so.
        let _ = own_again(&folder);
    }
    let mut levels = vec![level(&folder, CString::default()).map_err(os)?];
    while let Some(here) = levels.last_mut() {
        let Some(name) = here.names.pop() else {
            let done = levels.pop();
            let (Some(done), Some(parent)) = (done, levels.last()) else { break };
            folder = open_folder(&folder, c"..").map_err(os)?;
            if Meta::of(&folder).map_err(os)?.id() != parent.id {
                return Err(FileError::temporary(path, "was moved while it was looked through").into());
            }
            if remove {
                // Left in place when something is in it, or comes into it meanwhile.
                let _ = rustix::fs::unlinkat(&folder, &done.name, AtFlags::REMOVEDIR);
            }
            continue;
        };
        let Some(meta) = Meta::at(&folder, &*name).map_err(os)? else { continue };
        if meta.kind() == FileType::Directory {
            let entered = if remove { open_left(&folder, &*name) } else { open_folder(&folder, &*name) };
            let entered = entered.and_then(|inner| Ok((level(&inner, name.clone())?, inner)));
            match entered {
                Ok((level, inner)) => {
                    levels.push(level);
                    folder = inner;
                }
                Err(error) => tracing::debug!(path, %error, "a folder in the stage cannot be entered; it stays"),
            }
        } else {
            let way = levels.iter().skip(1).map(|level| level.name.as_c_str()).chain([&*name]);
            let whole = way.fold(path.to_owned(), |path, name| path + "/" + &name.to_string_lossy());
            show((&folder, &name, &whole, &meta))?;
        }
    }
    Ok(())
}

fn level(folder: &OwnedFd, name: CString) -> Result<Level, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder.as_fd())? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(Level { name, id: Meta::of(folder)?.id(), names })
}
