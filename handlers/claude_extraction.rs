//! `claude_extraction`: a frozen prompt for Claude Code whose answer becomes a
//! file.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{DefaultKey, Defaults, Error, Hold, Payload, Result};

/// A prompt, captured when the job is queued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClaudeExtraction {
    /// What to ask, word for word.
    pub prompt: String,
    /// Where the answer goes, below the root.
    pub target_path: String,
    /// The requirement this comes from.
    pub requirement_id: String,
    /// sha256 of the prompt in hex; computed when it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_hash: Option<String>,
}

impl ClaudeExtraction {
    /// sha256 of the prompt, in hex.
    #[must_use]
    pub fn prompt_hash(&self) -> String {
        hex(&Sha256::digest(self.prompt.as_bytes()))
    }
}

impl Payload for ClaudeExtraction {
    const TYPE: &'static str = "claude_extraction";
    type Output = serde_json::Value;

    fn validate(&self) -> Result<()> {
        if self.prompt.is_empty() {
            return Err(Error::invalid("prompt", "is empty"));
        }
        if self.requirement_id.is_empty() {
            return Err(Error::invalid("requirementId", "is empty"));
        }
        match &self.prompt_hash {
            Some(hash) if !hash.eq_ignore_ascii_case(&self.prompt_hash()) => {
                Err(Error::invalid("promptHash", "is not the sha256 of the prompt"))
            }
            _ => Ok(()),
        }
    }

    fn holds(&self) -> Result<Vec<Hold>> {
        let hold = Hold::path(&self.target_path).map_err(|e| Error::invalid("targetPath", e))?;
        Ok(vec![hold])
    }

    /// The same requirement with the same prompt is the same job, whatever the target.
    fn default_key(&self) -> DefaultKey {
        // Hashed together, so that an id of any length and content makes a key.
        let both = Sha256::digest(format!("{}\0{}", self.requirement_id, self.prompt_hash()));
        DefaultKey::Key(hex(&both))
    }

    fn defaults() -> Defaults {
        Defaults { timeout: std::time::Duration::from_secs(600), ..Defaults::default() }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
