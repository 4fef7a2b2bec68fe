//! A process's lock file: the lock says that it lives, the slots say which jobs
//! it has started. Both outlast a SIGKILL: the lock ends with the process, the
//! slots are in the page cache.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use super::Verdict;
use crate::error::{Error, ErrorKind, Result};
use crate::store::Owner;

/// (seq, token), both little-endian; all zero when it was never used. A slot is
/// written over by the next job, after the end of the last is durable; what it
/// says of a job that has ended harms nobody, because a token names one claim.
/// The first place in the file is not a job's: beside a seq of 0, which no job
/// has, it says for how many milliseconds its owner may be silent.
const SLOT: usize = 16;

/// The lock of this process, held until dropped.
#[derive(Debug)]
pub struct OwnerLock {
    file: File,
    path: PathBuf,
    owner: Owner,
}

impl OwnerLock {
    /// Makes and locks a uniquely named file in `folder`. To be done before the
    /// first claim.
    pub fn acquire(folder: &Path) -> Result<Self> {
        let at = |e: io::Error| Error::new(ErrorKind::Io, format!("cannot lock a file in {}: {e}", folder.display()));
        refuse_link(folder)?;
        std::fs::create_dir_all(folder).map_err(at)?;
        loop {
            let pid = std::process::id();
            let host = gethostname::gethostname().to_string_lossy().into_owned();
            let name: String =
                host.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
            let locked_by = format!("{name}-{pid}-{}", &ulid::Ulid::generate().to_string()[16..]);
            let lock_file = format!("{locked_by}.lock");
            let path = folder.join(&lock_file);
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).map_err(at)?;
            // If not, a sweeper was faster and has removed the file, or is about to.
            let Some(file) = locked(file, &path).map_err(at)? else { continue };
            let owner =
                Owner { locked_by, machine_id: machine_id().to_owned(), boot_id: boot_id().to_owned(), pid, lock_file };
            return Ok(Self { file, path, owner });
        }
    }

    /// The owner to claim with.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Notes that a thread is about to run a job. Before the handler is called.
    pub fn start(&self, slot: usize, seq: i64, token: i64) -> Result<()> {
        let mut bytes = [0; SLOT];
        bytes[..8].copy_from_slice(&seq.to_le_bytes());
        bytes[8..].copy_from_slice(&token.to_le_bytes());
        self.write(slot + 1, bytes)
    }

    /// Notes how long this process may be silent before its jobs are anyone's. One
    /// that has less patience must not judge it by its own.
    pub fn promise(&self, lease: Duration) -> Result<()> {
        let mut bytes = [0; SLOT];
        let millis = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
        bytes[8..].copy_from_slice(&millis.to_le_bytes());
        self.write(0, bytes)
    }

    /// What has been started so far, by seq and token; some of it has ended since.
    pub(crate) fn started(&self) -> Result<HashSet<(i64, i64)>> {
        use std::os::unix::fs::FileExt as _;
        let at = |e: io::Error| Error::new(ErrorKind::Io, format!("cannot read {}: {e}", self.path.display()));
        let size = self.file.metadata().map_err(at)?.len();
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        self.file.read_exact_at(&mut bytes, 0).map_err(at)?;
        Ok(started(&bytes))
    }

    /// The lock once more, for a process that keeps it for as long as it lives itself.
    pub(crate) fn share(&self) -> Result<OwnedFd> {
        let at = |e: io::Error| Error::new(ErrorKind::Io, format!("cannot share {}: {e}", self.path.display()));
        Ok(self.file.try_clone().map_err(at)?.into())
    }

    /// Removes the file, when nothing is claimed by this process any more. It may have been moved away with
    /// the queue.
    pub(crate) fn remove(&self) {
        if let Err(error) = std::fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.path.display(), %error, "a lock file could not be removed");
        }
    }

    fn write(&self, place: usize, bytes: [u8; SLOT]) -> Result<()> {
        use std::os::unix::fs::FileExt as _;
        self.file
            .write_all_at(&bytes, (place * SLOT) as u64)
            .map_err(|e| Error::new(ErrorKind::Io, format!("cannot write {}: {e}", self.path.display())))
    }
}

/// Lock files are found by their names alone. Through a link, jobq would remove somebody else's.
pub(super) fn refuse_link(folder: &Path) -> Result<()> {
    if folder.is_symlink() {
        return Err(Error::new(ErrorKind::NotTrusted, format!("{} is a link; remove it", folder.display())));
    }
    Ok(())
}

/// Does not wait if the path is a pipe.
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let at_once = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(at_once).open(path)
}

/// A lock file that nobody held, locked now. Whoever has made it a moment ago,
/// and not locked it yet, finds out and makes another.
pub(super) fn hold_free(path: &Path) -> io::Result<Option<File>> {
    let file = match open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    locked(file, path)
}

