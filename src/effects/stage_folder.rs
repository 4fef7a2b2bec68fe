//! A folder in the stage that a job's program writes into, and files it has left
//! there that become staged files.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, Mode, RenameFlags};
use rustix::io::Errno;

use super::error::FileError;
use super::left::each_leftover;
use super::meta::{Meta, name_of};
use super::sight::{copy_hashed, open_regular};
use super::stage::{Durability, Staged, is_plain};
use super::stage_own::{open_folder, open_left, own_again, with_rights};
use super::walk::normal;
use super::{Act, Files};
use crate::store::Lease;

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
        let folder = self.make_in_stage((&name, "make a folder in the stage"), |all| {
            self.about_to(Act::MakeFolder, &name)?;
            rustix::fs::mkdirat(all, &*name, Mode::RWXU)?;
            open_folder(all, &*name)
        })?;
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
        // The program may have taken its own rights on it away.
        own_again(&folder).map_err(os("open the stage folder"))?;
        for part in folders.split('/').filter(|part| !part.is_empty()) {
            folder = open_left(&folder, part).map_err(|errno| missing(from, errno))?;
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
        // Rights of the worker's are not for a program to lend to whoever runs the file.
        if meta.mode & 0o7000 != 0 {
            rustix::fs::fchmod(&file, meta.permissions()).map_err(os("take rights from"))?;
        }
        let (sha256, size) = copy_hashed(&file, &mut std::io::sink()).map_err(|e| FileError::io(from, "read", &e))?;
        self.files
            .about_to(Act::SyncFile, from)
            .and_then(|()| rustix::fs::fsync(&file))
            .map_err(os("sync the staged file"))?;
        let staged = format!("{}.{}.{number}", lease.id, lease.token);
        let moved = self.files.make_in_stage((from, "stage"), |stage| {
            // Known before it is there: a sync that fails in between counts.
            self.files.stage.files().insert(staged.clone(), Durability::Making);
            self.files.about_to(Act::Stage, &staged)?;
            rustix::fs::renameat_with(&folder, name, stage, &*staged, RenameFlags::NOREPLACE)
        });
        if let Err(error) = moved {
            self.files.stage.files().remove(&staged);
            return Err(error);
        }
        self.files.stage.is_made(&staged);
        Ok(Staged { stage: format!("{}/{staged}", self.files.stage.owner), sha256, size })
    }
}

impl Drop for StageFolder<'_> {
    fn drop(&mut self) {
        let emptied =
            self.folder.try_clone().map_err(|e| FileError::io(&self.name, "open", &e).into()).and_then(|folder| {
                each_leftover(folder, &self.name, true, &mut |(folder, name, ..)| {
                    let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
                    Ok(())
                })
            });
        if let Err(error) = emptied {
            tracing::debug!(folder = self.name, %error, "a folder in the stage cannot be emptied");
        }
        let Some(all) = self.files.stage.folder() else { return };
        match with_rights(&all, |all| rustix::fs::unlinkat(all, &*self.name, AtFlags::REMOVEDIR)) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => {
                tracing::warn!(folder = self.name, %error, "a folder in the stage cannot be removed; it is swept later");
            }
        }
    }
}

fn missing(from: &str, errno: Errno) -> FileError {
    match errno {
        Errno::NOENT => FileError::target(from, "is not in the stage folder, or was named before"),
        errno => FileError::os(from, "open in the stage folder", errno),
    }
}
