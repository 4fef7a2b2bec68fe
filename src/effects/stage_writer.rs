//! Writing one staged file.

use std::fs::File;
use std::io::{self, Write};

use sha2::{Digest as _, Sha256};

use super::error::FileError;
use super::rights::take_rights;
use super::stage::{Staged, lost, remove};
use super::{Act, Files};
use crate::json::hex;

/// A staged file that is being written; hashed as it is. Gone again unless it is
/// finished.
pub struct StageWriter<'f> {
    files: &'f Files,
    file: File,
    name: String,
    hasher: Sha256,
    size: u64,
    failed: Option<FileError>,
    done: bool,
}

impl<'f> StageWriter<'f> {
    pub(super) fn new(files: &'f Files, file: File, name: String) -> Self {
        Self { files, file, name, hasher: Sha256::new(), size: 0, failed: None, done: false }
    }

    /// Takes the rights of the file that it will replace.
    pub(super) fn take_rights(&self, replaced: &File) -> Result<(), FileError> {
        take_rights(&self.file, replaced).map(drop).map_err(|e| FileError::os(&self.name, "prepare the staged file", e))
    }

    /// Syncs the content. After a failure the file is gone; nothing is synced a
    /// second time.
    pub fn finish(mut self) -> Result<Staged, FileError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.files
            .about_to(Act::SyncFile, &self.name)
            .and_then(|()| rustix::fs::fsync(&self.file))
            .map_err(|e| FileError::os(&self.name, "sync the staged file", e))?;
        if self.files.stage.is_lost(&self.name) {
            return Err(lost(&self.name));
        }
        self.done = true;
        let hasher = std::mem::take(&mut self.hasher);
        let stage = format!("{}/{}", self.files.stage.owner, self.name);
        Ok(Staged { stage, sha256: hex(&hasher.finalize()), size: self.size })
    }
}

impl Write for StageWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes).inspect_err(|e| {
            if e.kind() != io::ErrorKind::Interrupted {
                self.failed = Some(FileError::io(&self.name, "write the staged file", e));
            }
        })?;
        self.hasher.update(&bytes[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for StageWriter<'_> {
    fn drop(&mut self) {
        if !self.done
            && let Some(folder) = self.files.stage.folder()
        {
            self.files.stage.files().remove(&self.name);
            remove(&folder, &self.name);
        }
    }
}
