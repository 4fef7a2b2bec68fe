//! `delete_file`: remove a file below the root.

use serde::{Deserialize, Serialize};

use crate::{Context, Expect, FileEffect, Handler, HandlerError, Hold, Outcome, Payload, Result, Sight};

/// Remove a file. One that is missing is fine unless `requireExists` says
/// otherwise.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = std::sync::Arc::new(jobq::Queue::init(folder.path())?);
/// # let drain = || {
/// #     let options = jobq::WorkerOptions { drain: true, ..Default::default() };
/// #     jobq::Worker::new(queue.clone(), jobq::Registry::builtin(), options)?.run(&jobq::Shutdown::new())
/// # };
/// use jobq::{Status, handlers::DeleteFile};
/// let id = queue.enqueue(DeleteFile { require_exists: true, ..DeleteFile::at("a.txt") })?.id;
/// drain()?;
/// assert_eq!(queue.get(&id)?.status, Status::Failed, "there was no such file");
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteFile {
    /// Below the root.
    pub path: String,
    /// A missing file is a failure.
    #[serde(default)]
    pub require_exists: bool,
}

/// What a `delete_file` job leaves.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = std::sync::Arc::new(jobq::Queue::init(folder.path())?);
/// # let drain = || {
/// #     let options = jobq::WorkerOptions { drain: true, ..Default::default() };
/// #     jobq::Worker::new(queue.clone(), jobq::Registry::builtin(), options)?.run(&jobq::Shutdown::new())
/// # };
/// use jobq::handlers::DeleteFile;
/// std::fs::write(folder.path().join("a.txt"), "hello").unwrap();
/// let id = queue.enqueue(DeleteFile::at("a.txt"))?.id;
/// drain()?;
/// let deleted = queue.result::<DeleteFile>(&id)?.unwrap();
/// assert_eq!(deleted.sha256, Some(jobq::sha256_hex(b"hello")));
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedFile {
    /// Where.
    pub path: String,
    /// sha256 of what was there; none if it was missing.
    pub sha256: Option<String>,
}

impl DeleteFile {
    /// A file that may be missing.
    pub fn at(path: impl Into<String>) -> Self {
        Self { path: path.into(), require_exists: false }
    }
}

impl Payload for DeleteFile {
    const TYPE: &'static str = "delete_file";
    type Output = DeletedFile;

    fn holds(&self) -> Result<Vec<Hold>> {
        Ok(vec![Hold::path(&self.path)?])
    }
}

/// Runs `delete_file` jobs.
///
/// ```
/// use jobq::{Registry, handlers::DeleteFileHandler};
/// assert_eq!(Registry::new().with(DeleteFileHandler).names(), ["delete_file"]);
/// ```
pub struct DeleteFileHandler;

impl Handler for DeleteFileHandler {
    type Payload = DeleteFile;

    fn run(&self, ctx: &Context, job: DeleteFile) -> Result<Outcome<DeletedFile>, HandlerError> {
        let path = crate::normalise_path(&job.path)?;
        let (sha256, expect) = match ctx.look(&path)? {
            Sight::File { sha256, .. } => (Some(sha256.clone()), Expect::Sha256(sha256)),
            Sight::Absent if job.require_exists => {
                let message = format!("{path} is not there, and the job requires that it exists");
                return Err(HandlerError::permanent(message).with_code("file_missing"));
            }
            // Recorded all the same: the path is to be empty from now on.
            Sight::Absent => (None, Expect::Absent),
        };
        let result = DeletedFile { path: path.clone(), sha256 };
        Ok(Outcome::new(result).effect(FileEffect::Remove { path, expect }))
    }
}
