//! `claude_extraction`: a frozen prompt for Claude Code whose answer becomes a
//! file.

mod answer;
mod echo;
mod excerpt;
mod handler;
mod json_text;
mod judge;
mod trouble;
mod wait;

use serde::{Deserialize, Serialize};

pub use self::handler::{ClaudeCode, ClaudeExtractionHandler, ExtractedFile};
use crate::{DefaultKey, Defaults, Error, Hold, Keep, Payload, Result, sha256_hex};

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
    /// What the answer must be; any text if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
}

/// What the answer of Claude must be.
///
/// ```
/// use jobq::handlers::{ClaudeExtraction, Format};
/// let ask = ClaudeExtraction::new("REQ-1", "List the nouns as JSON.", "out/nouns.json");
/// let ask = ClaudeExtraction { format: Some(Format::Json), ..ask };
/// assert_eq!(serde_json::to_value(&ask).unwrap()["format"], "json");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Any text, taken as it is.
    #[default]
    Text,
    /// JSON. One fence of backticks around it is taken off.
    Json,
}

impl ClaudeExtraction {
    /// A prompt with its hash, whose answer may be any text.
    ///
    /// ```
    /// use jobq::handlers::{ClaudeExtraction, Format};
    /// let text = ClaudeExtraction::new("REQ-1", "What follows from this?", "out/req-1.md");
    /// assert_eq!(text.prompt_hash, Some(jobq::sha256_hex(b"What follows from this?")));
    /// let json = ClaudeExtraction { format: Some(Format::Json), ..text };
    /// # let _ = json;
    /// ```
    pub fn new(requirement_id: impl Into<String>, prompt: impl Into<String>, target_path: impl Into<String>) -> Self {
        let prompt = prompt.into();
        Self {
            prompt_hash: Some(sha256_hex(prompt.as_bytes())),
            prompt,
            target_path: target_path.into(),
            requirement_id: requirement_id.into(),
            format: None,
        }
    }

    /// sha256 of the prompt, in hex.
    #[must_use]
    pub fn prompt_hash(&self) -> String {
        sha256_hex(self.prompt.as_bytes())
    }
}

impl Payload for ClaudeExtraction {
    const TYPE: &'static str = "claude_extraction";
    type Output = ExtractedFile;

    fn validate(&self) -> Result<()> {
        if self.prompt.trim().is_empty() {
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
        let both = format!("{}\0{}", self.requirement_id, self.prompt_hash());
        DefaultKey::Key(sha256_hex(both.as_bytes()))
    }

    fn defaults() -> Defaults {
        Defaults {
            timeout: std::time::Duration::from_secs(600),
            // The job is what says that its prompt has been paid for: without it the same prompt is asked again.
            retention: Keep::Forever,
            ..Defaults::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(more: &str) -> Result<ClaudeExtraction, String> {
        let text = format!(r#"{{"prompt":"p","targetPath":"out/a","requirementId":"r"{more}}}"#);
        let payload: ClaudeExtraction = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        payload.validate().map_err(|e| e.to_string())?;
        Ok(payload)
    }

    #[test]
    fn a_format_is_one_that_is_known() {
        assert_eq!(check("").unwrap().format, None);
        assert_eq!(check(r#","format":"text""#).unwrap().format, Some(Format::Text));
        assert_eq!(check(r#","format":"json""#).unwrap().format, Some(Format::Json));
        let error = check(r#","format":"yaml""#).unwrap_err();
        assert!(error.contains("yaml") && error.contains("json"), "{error}");
    }

    #[test]
    fn the_constructor_gives_the_hash_that_the_check_asks_for() {
        let made = ClaudeExtraction::new("r", "p", "out/a");
        made.validate().unwrap();
        assert_eq!(made.prompt_hash.as_deref(), Some(made.prompt_hash().as_str()));
        let hash = format!(r#","promptHash":"{}""#, made.prompt_hash().to_uppercase());
        assert!(check(&hash).is_ok(), "in any case of letters");
        assert!(check(r#","promptHash":"00""#).unwrap_err().contains("promptHash"));
    }

    #[test]
    fn a_prompt_of_nothing_but_space_is_refused() {
        let blank = ClaudeExtraction::new("r", " \n\t", "out/a");
        assert_eq!(blank.validate().unwrap_err().field(), Some("prompt"));
    }

    #[test]
    fn neither_the_target_nor_the_format_makes_another_job() {
        let one = ClaudeExtraction::new("r", "p", "out/a");
        let other = ClaudeExtraction { target_path: "out/b".into(), format: Some(Format::Json), ..one.clone() };
        assert_eq!(one.default_key(), other.default_key());
        assert_ne!(one.default_key(), ClaudeExtraction::new("r", "p2", "out/a").default_key());
        assert_ne!(one.default_key(), ClaudeExtraction::new("r2", "p", "out/a").default_key());
    }
}
