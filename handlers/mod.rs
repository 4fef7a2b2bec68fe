//! The job types that come with jobq, one file each. They use only what the
//! crate exports, as an application's own types do.

mod claude_extraction;
mod create_file;
mod delete_file;
mod sync_aws;

pub use claude_extraction::ClaudeExtraction;
pub use create_file::CreateFile;
pub use delete_file::DeleteFile;
pub use sync_aws::SyncAws;

use crate::JobTypes;

/// All built-in types.
pub(crate) fn types() -> JobTypes {
    JobTypes::new().with::<CreateFile>().with::<DeleteFile>().with::<ClaudeExtraction>().with::<SyncAws>()
}
