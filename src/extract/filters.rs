//! Filters that prompts need otherwise than web pages do.

use minijinja::value::Kwargs;
use minijinja::{Error as JinjaError, ErrorKind as JinjaKind, Value};
use serde::Serialize as _;

/// JSON as people write it. The engine's own filter escapes `<`, `>`, `&` and `'`
/// for web pages.
#[expect(clippy::needless_pass_by_value, reason = "filters are given their arguments")]
pub(super) fn to_json(value: Value, options: Kwargs) -> Result<String, JinjaError> {
    let indent: Option<usize> = options.get("indent")?;
    options.assert_all_used()?;
    let bad = |e: serde_json::Error| JinjaError::new(JinjaKind::BadSerialization, e.to_string());
    let Some(indent) = indent else { return serde_json::to_string(&value).map_err(bad) };
    let (mut text, indent) = (Vec::new(), " ".repeat(indent.min(16)));
    let style = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, style)).map_err(bad)?;
    String::from_utf8(text).map_err(|e| JinjaError::new(JinjaKind::BadSerialization, e.to_string()))
}

/// As the engine's own, but without regard to what is marked as safe for web pages.
#[expect(clippy::needless_pass_by_value, reason = "filters are given their arguments")]
pub(super) fn join(value: Value, between: Option<String>) -> Result<String, JinjaError> {
    let items: Vec<String> = match value.as_str() {
        Some(text) => text.chars().map(String::from).collect(),
        None => value.try_iter()?.map(|item| item.to_string()).collect(),
    };
    Ok(items.join(&between.unwrap_or_default()))
}
