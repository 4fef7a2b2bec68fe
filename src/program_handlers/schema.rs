//! `<type>.schema.json`: a JSON Schema that the payloads of a type must meet.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use jsonschema::Validator;
use serde_json::Value;

use crate::error::{Error, Result, printable};

/// A schema file larger than this is a mistake.
const MOST_BYTES: u64 = 4 << 20;

/// A schema as it was read.
pub(super) struct Schema {
    path: PathBuf,
    stamp: (SystemTime, u64),
    /// Or why it cannot be used.
    validator: std::result::Result<Validator, String>,
}

impl Schema {
    /// What is there now; `known` if that is still so.
    pub(super) fn at(path: &Path, known: Option<Arc<Self>>) -> Option<Arc<Self>> {
        let metadata = std::fs::metadata(path).ok()?;
        let stamp = (metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), metadata.len());
        if let Some(known) = known.filter(|known| known.stamp == stamp) {
            return Some(known);
        }
        let validator = if metadata.len() > MOST_BYTES {
            Err(format!("is larger than {MOST_BYTES} bytes"))
        } else {
            std::fs::read_to_string(path).map_err(|e| format!("cannot be read: {e}")).and_then(|text| compile(&text))
        };
        Some(Arc::new(Self { path: path.to_owned(), stamp, validator }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Why it cannot be used, if so.
    pub(super) fn problem(&self) -> Option<String> {
        let why = self.validator.as_ref().err()?;
        Some(printable(&format!("{} {why}", self.path.display())))
    }

    /// Values are left out of what is said: they may be large, or nobody's business.
    pub(super) fn check(&self, text: &str) -> Result<()> {
        let Ok(validator) = &self.validator else {
            return Err(Error::invalid("schema", self.problem().unwrap_or_default()));
        };
        let payload: Value =
            crate::json::parse(text).map_err(|e| Error::invalid("payload", format_args!("is not JSON: {e}")))?;
        let Err(error) = validator.validate(&payload) else { return Ok(()) };
        let more = validator.iter_errors(&payload).skip(1).take(100).count();
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { String::new() } else { format!("at {place}: ") };
        let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
        let what = format!("does not meet its schema: {place}{}{more}", error.masked());
        Err(Error::invalid("payload", printable(&what)))
    }
}

fn compile(text: &str) -> std::result::Result<Validator, String> {
    let schema: Value = serde_json::from_str(text).map_err(|e| format!("is not JSON: {e}"))?;
    jsonschema::validator_for(&schema).map_err(|e| format!("is not a JSON Schema that can be used: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> Arc<Schema> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.schema.json");
        std::fs::write(&path, text).unwrap();
        Schema::at(&path, None).unwrap()
    }

    #[test]
    fn a_payload_is_judged_and_the_place_of_the_fault_named() {
        let schema = schema(r#"{"type":"object","required":["a"],"properties":{"a":{"items":{"type":"integer"}}}}"#);
        schema.check(r#"{"a":[1,2]}"#).unwrap();
        let error = schema.check(r#"{"a":[1,"a secret","another"]}"#).unwrap_err().to_string();
        assert!(error.contains("/a/1") && error.contains("integer") && error.contains("1 more"), "{error}");
        assert!(!error.contains("secret"), "{error}");
        let error = schema.check("{}").unwrap_err().to_string();
        assert!(error.contains("\"a\""), "{error}");
    }

    #[test]
    fn a_schema_that_is_none_refuses_and_says_so() {
        for text in ["{", r#"{"type":"nonsense"}"#, r#"{"$ref":"https://example.org/other.json"}"#] {
            let schema = schema(text);
            assert!(schema.problem().is_some(), "{text}");
            let error = schema.check("{}").unwrap_err();
            assert_eq!(error.field(), Some("schema"), "{error}");
        }
    }
}
