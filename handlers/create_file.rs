//! `create_file`: write a file below the root.

use serde::{Deserialize, Serialize};

use crate::{Error, Hold, Payload, Result};

/// Write a file. Without `overwrite`, other content that is already there is
/// left alone and the job fails.
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

impl CreateFile {
    /// A text file.
    pub fn text(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: Some(content.into()), content_base64: None, overwrite: false }
    }
}

impl Payload for CreateFile {
    const TYPE: &'static str = "create_file";
    type Output = serde_json::Value;

    fn validate(&self) -> Result<()> {
        match (&self.content, &self.content_base64) {
            (Some(_), None) => Ok(()),
            (None, Some(text)) if is_base64(text) => Ok(()),
            (None, Some(_)) => Err(Error::invalid("contentBase64", "is not base64")),
            _ => Err(Error::invalid("content", "give exactly one of content and contentBase64")),
        }
    }

    fn holds(&self) -> Result<Vec<Hold>> {
        Ok(vec![Hold::path(&self.path)?])
    }
}

/// Standard alphabet, padded.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
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
            r#"{"path":"a","content":"","mode":7}"#,
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
