//! The job types that come with jobq, one file each. They use only what the
//! crate exports, as an application's own types do.

mod claude_extraction;
mod create_file;
mod delete_file;
mod sync_aws;
mod write_files;

pub use claude_extraction::{ClaudeCode, ClaudeExtraction, ClaudeExtractionHandler, ExtractedFile, Format};
pub use create_file::{CreateFile, CreateFileHandler, CreatedFile};
pub use delete_file::{DeleteFile, DeleteFileHandler, DeletedFile};
#[cfg(feature = "aws")]
pub use sync_aws::SyncAwsHandler;
pub use sync_aws::{AwsSettings, Operation, SyncAws, SyncedResource};
pub use write_files::{CommittedFile, CommittedJob, WriteFiles, WrittenFiles};

use crate::{JobTypes, Payload as _, Registry};

/// Whether jobs of this type change the files that they hold. Other types may hold a file only to read it.
pub(crate) fn changes_what_it_holds(job_type: &str) -> bool {
    [CreateFile::TYPE, DeleteFile::TYPE, ClaudeExtraction::TYPE].contains(&job_type)
}

/// All built-in types.
pub(crate) fn types() -> JobTypes {
    registry().types()
}

/// All built-in types, with a handler where there is one.
pub(crate) fn registry() -> Registry {
    let registry = Registry::new()
        .with(CreateFileHandler)
        .with(DeleteFileHandler)
        .with(ClaudeExtractionHandler::default())
        .knowing::<WriteFiles>()
        .knowing::<SyncAws>();
    #[cfg(feature = "aws")]
    let registry = registry.with(SyncAwsHandler::default());
    registry
}
