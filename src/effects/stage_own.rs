//! This process's own folder in the stage: made when it is first needed, and made
//! again when somebody has removed it, for a worker lives long.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::error::FileError;
use super::meta::Meta;
use super::stage::Durability;
use super::{FOLDER, Files};

#[derive(Default)]
pub(super) struct OwnFolder {
    /// Held while it is made.
    opening: Mutex<()>,
    folder: Mutex<Option<Arc<OwnedFd>>>,
}

impl OwnFolder {
    /// The folder, if it has been made.
    pub(super) fn get(&self) -> Option<Arc<OwnedFd>> {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, folder: Option<Arc<OwnedFd>>) {
        *self.folder.lock().unwrap_or_else(PoisonError::into_inner) = folder;
    }
}

impl Files {
    /// This process's stage folder, made when it is first needed.
    pub(super) fn stage_folder(&self) -> Result<Arc<OwnedFd>, FileError> {
        let _one_at_a_time = self.stage.own.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = self.stage.own.get() {
            return Ok(folder);
        }
        let make = || {
            let state = self.state_folder.as_ref().ok_or(Errno::NOENT)?;
            let all = enter_own(state, "stage")?;
            let own = enter_own(&all, &self.stage.owner)?;
            self.sync_folder(&all, ".jobq/stage")?;
            self.sync_folder(state, ".jobq")?;
            Ok(own)
        };
        let folder = Arc::new(make().map_err(|e| FileError::os(".jobq/stage", "make the stage folder", e))?);
        self.stage.own.set(Some(Arc::clone(&folder)));
        Ok(folder)
    }

    /// Makes something in the stage folder; in a new one if the old one is gone. A
    /// program can remove it, or take the rights on it away: it may do so to its own
    /// job, and not to all that come after it.
    pub(super) fn make_in_stage<T>(
        &self,
        (name, doing): (&str, &'static str),
        make: impl Fn(&OwnedFd) -> Result<T, Errno>,
    ) -> Result<T, FileError> {
        let folder = self.stage_folder()?;
        let answer = match with_rights(&folder, &make) {
            Err(Errno::NOENT) if Meta::of(&*folder).is_ok_and(|meta| meta.links == 0) => {
                self.leave_stage_folder(&folder);
                with_rights(&*self.stage_folder()?, &make)
            }
            answer => answer,
        };
        answer.map_err(|errno| FileError::os(name, doing, errno))
    }

    /// Whether others would find this folder where it was made.
    pub(super) fn is_in_its_place(&self, folder: &OwnedFd) -> bool {
        let Some(state) = &self.state_folder else { return false };
        let found = Meta::at(state, format!("stage/{}", self.stage.owner));
        matches!((Meta::of(folder), found), (Ok(held), Ok(Some(found))) if held.id() == found.id())
    }

    /// What was in it is gone with it, however well it was synced.
    pub(super) fn leave_stage_folder(&self, gone: &Arc<OwnedFd>) {
        let _one_at_a_time = self.stage.own.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if self.stage.own.get().is_some_and(|folder| Arc::ptr_eq(&folder, gone)) {
            tracing::warn!(
                owner = self.stage.owner,
                "the stage folder of this process was removed or moved; it is made again"
            );
            self.stage.files().values_mut().for_each(|known| *known = Durability::Lost);
            self.stage.own.set(None);
        }
    }
}

/// Opens one of jobq's own folders, making it if it is not there.
fn enter_own(from: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    // Not for everybody: a staged file may replace one that only its owner reads.
    match rustix::fs::mkdirat(from, name, Mode::from_raw_mode(0o770)) {
        Ok(()) | Err(Errno::EXIST) => open_folder(from, name),
        Err(errno) => Err(errno),
    }
}

pub(super) fn open_folder(from: &OwnedFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(from.as_fd(), name, FOLDER | OFlags::NOFOLLOW, Mode::empty())
}

/// Its owner may do with it what it likes, and others what they could before.
pub(super) fn own_again(folder: &OwnedFd) -> Result<(), Errno> {
    let mode = Meta::of(folder)?.permissions();
    let all = Mode::RWXU;
    if mode.contains(all) { Ok(()) } else { rustix::fs::fchmod(folder, mode | all) }
}

/// Does something in a folder of the stage. Programs run beside what other jobs do there,
/// and may take the rights on it away at any moment: they are taken back.
pub(super) fn with_rights<T>(folder: &OwnedFd, act: impl Fn(&OwnedFd) -> Result<T, Errno>) -> Result<T, Errno> {
    match act(folder) {
        Err(Errno::ACCESS) if own_again(folder).is_ok() => act(folder),
        answer => answer,
    }
}

/// Opens a folder that a program has left, even if it has taken its own rights on it
/// away, and makes it our own again.
pub(super) fn open_left(from: &OwnedFd, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd, Errno> {
    let folder = match open_folder(from, name) {
        Err(Errno::ACCESS) => {
            // By a handle that needs no rights, so that no link is followed in its place.
            let held = rustix::fs::openat(
                from,
                name,
                OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            let by_handle = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
            rustix::fs::chmod(by_handle, Mode::RWXU)?;
            open_folder(from, name)?
        }
        opened => opened?,
    };
    own_again(&folder)?;
    Ok(folder)
}
