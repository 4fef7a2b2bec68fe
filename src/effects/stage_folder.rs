//! A folder in the stage that a job's program writes into, and files it has left
//! there that become staged files.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{AtFlags, Dir, FileType, Mode, RenameFlags};
use rustix::io::Errno;

use super::error::FileError;
use super::meta::{Meta, name_of};
use super::sight::{copy_hashed, open_regular};
use super::stage::{Durability, Staged, is_plain, open_folder};
use super::walk::normal;
use super::{Act, Files};
use crate::store::Lease;

/// Folders in folders that are removed; deeper ones stay until this process is swept.
const DEPTH: usize = 64;

/// A folder of its own for one attempt. It goes, with what is left in it, when
/// this is dropped.
pub(crate) struct StageFolder<'f> {
    files: &'f Files,
    folder: OwnedFd,
    name: String,
    path: PathBuf,
}

impl Files {
    /// A new folder for this claim.
    pub(crate) fn stage_folder_for(&self, lease: &Lease) -> Result<StageFolder<'_>, FileError> {
        let name = format!("{}.{}.d", lease.id, lease.token);
        if !is_plain(&lease.id) || lease.id.contains('.') {
            return Err(FileError::target(&name, "a job's id with such characters cannot name a folder"));
        }
        let all = self.stage_folder()?;
        let os = |errno| FileError::os(&name, "make a folder in the stage", errno);
        self.about_to(Act::MakeFolder, &name).map_err(os)?;
        rustix::fs::mkdirat(all, &*name, Mode::from_raw_mode(0o700)).map_err(os)?;
        let folder = open_folder(all, &name).map_err(os)?;
        let path = self.state.join("stage").join(&self.stage.owner).join(&name);
        Ok(StageFolder { files: self, folder, name, path })
    }
}

impl StageFolder<'_> {
    /// Where it is.
    pub(crate) fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Makes a file in it a staged one. Whoever wrote it must be dead by now: it is
    /// not copied. `number` as in [`Files::stage`].
    pub(crate) fn adopt(&self, from: &str, lease: &Lease, number: usize) -> Result<Staged, FileError> {
        let path = normal(from)?;
        let os = |doing: &'static str| move |errno| FileError::os(from, doing, errno);
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let mut folder = self.folder.try_clone().map_err(|e| FileError::io(from, "open", &e))?;
        for part in folders.split('/').filter(|part| !part.is_empty()) {
            folder = open_folder(&folder, part).map_err(|errno| missing(from, errno))?;
        }
        // Looked at before it is opened, because opening a device can set it going.
        let found = Meta::at(&folder, name).map_err(os("look at it"))?.ok_or_else(|| missing(from, Errno::NOENT))?;
        let (file, meta) = match found.kind() {
            FileType::RegularFile => open_regular(&folder, name).map_err(|errno| missing(from, errno))?,
            kind => {
                return Err(FileError::target(from, format!("in the stage is {}; a file is needed", name_of(kind))));
            }
        };
        if meta.links != 1 {
            return Err(FileError::target(from, "in the stage has another name elsewhere; copy it instead"));
        }
        let (sha256, size) = copy_hashed(&file, &mut std::io::sink()).map_err(|e| FileError::io(from, "read", &e))?;
        self.files
            .about_to(Act::SyncFile, from)
            .and_then(|()| rustix::fs::fsync(&file))
            .map_err(os("sync the staged file"))?;
        let staged = format!("{}.{}.{number}", lease.id, lease.token);
        let stage = self.files.stage_folder()?;
        // Known before it is there: a sync that fails in between counts.
        self.files.stage.files().insert(staged.clone(), Durability::Making);
        let moved = self
            .files
            .about_to(Act::Stage, &staged)
            .and_then(|()| rustix::fs::renameat_with(&folder, name, stage, &*staged, RenameFlags::NOREPLACE));
        let mut known = self.files.stage.files();
        if let Err(errno) = moved {
            known.remove(&staged);
            return Err(os("stage")(errno));
        }
        known.entry(staged.clone()).and_modify(|known| {
            if *known == Durability::Making {
                *known = Durability::Open;
            }
        });
        Ok(Staged { stage: format!("{}/{staged}", self.files.stage.owner), sha256, size })
    }
}

impl Drop for StageFolder<'_> {
    fn drop(&mut self) {
        clear(&self.folder, DEPTH);
        if let Some(all) = self.files.stage.folder()
            && let Err(error) = rustix::fs::unlinkat(all, &*self.name, AtFlags::REMOVEDIR)
        {
            tracing::warn!(folder = self.name, %error, "a folder in the stage cannot be removed; it is swept later");
        }
    }
}

/// Removes what is in a folder, whatever it is. What stays is swept later.
fn clear(folder: &OwnedFd, depth: usize) {
    let Ok(entries) = Dir::read_from(folder.as_fd()) else { return };
    for entry in entries.flatten().filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b"..")) {
        let name = entry.file_name();
        if rustix::fs::unlinkat(folder, name, AtFlags::empty()) != Err(Errno::ISDIR) {
            continue;
        }
        // A program may have taken its own rights on it away.
        let _ = rustix::fs::chmodat(folder, name, Mode::from_raw_mode(0o700), AtFlags::empty());
        if depth > 0
            && let Ok(inner) =
                rustix::fs::openat(folder, name, super::FOLDER | rustix::fs::OFlags::NOFOLLOW, Mode::empty())
        {
            clear(&inner, depth - 1);
        }
        let _ = rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR);
    }
}

fn missing(from: &str, errno: Errno) -> FileError {
    match errno {
        Errno::NOENT => FileError::target(from, "is not in the stage folder, or was named before"),
        errno => FileError::os(from, "open in the stage folder", errno),
    }
}
