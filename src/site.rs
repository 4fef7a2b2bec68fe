//! Which folder the queue was made in. The database records inode and birth time of its state folder. If they differ or
//! are missing, the folder was copied, unpacked or cloned: what is recorded there may be somebody else's work, or work
//! that the original does, too. jobq only reads such a queue until its user attaches it.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::error::{Error, ErrorKind};

/// What a user says about a state folder that is not the one the queue was made in.
///
/// ```no_run
/// use jobq::{Attach, QueueOptions};
/// // The project was unpacked on another machine, and the original is gone.
/// QueueOptions::in_folder("project").attach(Attach::Move)?;
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// The original is gone: its unfinished jobs go on here.
    Move,
    /// This is a copy: undecided jobs are cancelled, decided ones fail like a withdrawn commit, and no retry applies what
    /// was decided.
    New,
}

/// Inode and birth time, as the database records them. `None` if the folder is missing.
pub(crate) fn identity(state: &Path) -> Option<String> {
    let found = std::fs::metadata(state).ok()?;
    // Some filesystems have no birth time.
    let born = found.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Some(format!("{} {}", found.ino(), born.map_or_else(|| "-".to_owned(), |born| born.as_nanos().to_string())))
}

/// The refusal of every write in a folder that is not the recorded one.
pub(crate) fn moved(state: &Path) -> Error {
    Error::new(
        ErrorKind::NotTrusted,
        format!(
            "{} is not this queue's recorded folder, so jobq changes nothing. If the original is gone, run `jobq site attach \
             --move`: its jobs go on here. For a copy, run `jobq site attach --new`: unfinished jobs end. If somebody else \
             made it, delete .jobq and run `jobq init`",
            state.display()
        ),
    )
}
