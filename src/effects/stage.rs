//! Staged files: new content on its way to its place.
//!
//! They are in `<state>/stage/<owner>/`, named `<job>.<token>.<number>`: every
//! process has a folder of its own, which it can sync without waiting for others
//! and which others sweep when it is dead.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::error::FileError;
use super::stage_own::{OwnFolder, with_rights};
use super::stage_sync::Rounds;
use super::stage_writer::StageWriter;
use super::{Act, Files};
use crate::store::Lease;

/// A staged file, whole and synced.
///
/// ```
/// use std::io::Write as _;
/// use jobq::{Context, HandlerError, Outcome};
/// fn lines(ctx: &Context, count: u32) -> Result<Outcome<u64>, HandlerError> {
///     let mut writer = ctx.stage_writer()?;
///     for number in 0..count {
///         writeln!(writer, "{number}")?;
///     }
///     let staged = writer.finish()?;
///     Ok(Outcome::new(staged.size).put("numbers.txt", staged))
/// }
/// # let _ = lines;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staged {
    /// Its name, relative to `<state>/stage`.
    pub stage: String,
    /// sha256 of its content.
    pub sha256: String,
    /// Its size in bytes.
    pub size: u64,
}

pub(super) struct Stage {
    pub(super) owner: String,
    pub(super) own: OwnFolder,
    files: Mutex<BTreeMap<String, Durability>>,
    pub(super) rounds: Rounds,
}

/// How sure it is that a staged file's name outlasts a power cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// Its name is about to be made.
    Making,
    /// Its name is there and not synced yet.
    Open,
    /// A sync that began after it was there has succeeded.
    Synced,
    /// It was there when a sync failed. A later success would prove nothing.
    Lost,
}

impl Stage {
    pub(super) fn new(owner: &str) -> Self {
        Self { owner: owner.to_owned(), own: OwnFolder::default(), files: Mutex::default(), rounds: Rounds::default() }
    }

    pub(super) fn files(&self) -> MutexGuard<'_, BTreeMap<String, Durability>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder, if it has been made.
    pub(super) fn folder(&self) -> Option<Arc<OwnedFd>> {
        self.own.get()
    }

    /// The name of a staged file in this process's folder, if it is there.
    pub(super) fn own_name<'s>(&self, stage: &'s str) -> Option<&'s str> {
        stage.strip_prefix(&self.owner)?.strip_prefix('/')
    }

    /// A name is there that was about to be made.
    pub(super) fn is_made(&self, name: &str) {
        if let Some(known) = self.files().get_mut(name).filter(|known| **known == Durability::Making) {
            *known = Durability::Open;
        }
    }

    pub(super) fn is_lost(&self, name: &str) -> bool {
        self.files().get(name) == Some(&Durability::Lost)
    }
}

impl Files {
    /// A new staged file for this claim; `number` counts the files of one job.
    pub fn stage(&self, lease: &Lease, number: usize) -> Result<StageWriter<'_>, FileError> {
        self.stage_as(lease, &number.to_string())
    }

    /// A staged file with this content.
    pub fn stage_bytes(&self, lease: &Lease, number: usize, content: &[u8]) -> Result<Staged, FileError> {
        let mut writer = self.stage(lease, number)?;
        // A failed write is told by `finish`, with the file's name.
        let _ = writer.write_all(content);
        writer.finish()
    }

    pub(super) fn stage_as(&self, lease: &Lease, number: &str) -> Result<StageWriter<'_>, FileError> {
        let name = format!("{}.{}.{number}", lease.id, lease.token);
        if !is_plain(&lease.id) || lease.id.contains('.') {
            return Err(FileError::target(&name, "a job's id with such characters cannot name a staged file"));
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let stale = self.stage.files().get(&name).copied();
        let opened = self.make_in_stage((&name, "make a staged file"), |folder| {
            // Known before it is there: a sync that fails in between counts.
            self.stage.files().insert(name.clone(), Durability::Making);
            self.about_to(Act::Stage, &name)?;
            // As for any new file: the umask says who may read it.
            rustix::fs::openat(folder, &*name, flags, Mode::from_raw_mode(0o666))
        });
        match opened {
            Ok(file) => {
                self.stage.is_made(&name);
                Ok(StageWriter::new(self, file.into(), name))
            }
            Err(error) => {
                match stale {
                    Some(stale) => self.stage.files().insert(name, stale),
                    None => self.stage.files().remove(&name),
                };
                Err(error)
            }
        }
    }

    /// A staged file whose name a failed sync has left in doubt must not be relied on.
    pub(super) fn trust(&self, staged: &Staged) -> Result<(), FileError> {
        match self.stage.own_name(&staged.stage) {
            Some(name) if self.stage.is_lost(name) => Err(lost(name)),
            _ => Ok(()),
        }
    }

    /// A staged file has gone to its place.
    pub(super) fn used(&self, stage: &str) {
        if let Some((owner, name)) = stage.split_once('/')
            && owner == self.stage.owner
        {
            self.stage.files().remove(name);
        }
    }

    /// A staged file of this process is of no use after all.
    pub(super) fn forget(&self, stage: &str) {
        self.used(stage);
        if let (Some(folder), Some((_, name))) = (self.stage.folder(), stage.split_once('/')) {
            remove(&folder, name);
        }
    }

    /// Removes a staged file of this process that is of no use after all.
    pub fn unstage(&self, staged: &Staged) {
        let (Some(folder), Some(name)) = (self.stage.folder(), self.stage.own_name(&staged.stage)) else { return };
        // One that has gone to its place is not known any more.
        let known = self.stage.files().remove(name);
        if known.is_some() {
            remove(&folder, name);
        }
    }

    /// Removes what this process has staged for this claim, or for an earlier
    /// one of the same job. To be called when the job has completed, or when the
    /// attempt came to nothing before it was decided. Not for a job that is
    /// decided and unfinished or has failed by conflict: whoever applies it next
    /// needs these files.
    pub fn discard(&self, lease: &Lease) {
        let Some(folder) = self.stage.folder() else { return };
        let mut files = self.stage.files();
        let prefix = format!("{}.", lease.id);
        let token_of = |name: &str| name[prefix.len()..].split('.').next().and_then(|token| token.parse::<i64>().ok());
        let names: Vec<String> = files
            .range(prefix.clone()..)
            .map(|(name, _)| name.clone())
            .take_while(|name| name.starts_with(&prefix))
            .filter(|name| token_of(name).is_some_and(|token| token <= lease.token))
            .collect();
        for name in names {
            files.remove(&name);
            remove(&folder, &name);
        }
    }
}

/// What cannot be removed is swept when this process is dead.
pub(super) fn remove(folder: &OwnedFd, name: &str) {
    match with_rights(folder, |folder| rustix::fs::unlinkat(folder, name, AtFlags::empty())) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => tracing::warn!(file = name, %error, "a staged file cannot be removed"),
    }
}

pub(super) fn lost(name: &str) -> FileError {
    FileError::temporary(name, "the stage folder could not be synced while this file was in it; stage it anew")
}

/// A name that is one component and nothing special.
pub(super) fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 200
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}