/// The file with its lock, if nobody else has it and it is still what is there. A lock
/// on a file that was removed meanwhile is seen by nobody.
fn locked(file: File, path: &Path) -> io::Result<Option<File>> {
    match file.try_lock() {
        Ok(()) => Ok(same_file(&file, path)?.then_some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// Whether the owner of a lock file lives. A file that is gone tells nothing.
pub(super) fn judge(path: &Path) -> Result<Verdict> {
    let at = |e: io::Error| Error::new(ErrorKind::Io, format!("cannot read {}: {e}", path.display()));
    let mut file = match open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Verdict::Unknown),
        Err(e) => return Err(at(e)),
    };
    // Shared, so that two who look at the same moment do not take each other for the owner.
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => return Ok(Verdict::Alive),
        Err(TryLockError::Error(e)) => return Err(at(e)),
        Ok(()) => {}
    }
    // Told, not left to closing: a program that another thread is about to start has a
    // copy of the file until it runs, and with it the lock.
    let _ = file.unlock();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(at)?;
    Ok(Verdict::Dead(Some(started(&bytes))))
}

/// How long the owner of a lock file may be silent, if it says so.
pub(super) fn promised(path: &Path) -> Option<Duration> {
    let mut bytes = [0; SLOT];
    open(path).and_then(|mut file| file.read_exact(&mut bytes)).ok()?;
    match slots(&bytes).next()? {
        (0, millis) => u64::try_from(millis).ok().filter(|millis| *millis > 0).map(Duration::from_millis),
        _ => None,
    }
}

/// What the slots say.
fn started(bytes: &[u8]) -> HashSet<(i64, i64)> {
    slots(bytes).filter(|(seq, _)| *seq != 0).collect()
}

fn slots(bytes: &[u8]) -> impl Iterator<Item = (i64, i64)> {
    let number = |bytes: &[u8]| i64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    bytes.as_chunks::<SLOT>().0.iter().map(move |slot| (number(&slot[..8]), number(&slot[8..])))
}

fn same_file(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let (ours, there) = (file.metadata()?, std::fs::metadata(path));
    Ok(there.is_ok_and(|there| (ours.dev(), ours.ino()) == (there.dev(), there.ino())))
}

/// This machine, as long as it is installed.
pub(super) fn machine_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        read_word("/etc/machine-id")
            .or_else(|| read_word("/var/lib/dbus/machine-id"))
            .unwrap_or_else(|| gethostname::gethostname().to_string_lossy().into_owned())
    })
}

/// This machine, as long as it is up.
pub(super) fn boot_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| read_word("/proc/sys/kernel/random/boot_id").unwrap_or_else(|| "unknown".to_owned()))
}

fn read_word(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let word = text.trim();
    (!word.is_empty()).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_life_and_a_free_one_is_death_with_its_slots() {
        let folder = tempfile::tempdir().unwrap();
        let lock = OwnerLock::acquire(folder.path()).unwrap();
        let path = folder.path().join(&lock.owner().lock_file);
        assert_eq!(promised(&path), None);
        lock.start(2, 7, 1).unwrap();
        assert_eq!(promised(&path), None);
        lock.promise(Duration::from_secs(300)).unwrap();
        assert_eq!(promised(&path), Some(Duration::from_secs(300)));
        lock.start(0, 9, 3).unwrap();
        lock.start(0, 11, 4).unwrap();
        assert_eq!(judge(&path).unwrap(), Verdict::Alive);
        assert_eq!(lock.started().unwrap(), HashSet::from([(7, 1), (11, 4)]));
        drop(lock);
        let other = open(&path).unwrap();
        other.lock_shared().unwrap();
        assert_eq!(
            judge(&path).unwrap(),
            Verdict::Dead(Some(HashSet::from([(7, 1), (11, 4)]))),
            "somebody else is looking, too"
        );
        std::fs::remove_file(&path).unwrap();
        assert_eq!(judge(&path).unwrap(), Verdict::Unknown);
    }

    #[test]
    fn a_file_that_was_removed_or_replaced_before_it_was_locked_is_not_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let made = || OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        assert!(locked(made(), &path).unwrap().is_some());
        std::fs::remove_file(&path).unwrap();
        let file = made();
        std::fs::remove_file(&path).unwrap();
        assert!(locked(file.try_clone().unwrap(), &path).unwrap().is_none(), "removed");
        let other = made();
        assert!(locked(file, &path).unwrap().is_none(), "another is in its place");
        assert!(locked(other, &path).unwrap().is_some());
    }

    #[test]
    fn only_a_file_that_nobody_holds_can_be_held() {
        let folder = tempfile::tempdir().unwrap();
        let lock = OwnerLock::acquire(folder.path()).unwrap();
        let path = folder.path().join(&lock.owner().lock_file);
        assert!(hold_free(&path).unwrap().is_none());
        drop(lock);
        let held = hold_free(&path).unwrap();
        assert!(held.is_some() && hold_free(&path).unwrap().is_none());
        std::fs::remove_file(&path).unwrap();
        assert!(hold_free(&path).unwrap().is_none());
    }
}
