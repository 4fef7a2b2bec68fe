//! The one place that changes a user's files.
//!
//! New content is first *staged*: written to a file of its own below
//! `.jobq/stage/` and synced. What is to happen is then *planned*: which path,
//! what it holds now, which staged file replaces it. That plan is recorded, and
//! only then *applied*: by renames and unlinks, inside the transaction that
//! completes the job.
//!
//! Three rules hold everywhere here:
//! - **Beneath the root.** Every path is walked from a held handle of the root,
//!   name by name, and no symbolic link is followed on the way or at its end. No
//!   path is checked as a string and opened afterwards.
//! - **By content.** Applying again is harmless: what is already in place is seen
//!   to be in place; what is neither the old nor the new content is left alone.
//! - **Durable before it is said.** Contents are synced before they are planned,
//!   their names before the plan is recorded, folders before the job is
//!   completed. After a failed sync nothing is synced again in the hope of a
//!   better answer: it is written anew.
//!
//! ```text
//! walk, meta     from the root to a name; what is there
//! rights         owner, group, mode and access list of what is replaced
//! database       the queue's own, which is out of reach
//! sight          what a file holds
//! inspect        the same for many files, one after the other
//! stage          staged files, and syncing their folder for many at once
//! stage_found    staged files by their recorded names
//! stage_folder   a folder for a job's program, and files of it that become staged ones
//! plan           an effect as it is wanted → as it is recorded
//! check, apply   whether the disk is as planned; the change itself
//! verify         staged content, before it is put in place by somebody else
//! touched        folders that have to be synced before COMMIT
//! stage_own      this process's own folder in the stage
//! left           a walk through what programs have left there
//! sweep          what dead processes left in the stage
//! ```

mod apply;
mod check;
mod database;
mod error;
mod inspect;
mod left;
mod meta;
mod plan;
mod report;
mod rights;
mod sight;
mod stage;
mod stage_folder;
mod stage_found;
mod stage_own;
mod stage_sync;
mod stage_writer;
mod sweep;
mod touched;
mod verify;
mod walk;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

pub use error::FileError;
pub(crate) use inspect::{Found, Inspector};
pub use plan::{Content, Expect, FileEffect};
pub use sight::Sight;
pub use stage::Staged;
pub use stage_writer::StageWriter;
pub(crate) use sweep::stage_litter;
pub use sweep::sweep_stage;

use crate::error::{Error, ErrorKind, Result};
use crate::path_policy::FilePolicy;
use meta::Meta;

/// The root folder and this process's stage, by held directory handles.
pub struct Files {
    root: PathBuf,
    state: PathBuf,
    root_folder: Arc<OwnedFd>,
    root_id: FolderId,
    /// None if it is not there and nothing is to be staged.
    state_folder: Option<OwnedFd>,
    /// jobq's own folder, whichever way it is reached; none if it is the root.
    off_limits: Option<FolderId>,
    database: Option<database::Database>,
    /// Asked about each new plan. What is recorded already is applied.
    pub(crate) policy: Arc<FilePolicy>,
    stage: stage::Stage,
    touched: touched::Touched,
    verified: verify::Verified,
    watch: Option<Box<Watch>>,
}

/// What is about to be done to the disk.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// A staged file is made.
    Stage,
    /// A staged file's content is synced.
    SyncFile,
    /// A folder is synced.
    SyncFolder,
    /// A folder is made.
    MakeFolder,
    /// A staged file goes to its place, where something else was.
    Replace,
    /// A staged file goes to its place, where nothing may be.
    Create,
    /// The same, on a filesystem that cannot do it in one step.
    Link,
    /// A file goes.
    Unlink,
}

/// Hears of each change before it is made, and may forbid it with an error.
/// Tests own it: faults and races are put exactly where they hurt.
#[doc(hidden)]
pub type Watch = dyn Fn(Act, &str) -> io::Result<()> + Send + Sync;

/// Which folder it is, whatever it is called.
type FolderId = (u64, u64);

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Files {
    /// Opens the root and jobq's own folder. Symbolic links on the way to them
    /// are followed, this once; `owner` is the process's name (`locked_by`).
    ///
    /// ```
    /// use jobq::effects::{Files, Sight};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let root = folder.path();
    /// # std::fs::create_dir(root.join(".jobq")).unwrap();
    /// let files = Files::open(root, &root.join(".jobq"), "host-1234-abc")?;
    /// assert_eq!(files.look("out/hello.txt")?, Sight::Absent);
    /// assert!(files.look("../outside").unwrap_err().is_permanent());
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn open(root: &Path, state: &Path, owner: &str) -> Result<Self> {
        if !stage::is_plain(owner) {
            return Err(Error::invalid("owner", "has characters that a file name should not have"));
        }
        Self::with_state(root, (state, Some(open_folder(state)?)), owner)
    }

    /// To look only: jobq's own folder may not be there yet, and is not made.
    pub(crate) fn open_to_look(root: &Path, state: &Path) -> Result<Self> {
        let opened = if state.exists() { Some(open_folder(state)?) } else { None };
        Self::with_state(root, (state, opened), "nobody")
    }

    fn with_state(root: &Path, (state, opened): (&Path, Option<(FolderId, OwnedFd)>), owner: &str) -> Result<Self> {
        let (root_id, root_folder) = open_folder(root)?;
        let (state_id, state_folder) = opened.unzip();
        Ok(Self {
            // Absolute, so that the process may change its folder.
            root: std::path::absolute(root).unwrap_or_else(|_| root.to_owned()),
            state: std::path::absolute(state).unwrap_or_else(|_| state.to_owned()),
            root_folder: Arc::new(root_folder),
            root_id,
            state_folder,
            off_limits: state_id.filter(|state_id| *state_id != root_id),
            database: None,
            policy: Arc::default(),
            stage: stage::Stage::new(owner),
            touched: touched::Touched::default(),
            verified: verify::Verified::default(),
            watch: None,
        })
    }

    /// Whether both are about the same folder, not only the same path.
    pub(crate) fn same_root(&self, other: &Self) -> bool {
        self.root_id == other.root_id
    }

    /// The same, with someone who hears of every change before it is made.
    #[doc(hidden)]
    #[must_use]
    pub fn watched(mut self, watch: impl Fn(Act, &str) -> io::Result<()> + Send + Sync + 'static) -> Self {
        self.watch = Some(Box::new(watch));
        self
    }

    /// The folder that jobs may touch.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn about_to(&self, act: Act, what: &str) -> Result<(), Errno> {
        match &self.watch {
            None => Ok(()),
            Some(watch) => watch(act, what).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO)),
        }
    }

    /// Makes a folder's entries durable.
    fn sync_folder(&self, folder: &OwnedFd, path: &str) -> Result<(), Errno> {
        self.about_to(Act::SyncFolder, path)?;
        match rustix::fs::fsync(folder) {
            // The filesystem has no such thing for folders; there is nothing to wait for.
            Err(Errno::INVAL) => Ok(()),
            answer => answer,
        }
    }
}

/// Follows symbolic links.
fn open_folder(path: &Path) -> Result<(FolderId, OwnedFd)> {
    let opened = rustix::fs::openat(CWD, path, FOLDER, Mode::empty());
    opened.and_then(|folder| Ok((Meta::of(&folder)?.id(), folder))).map_err(|e| {
        Error::new(ErrorKind::Io, format!("cannot open the folder {}: {e}", path.display())).with_source(e)
    })
}
