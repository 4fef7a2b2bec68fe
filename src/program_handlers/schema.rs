//! `<type>.schema.json`: a JSON Schema that the payloads of a type must meet.

use std::fs::Metadata;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;

use crate::error::{Error, Result, printable};

/// A schema file larger than this is a mistake.
const MOST_BYTES: u64 = 4 << 20;

/// What changes when a file does, or another takes its place.
#[derive(PartialEq, Eq)]
struct Stamp {
    size: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.size(),
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// A schema as it was read.
pub(super) struct Schema {
    path: PathBuf,
    /// None if there is nothing to go by.
    stamp: Option<Stamp>,
    /// Or why it cannot be used.
    validator: std::result::Result<Validator, String>,
}

impl Schema {
    /// What is there now; `known` if that is still so. A thing of that name which
    /// cannot be read is not the same as none: somebody wants payloads to be judged.
    pub(super) fn at(path: &Path, known: Option<Arc<Self>>) -> Option<Arc<Self>> {
        std::fs::symlink_metadata(path).ok()?;
        let metadata = std::fs::metadata(path);
        let stamp = metadata.as_ref().ok().map(Stamp::of);
        if let Some(known) = known.filter(|known| stamp.is_some() && known.stamp == stamp) {
            return Some(known);
        }
        let validator = match metadata {
            Ok(metadata) if !metadata.is_file() => Err("is not a file".to_owned()),
            Ok(_) => read(path).and_then(|text| compile(&text)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err("is a link to nothing".to_owned()),
            Err(e) => Err(format!("cannot be read: {e}")),
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
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { String::new() } else { format!("at {place}: ") };
        let what = format!("does not meet its schema: {place}{}", error.masked());
        Err(Error::invalid("payload", printable(&what)))
    }
}

fn read(path: &Path) -> std::result::Result<String, String> {
    let cannot = |e| format!("cannot be read: {e}");
    // It may have become something else meanwhile, and opening that must not wait for anybody.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = std::fs::File::options().read(true).custom_flags(nonblocking).open(path).map_err(cannot)?;
    if !file.metadata().map_err(cannot)?.is_file() {
        return Err("is not a file".to_owned());
    }
    let mut text = String::new();
    file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(cannot)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(format!("is larger than {MOST_BYTES} bytes"));
    }
    Ok(text)
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
        assert!(error.contains("/a/1") && error.contains("integer"), "{error}");
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

    #[test]
    fn another_file_in_its_place_is_seen_even_if_it_looks_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["x.schema.json", "other"].map(|name| folder.path().join(name));
        std::fs::write(&path, r#"{"type":"object"}"#).unwrap();
        let known = Schema::at(&path, None).unwrap();
        assert!(Arc::ptr_eq(&known, &Schema::at(&path, Some(Arc::clone(&known))).unwrap()));
        std::fs::write(&other, r#"{"type":"string"}"#).unwrap();
        let modified = path.metadata().unwrap().modified().unwrap();
        std::fs::File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
        std::fs::rename(&other, &path).unwrap();
        let now = Schema::at(&path, Some(known)).unwrap();
        assert!(now.check("{}").is_err());
    }
}
