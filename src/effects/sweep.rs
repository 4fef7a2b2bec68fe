//! What dead processes left in the stage.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

use super::FOLDER;
use super::error::FileError;
use super::left::{Leftover, each_leftover};
use super::stage_own::{open_folder, open_left};
use crate::error::Result;
use crate::liveness;

type IsPlanned<'a> = &'a mut dyn FnMut(&str, &str) -> Result<bool>;

/// What dead owners have staged and nobody has planned to use.
#[derive(Default)]
pub(crate) struct Litter {
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    /// One of the owners.
    pub(crate) owner: Option<String>,
}

/// Removes what dead owners have staged and nobody has planned to use, and their
/// folders once they are empty. `is_planned` is asked with a job's id and the
/// name of a staged file, relative to the stage. Folders of the living, and of
/// `own`, are left alone. Returns how many files went.
pub fn sweep_stage(state: &Path, own: &str, is_planned: IsPlanned<'_>) -> Result<usize> {
    Sweep { is_planned, remove: true, litter: Litter::default() }.run(state, own).map(|litter| litter.files)
}

/// What [`sweep_stage`] would remove. Changes nothing.
pub(crate) fn stage_litter(state: &Path, is_planned: IsPlanned<'_>) -> Result<Litter> {
    Sweep { is_planned, remove: false, litter: Litter::default() }.run(state, "")
}

struct Sweep<'a> {
    is_planned: IsPlanned<'a>,
    /// Or only counted.
    remove: bool,
    litter: Litter,
}

impl Sweep<'_> {
    fn run(mut self, state: &Path, own: &str) -> Result<Litter> {
        let path = state.join("stage");
        let os = |errno| FileError::os(&path.to_string_lossy(), "sweep", errno);
        let folders = match rustix::fs::openat(CWD, &path, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(folders) => folders,
            Err(Errno::NOENT) => return Ok(self.litter),
            Err(errno) => return Err(os(errno).into()),
        };
        for owner in names(&folders).map_err(os)? {
            if owner == own || is_alive(&owner, state) {
                continue;
            }
            let opened = if self.remove { open_left(&folders, &*owner) } else { open_folder(&folders, &*owner) };
            let folder = match opened {
                Ok(folder) => folder,
                // Not a folder, so not an owner's; or swept by another.
                Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT) => continue,
                Err(errno) => return Err(os(errno).into()),
            };
            let before = self.litter.files;
            let remove = self.remove;
            each_leftover(folder, &owner, remove, &mut |leftover| self.leftover(leftover))?;
            if self.litter.files > before && self.litter.owner.is_none() {
                self.litter.owner = Some(owner.clone());
            }
            self.remove_empty(&folders, &owner);
        }
        Ok(self.litter)
    }

    fn leftover(&mut self, (folder, name, path, meta): Leftover<'_>) -> Result<()> {
        // Below the owner's folder, names begin with the job's id.
        let job = path.split('/').nth(1).and_then(|name| name.split('.').next()).unwrap_or_default();
        if (self.is_planned)(job, path)? {
            return Ok(());
        }
        if self.remove {
            match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
                Ok(()) => {}
                Err(Errno::NOENT) => return Ok(()),
                Err(errno) => return Err(FileError::os(path, "sweep", errno).into()),
            }
        }
        self.litter.files += 1;
        self.litter.bytes += meta.stamp.size;
        Ok(())
    }

    /// Left in place when something is in it, or comes into it meanwhile.
    fn remove_empty(&self, folder: &OwnedFd, name: &str) {
        if self.remove {
            let _ = rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR);
        }
    }
}

/// An owner that cannot be judged is left alone.
fn is_alive(owner: &str, state: &Path) -> bool {
    liveness::holds_lock(owner, &state.join("owners")).unwrap_or_else(|error| {
        tracing::warn!(owner, %error, "cannot judge an owner; what it has staged stays");
        true
    })
}

/// Names that are no text are nobody's here.
fn names(folder: &OwnedFd) -> Result<Vec<String>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder.as_fd())? {
        if let Ok(name) = entry?.file_name().to_str()
            && !matches!(name, "." | "..")
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}
