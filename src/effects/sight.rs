//! What a path below the root holds.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Files;
use super::error::FileError;
use super::meta::{Meta, Stamp, name_of};
use super::walk::{LOOK, Spot, normal};
use crate::json::hex;
use crate::store::Precondition;

/// What is at a path.
///
/// ```
/// use jobq::{Context, HandlerError, Sight};
/// fn size_of(ctx: &Context, path: &str) -> Result<u64, HandlerError> {
///     match ctx.look(path)? {
///         Sight::Absent => Ok(0),
///         Sight::File { size, .. } => Ok(size),
///     }
/// }
/// # let _ = size_of;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// sha256 of its content.
        sha256: String,
        /// Its size in bytes.
        size: u64,
        /// How it looked (size, times, inode), as JSON.
        observed: String,
    },
}

impl Sight {
    /// As an effect that comes on top of it has it.
    pub(crate) fn into_precondition(self) -> (Precondition, Option<String>) {
        match self {
            Self::Absent => (Precondition::Absent, None),
            Self::File { sha256, observed, .. } => (Precondition::Sha256(sha256), Some(observed)),
        }
    }
}

/// How a file looked when it was hashed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Observed {
    #[serde(flatten)]
    stamp: Stamp,
    /// It had been changed so shortly before that another change could have the
    /// same times: the stamp proves nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    young: bool,
}

impl Observed {
    /// Whether a file that looks like this has the content it had then.
    pub(super) fn proves(&self, now: &Meta) -> bool {
        !self.young && self.stamp == now.stamp
    }

    /// Whether it is the same file, as far as its stamp tells.
    pub(super) fn looks_like(&self, now: &Meta) -> bool {
        self.stamp == now.stamp
    }

    pub(super) fn size(&self) -> u64 {
        self.stamp.size
    }
}

/// A file's content by its hash, and the look of the file at that moment.
pub(super) struct Hashed {
    pub(super) sha256: String,
    pub(super) meta: Meta,
    young: bool,
}

impl Hashed {
    pub(super) fn observed(&self) -> String {
        let observed = Observed { stamp: self.meta.stamp, young: self.young };
        serde_json::to_string(&observed).unwrap_or_default()
    }
}

/// Files larger than this are worth a short wait that lets their stamp prove
/// something, so that they are not hashed again under the write lock.
const LARGE: u64 = 1 << 20;

impl Files {
    /// What is at a path now. Refuses whatever is not a regular file reached
    /// without symbolic links.
    pub fn look(&self, path: &str) -> Result<Sight, FileError> {
        let path = normal(path)?;
        Ok(match self.walk(&path, LOOK)?.hash(true)? {
            None => Sight::Absent,
            Some(file) => {
                let observed = file.observed();
                Sight::File { sha256: file.sha256, size: file.meta.stamp.size, observed }
            }
        })
    }

    /// The content of a file, `None` when there is none. A file of more than
    /// `limit` bytes is refused.
    pub fn read(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, FileError> {
        let path = normal(path)?;
        let Some((file, _)) = self.walk(&path, LOOK)?.open_file()? else { return Ok(None) };
        let mut content = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut content).map_err(|e| FileError::io(&path, "read", &e))?;
        if content.len() as u64 > limit {
            return Err(FileError::target(&path, format!("is larger than {limit} bytes, the most that is read")));
        }
        Ok(Some(content))
    }
}

impl Spot<'_> {
    /// What is at a spot, if it is something that may be touched.
    pub(super) fn find(&self) -> Result<Option<Meta>, FileError> {
        if !self.reached {
            return Ok(None);
        }
        let found = Meta::at(&self.folder, self.name).map_err(|e| FileError::os(self.path, "look at it", e))?;
        let Some(found) = found else { return Ok(None) };
        let meta = regular(found, self.path)?;
        self.admit_file(&meta)?;
        Ok(Some(meta))
    }

    /// Looks before it opens, because opening a device can set it going; and
    /// again at what was opened, because that may be another thing.
    pub(super) fn open_file(&self) -> Result<Option<(File, Meta)>, FileError> {
        if self.find()?.is_none() {
            return Ok(None);
        }
        match open_regular(&self.folder, self.name) {
            Ok((file, meta)) => {
                let meta = regular(meta, self.path)?;
                if let Err(error) = self.admit_file(&meta) {
                    // Put here since the look. Closing it would take SQLite's locks away, so it stays open.
                    std::mem::forget(file);
                    return Err(error);
                }
                Ok(Some((file, meta)))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(FileError::os(self.path, "open it", errno)),
        }
    }

    /// Hashes what is there. `patient`: may wait a moment.
    pub(super) fn hash(&self, patient: bool) -> Result<Option<Hashed>, FileError> {
        let Some((mut file, mut before)) = self.open_file()? else { return Ok(None) };
        let os = |e| FileError::os(self.path, "read", e);
        if patient && before.stamp.size > LARGE && is_young(before.stamp.ctime) {
            thread::sleep(tick(before.stamp.ctime));
        }
        for _ in 0..5 {
            let young = is_young(before.stamp.ctime);
            // One byte more than there should be, to notice a file that grows.
            let content = (&mut file).take(before.stamp.size.saturating_add(1));
            let (sha256, _) =
                copy_hashed(content, &mut io::sink()).map_err(|e| FileError::io(self.path, "read", &e))?;
            let after = Meta::of(&file).map_err(os)?;
            if after.stamp == before.stamp {
                return Ok(Some(Hashed { sha256, meta: after, young }));
            }
            before = after;
            file.rewind().map_err(|e| FileError::io(self.path, "read", &e))?;
        }
        Err(FileError::temporary(self.path, "another program is writing it; try again when it is done"))
    }
}

/// Opens without following a symbolic link, without waiting for the other end of
/// a FIFO and without making a terminal ours.
pub(super) fn open_regular(folder: impl std::os::fd::AsFd, name: &str) -> Result<(File, Meta), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
    let meta = Meta::of(&file)?;
    Ok((file, meta))
}

fn regular(meta: Meta, path: &str) -> Result<Meta, FileError> {
    match meta.kind() {
        FileType::RegularFile => Ok(meta),
        kind => Err(FileError::target(path, format!("is {}; only regular files are touched", name_of(kind)))),
    }
}

/// Copies to the end; the hash and size of what went through.
pub(super) fn copy_hashed(mut from: impl io::Read, to: &mut impl io::Write) -> io::Result<(String, u64)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut size = 0;
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok((hex(&hasher.finalize()), size)),
            Ok(count) => {
                hasher.update(&buffer[..count]);
                to.write_all(&buffer[..count])?;
                size += count as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Whether the clock that stamps files may not have moved on since `ctime`. A
/// time in the future says nothing either.
pub(super) fn is_young(ctime: i64) -> bool {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX);
    let old_enough = ctime.saturating_add(i64::try_from(tick(ctime).as_nanos()).unwrap_or(i64::MAX));
    now < old_enough
}

/// The coarsest step of that clock: a kernel tick, or what old filesystems keep.
fn tick(ctime: i64) -> Duration {
    if ctime % 1_000_000_000 == 0 { Duration::from_secs(3) } else { Duration::from_millis(20) }
}
