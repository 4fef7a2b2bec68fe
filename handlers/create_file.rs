//! `create_file`: write a file below the root.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use crate::effects::Content;
use crate::{
    Context, Error, Expect, FileEffect, Handler, HandlerError, Hold, Outcome, Payload, Result, Sight, sha256_hex,
};

/// Write a file. Without `overwrite`, other content that is already there is
/// left alone and the job fails.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = std::sync::Arc::new(jobq::Queue::init(folder.path())?);
/// # let drain = || {
/// #     let options = jobq::WorkerOptions { drain: true, ..Default::default() };
/// #     jobq::Worker::new(queue.clone(), jobq::Registry::builtin(), options)?.run(&jobq::Shutdown::new())
/// # };
/// use jobq::handlers::CreateFile;
/// queue.enqueue(CreateFile::text("notes/a.txt", "hello"))?;
/// queue.enqueue(CreateFile { overwrite: true, ..CreateFile::bytes("logo.png", [137, 80, 78, 71]) })?;
/// drain()?;
/// assert_eq!(std::fs::read_to_string(folder.path().join("notes/a.txt")).unwrap(), "hello");
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateFile {
    /// Below the root.
    pub path: String,
    /// The content, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The content in base64, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_base64: Option<String>,
    /// Replace what is there.
    #[serde(default)]
    pub overwrite: bool,
}

/// What a `create_file` job leaves.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = std::sync::Arc::new(jobq::Queue::init(folder.path())?);
/// # let drain = || {
/// #     let options = jobq::WorkerOptions { drain: true, ..Default::default() };
/// #     jobq::Worker::new(queue.clone(), jobq::Registry::builtin(), options)?.run(&jobq::Shutdown::new())
/// # };
/// use jobq::handlers::CreateFile;
/// let id = queue.enqueue(CreateFile::text("a.txt", "hello"))?.id;
/// drain()?;
/// let created = queue.result::<CreateFile>(&id)?.unwrap();
/// assert_eq!((created.size, created.changed), (5, true));
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreatedFile {
    /// Where.
    pub path: String,
    /// sha256 of the content.
    pub sha256: String,
    /// Its size in bytes.
    pub size: u64,
    /// False when the same content was already there.
    pub changed: bool,
}

impl CreateFile {
    /// A text file.
    pub fn text(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: Some(content.into()), content_base64: None, overwrite: false }
    }

    /// A file of any content.
    pub fn bytes(path: impl Into<String>, content: impl AsRef<[u8]>) -> Self {
        let content_base64 = Some(BASE64_STANDARD.encode(content));
        Self { path: path.into(), content: None, content_base64, overwrite: false }
    }

    /// The content, as it is to be on the disk.
    pub fn into_content(self) -> Result<Vec<u8>> {
        match (self.content, self.content_base64) {
            (Some(text), None) => Ok(text.into_bytes()),
            (None, Some(text)) => BASE64_STANDARD
                .decode(text)
                .map_err(|e| Error::invalid("contentBase64", format_args!("is not base64: {e}"))),
            _ => Err(Error::invalid("content", "give exactly one of content and contentBase64")),
        }
    }
}

impl Payload for CreateFile {
    const TYPE: &'static str = "create_file";
    type Output = CreatedFile;

    fn validate(&self) -> Result<()> {
        if self.content.is_some() && self.content_base64.is_none() {
            return Ok(());
        }
        self.clone().into_content().map(drop)
    }

    fn holds(&self) -> Result<Vec<Hold>> {
        Ok(vec![Hold::path(&self.path)?])
    }
}

/// Runs `create_file` jobs.
///
/// ```
/// use jobq::{Registry, handlers::CreateFileHandler};
/// assert_eq!(Registry::new().with(CreateFileHandler).names(), ["create_file"]);
/// ```
pub struct CreateFileHandler;

impl Handler for CreateFileHandler {
    type Payload = CreateFile;

    fn run(&self, ctx: &Context, job: CreateFile) -> Result<Outcome<CreatedFile>, HandlerError> {
        let path = crate::normalise_path(&job.path)?;
        let overwrite = job.overwrite;
        let content = job.into_content()?;
        let (sha256, size) = (sha256_hex(&content), content.len() as u64);
        let (content, expect, changed) = match ctx.look(&path)? {
            Sight::File { sha256: found, .. } if found == sha256 => {
                (Content::InPlace { sha256: sha256.clone(), size }, Expect::Sha256(found), false)
            }
            Sight::File { sha256: found, .. } if !overwrite => {
                let message = format!(
                    "{path} is there with other content (sha256 {found}; the job has {sha256}); say overwrite to replace it"
                );
                let details = serde_json::json!({ "path": path, "found": found, "new": sha256 });
                return Err(HandlerError::permanent(message).with_code("file_exists").with_details(details));
            }
            Sight::File { sha256: found, .. } => (Content::Staged(ctx.stage(&content)?), Expect::Sha256(found), true),
            Sight::Absent => (Content::Staged(ctx.stage(&content)?), Expect::Absent, true),
        };
        let result = CreatedFile { path: path.clone(), sha256, size, changed };
        Ok(Outcome::new(result).effect(FileEffect::Put { path, content, expect }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_comes_exactly_once() {
        let check = |text: &str| {
            serde_json::from_str::<CreateFile>(text)
                .map_err(|e| e.to_string())
                .and_then(|p| p.validate().map_err(|e| e.to_string()))
        };
        assert!(check(r#"{"path":"a","content":""}"#).is_ok());
        assert!(check(r#"{"path":"a","contentBase64":"aGk="}"#).is_ok());
        for bad in [
            r#"{"path":"a"}"#,
            r#"{"path":"a","content":"","contentBase64":""}"#,
            r#"{"path":"a","contentBase64":"a"}"#,
            r#"{"path":"a","contentBase64":"aGk"}"#,
            r#"{"path":"a","content":"","mode":7}"#,
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn any_bytes_can_be_given() {
        let job = CreateFile::bytes("a", [0, 255, 10]);
        job.validate().unwrap();
        assert_eq!(job.into_content().unwrap(), [0, 255, 10]);
    }
}
