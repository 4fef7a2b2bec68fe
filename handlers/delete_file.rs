//! `delete_file`: remove a file below the root.

use serde::{Deserialize, Serialize};

use crate::{Context, Expect, FileEffect, Handler, HandlerError, Hold, Outcome, Payload, Result, Sight};

/// Remove a file. One that is missing is fine unless `requireExists` says
/// otherwise.
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
