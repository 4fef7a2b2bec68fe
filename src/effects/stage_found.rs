//! Staged files by the names they are recorded under, this process's own and others'.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Files;
use super::meta::Meta;
use super::sight::open_regular;
use super::stage::is_plain;
use super::stage_own::{open_folder, open_left, with_rights};

/// A staged file, found and found in order.
pub(super) struct StagedFile<'s> {
    pub(super) folder: Arc<OwnedFd>,
    pub(super) name: &'s str,
    pub(super) file: File,
    pub(super) meta: Meta,
}

impl Files {
    /// Opens a staged file of any process by its recorded name: the folder it is
    /// in, its name there, and the file. `None` when it is gone or is not what
    /// was recorded.
    pub(super) fn open_staged<'s>(&self, stage: &'s str, size: u64) -> Result<Option<StagedFile<'s>>, Errno> {
        let Some((folders, name)) = split(stage) else { return Ok(None) };
        gone_is_none(self.folder_of_staged(folders).and_then(|folder| {
            let (file, meta) = with_rights(&folder, |folder| open_regular(folder, name))?;
            Ok(is_whole(&meta, size).then_some(StagedFile { folder, name, file, meta }))
        }))
    }

    /// Whether `open_staged` would find it. Asked under the write lock, so by as few calls as can be.
    pub(super) fn is_staged(&self, stage: &str, size: u64) -> Result<bool, Errno> {
        let Some((folders, name)) = split(stage) else { return Ok(false) };
        let found = gone_is_none(
            self.folder_of_staged(folders).and_then(|folder| with_rights(&folder, |folder| Meta::at(folder, name))),
        )?;
        Ok(found.is_some_and(|meta| is_whole(&meta, size)))
    }

    /// This process's own folder is held; those of others are looked up, whatever rights their
    /// programs have left on them.
    fn folder_of_staged(&self, folders: &str) -> Result<Arc<OwnedFd>, Errno> {
        if let Some(own) = self.stage.folder().filter(|_| folders == self.stage.owner) {
            return Ok(own);
        }
        let mut folder = open_folder(self.state_folder.as_ref().ok_or(Errno::NOENT)?, "stage")?;
        for part in folders.split('/') {
            folder = open_left(&folder, part)?;
        }
        Ok(Arc::new(folder))
    }
}

/// The folders and the name of a staged file, if they are such as jobq gives.
fn split(stage: &str) -> Option<(&str, &str)> {
    stage.rsplit_once('/').filter(|_| stage.split('/').all(is_plain))
}

/// As it was left: one regular file, with no other name, of this size.
fn is_whole(meta: &Meta, size: u64) -> bool {
    meta.kind() == FileType::RegularFile && meta.links == 1 && meta.stamp.size == size
}

fn gone_is_none<T>(found: Result<Option<T>, Errno>) -> Result<Option<T>, Errno> {
    match found {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => Ok(None),
        answer => answer,
    }
}
