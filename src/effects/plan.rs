//! An effect as a handler wants it becomes an effect as it is recorded: with
//! what the path holds now, and refused if it could not be applied.

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::AsFd as _;

use rustix::io::Errno;

use super::error::{FileError, shown};
use super::meta::{Meta, same_mount};
use super::rights::take_rights;
use super::sight::Hashed;
use super::stage::Staged;
use super::walk::{LOOK, Spot, normal};
use super::{Act, Files};
use crate::store::{EffectOp, PlannedEffect, Precondition};

/// What a handler wants to happen to one file.
///
/// ```
/// use jobq::handlers::{DeleteFile, DeletedFile};
/// use jobq::{Context, Expect, FileEffect, Handler, HandlerError, Outcome, Sight};
/// struct Careful;
/// impl Handler for Careful {
///     type Payload = DeleteFile;
///     fn run(&self, ctx: &Context, job: DeleteFile) -> Result<Outcome<DeletedFile>, HandlerError> {
///         let Sight::File { sha256, .. } = ctx.look(&job.path)? else {
///             return Err(HandlerError::permanent("it is not there"));
///         };
///         let result = DeletedFile { path: job.path.clone(), sha256: Some(sha256.clone()) };
///         // It goes only if it is still what was seen here.
///         let remove = FileEffect::Remove { path: job.path, expect: Expect::Sha256(sha256) };
///         Ok(Outcome::new(result).effect(remove))
///     }
/// }
/// # let _ = Careful;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEffect {
    /// The file is to have this content.
    Put {
        /// Below the root.
        path: String,
        /// The content.
        content: Content,
        /// What must be there before.
        expect: Expect,
    },
    /// The file is to go.
    Remove {
        /// Below the root.
        path: String,
        /// What must be there before.
        expect: Expect,
    },
}

/// New content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// In a staged file.
    Staged(Staged),
    /// Already at the path; nothing was staged.
    InPlace {
        /// sha256 of the content.
        sha256: String,
        /// Its size in bytes.
        size: u64,
    },
}

/// What a path must hold.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::Expect;
/// queue.commit(|tx| tx.write("a.txt", "first"))?;
/// let over = |expect: Expect| queue.commit(|tx| {
///     tx.write("a.txt", "second")?;
///     tx.expect("a.txt", expect)
/// });
/// assert!(over(Expect::Absent).unwrap_err().is_stale());
/// assert!(over(Expect::Sha256(jobq::sha256_hex(b"first")))?.applied);
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Whatever is there when the effect is planned.
    Any,
    /// Nothing.
    Absent,
    /// Content with this sha256.
    Sha256(String),
}

impl Files {
    /// Looks at the target and notes what it holds. A staged file that a failed
    /// sync has left in doubt is refused here. That a file is durable it does not
    /// say: before the effect is recorded, [`sync_stage`](Files::sync_stage) has
    /// to succeed and [`confirm_staged`](Files::confirm_staged) to agree.
    ///
    /// A target that already holds the new content is in order, whatever was
    /// expected.
    pub fn plan(&self, effect: FileEffect) -> Result<PlannedEffect, FileError> {
        let (path, content, expect) = match effect {
            FileEffect::Put { path, content, expect } => (path, Some(content), expect),
            FileEffect::Remove { path, expect } => (path, None, expect),
        };
        let path = normal(&path)?;
        self.policy.check(&self.root, &path).map_err(|why| FileError::target(&path, why))?;
        let spot = self.walk(&path, LOOK)?;
        self.same_filesystem(&spot)?;
        let found = spot.hash(true)?;
        let holds = found.as_ref().map(|file| file.sha256.as_str());
        let wanted = match &content {
            None => None,
            Some(Content::Staged(staged)) => Some(staged.sha256.as_str()),
            Some(Content::InPlace { sha256, .. }) => Some(sha256.as_str()),
        };
        if holds != wanted {
            expected(&path, &expect, holds)?;
        }
        match &content {
            Some(Content::Staged(staged)) => {
                self.trust(staged)?;
                self.prepare(staged, spot.open_file()?)?;
            }
            Some(Content::InPlace { .. }) => self.settle_in_place(&spot, found.as_ref(), wanted)?,
            None => {}
        }
        let observed = found.as_ref().map(Hashed::observed);
        let precondition = match found {
            None => Precondition::Absent,
            Some(file) => Precondition::Sha256(file.sha256),
        };
        let op = match content {
            None => EffectOp::Remove,
            Some(Content::Staged(Staged { stage, sha256, size })) => EffectOp::Put { sha256, size, stage: Some(stage) },
            Some(Content::InPlace { sha256, size }) => EffectOp::Put { sha256, size, stage: None },
        };
        Ok(PlannedEffect { path, op, precondition, observed })
    }

