//! `delete_file`: remove a file below the root.

use serde::{Deserialize, Serialize};

use crate::{Hold, Payload, Result};

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

impl Payload for DeleteFile {
    const TYPE: &'static str = "delete_file";
    type Output = serde_json::Value;

    fn holds(&self) -> Result<Vec<Hold>> {
        Ok(vec![Hold::path(&self.path)?])
    }
}