    /// Plans all effects of one job, which must not get into each other's way.
    pub fn plan_all(&self, effects: Vec<FileEffect>) -> Result<Vec<PlannedEffect>, FileError> {
        let planned = effects.into_iter().map(|effect| self.plan(effect)).collect::<Result<Vec<_>, _>>()?;
        match clash(&planned) {
            None => Ok(planned),
            Some((path, why)) => Err(FileError::target(path, why)),
        }
    }

    /// Between filesystems nothing can be moved in one step.
    fn same_filesystem(&self, spot: &Spot<'_>) -> Result<(), FileError> {
        let stage = self.stage.folder();
        let ours = stage.as_deref().or(self.state_folder.as_ref()).unwrap_or(&*self.root_folder);
        match same_mount(ours.as_fd(), (spot.folder.as_fd(), spot.folder_id.0), spot.name) {
            Ok(true) => Ok(()),
            Ok(false) => Err(FileError::os(spot.path, "plan a change", Errno::XDEV)),
            Err(errno) => Err(FileError::os(spot.path, "look at its folder", errno)),
        }
    }

    /// Gives a staged file the rights of the file that it replaces. That is done now, because making them
    /// durable takes a sync.
    fn prepare(&self, staged: &Staged, replaced: Option<(File, Meta)>) -> Result<(), FileError> {
        let os = |e| FileError::os(&staged.stage, "prepare the staged file", e);
        let gone = || FileError::temporary(&staged.stage, "the staged file is gone or damaged; stage it anew");
        let Some((replaced, _)) = replaced else {
            return if self.is_staged(&staged.stage, staged.size).map_err(os)? { Ok(()) } else { Err(gone()) };
        };
        let found = self.open_staged(&staged.stage, staged.size).map_err(os)?.ok_or_else(gone)?;
        if take_rights(&found.file, &replaced).map_err(os)? {
            self.about_to(Act::SyncFile, &staged.stage).and_then(|()| rustix::fs::fsync(&found.file)).map_err(os)?;
        }
        Ok(())
    }

    /// Content that another program has written may not be durable yet.
    fn settle_in_place(&self, spot: &Spot<'_>, found: Option<&Hashed>, wanted: Option<&str>) -> Result<(), FileError> {
        let file = match found {
            Some(found) if Some(found.sha256.as_str()) == wanted => spot.open_file()?,
            _ => None,
        };
        let changed = || FileError::conflict(spot.path, "has been changed since it was looked at; look again", false);
        let (file, _) = file.ok_or_else(changed)?;
        self.about_to(Act::SyncFile, spot.path)
            .and_then(|()| rustix::fs::fsync(&file))
            .map_err(|e| FileError::os(spot.path, "sync", e))
    }
}

fn expected(path: &str, expect: &Expect, holds: Option<&str>) -> Result<(), FileError> {
    match (expect, holds) {
        (Expect::Any, _) | (Expect::Absent, None) => Ok(()),
        (Expect::Sha256(sha256), Some(holds)) if sha256 == holds => Ok(()),
        // It does not go away by itself.
        (Expect::Absent, Some(holds)) => {
            let why = format!("is already there, with sha256 {holds}; remove it, or allow it to be replaced");
            Err(FileError::conflict(path, why, true))
        }
        // Whoever read it may read it again.
        (Expect::Sha256(sha256), holds) => {
            let holds = holds.map_or_else(|| "there is no such file".to_owned(), |holds| format!("it has {holds}"));
            let why = format!("was expected to have sha256 {sha256}, but {holds}; read it again");
            Err(FileError::conflict(path, why, false))
        }
    }
}

/// Two effects of one job that cannot both come true: on the same path, or one
/// on a folder of the other.
pub(super) fn clash(effects: &[PlannedEffect]) -> Option<(&str, String)> {
    let mut paths = HashSet::new();
    for effect in effects {
        if !paths.insert(effect.path.as_str()) {
            return Some((&effect.path, "one job has two effects on it; give it one".to_owned()));
        }
    }
    effects.iter().map(|effect| effect.path.as_str()).find_map(|path| {
        let folder = path.match_indices('/').map(|(end, _)| &path[..end]).find(|folder| paths.contains(folder))?;
        Some((path, format!("the same job has an effect on {}, which cannot be file and folder", shown(folder))))
    })
}
