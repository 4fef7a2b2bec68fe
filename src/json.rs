//! JSON as it is stored: kept byte for byte as it was given, compared by
//! meaning.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Largest payload, result or checkpoint, in bytes.
pub const MAX_JSON_BYTES: usize = 16 * 1024 * 1024;
/// Deepest nesting of a payload.
pub const MAX_JSON_DEPTH: usize = 128;

/// JSON text from the database. Serialises as the JSON it is; text that is not
/// JSON (a plain-SQL row not yet admitted) serialises as a string.
///
/// ```
/// let text = jobq::JsonText(r#"{ "to": "ada" }"#.to_owned());
/// assert_eq!(text.as_str(), r#"{ "to": "ada" }"#, "as it was given");
/// assert_eq!(text.parse::<serde_json::Value>()?["to"], "ada");
/// assert_eq!(serde_json::to_value(&text).unwrap(), serde_json::json!({ "to": "ada" }));
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonText(pub String);

impl JsonText {
    /// The text, exactly as stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, parsed.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        parse(&self.0).map_err(|e| Error::invalid("json", e))
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Looked at as it stands: with a line break in a string it is no JSON, and must not look like some.
        let raw = RawValue::from_string(trim(&self.0).to_owned());
        // One object per line is the contract, so line breaks between tokens have to go.
        match raw.and_then(|raw| RawValue::from_string(compact(raw.get()))) {
            Ok(raw) => raw.serialize(serializer),
            Err(_) => serializer.serialize_str(&self.0),
        }
    }
}

/// Without what JSON may have around it, which is less than what else is called space.
fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// Checks the limits of size and depth.
pub(crate) fn check_limits(text: &str) -> Result<()> {
    if text.len() > MAX_JSON_BYTES {
        return Err(Error::invalid("payload", "is larger than 16 MiB; put the data in a file and name its path"));
    }
    if depth(text) > MAX_JSON_DEPTH {
        return Err(Error::invalid("payload", "is nested deeper than 128 levels"));
    }
    Ok(())
}

/// Parses text whose depth has been checked; the parser's own, lower limit
/// would refuse what [`MAX_JSON_DEPTH`] allows.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    let mut parser = serde_json::Deserializer::from_str(text);
    if depth(text) <= MAX_JSON_DEPTH {
        parser.disable_recursion_limit();
    }
    let value = T::deserialize(&mut parser)?;
    parser.end()?;
    Ok(value)
}

/// JSON in which no object has a key twice, compared after unescaping. Readers disagree about which of the two counts:
/// a schema would check one, and a program could use the other.
pub(crate) struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

macro_rules! nothing_to_check {
    ($($visit:ident $value:ty),*) => { $(fn $visit<E>(self, _: $value) -> Result<Self, E> { Ok(self) })* };
}

impl<'de> de::Visitor<'de> for UniqueKeys {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if let Some(key) = keys.replace(key) {
                // The parser adds line and column. A key may have megabytes.
                let key: String = key.chars().take(80).collect();
                return Err(de::Error::custom(format_args!("an object has the key {key:?} twice; keep one")));
            }
            map.next_value::<Self>()?;
        }
        Ok(self)
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    nothing_to_check!(visit_str &str, visit_u64 u64, visit_i64 i64, visit_f64 f64, visit_bool bool);

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }
}

/// sha256 of some bytes, in hexadecimal.
///
/// ```
/// assert!(jobq::sha256_hex(b"hello").starts_with("2cf24dba"));
/// ```
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let pairs = bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    pairs.map(char::from).collect()
}

/// How keys begin that are made from the payload. `schema.sql` knows it too.
pub(crate) const DEFAULT_KEY: &str = "payload:";

/// A key that two payloads share when they mean the same: 128 bits of a hash,
/// because the index over unfinished keys is written at a random place for every
/// job and should be small.
pub(crate) fn meaning_key(text: &str) -> serde_json::Result<String> {
    // Whoever asks may not have checked it yet, or nobody ever did (plain SQL): this goes one step down the stack, and
    // once through the rest, for each level.
    if depth(text) > MAX_JSON_DEPTH {
        return Err(serde::de::Error::custom(format_args!("is nested deeper than {MAX_JSON_DEPTH} levels")));
    }
    let mut canonical = String::with_capacity(text.len());
    write_canonical(trim(text), &mut canonical)?;
    Ok(format!("{DEFAULT_KEY}{}", &sha256_hex(canonical.as_bytes())[..32]))
}

/// Whether two payloads mean the same.
pub(crate) fn same_meaning(a: &str, b: &str) -> bool {
    a == b || matches!((meaning_key(a), meaning_key(b)), (Ok(x), Ok(y)) if x == y)
}

/// Sorted keys, no space, strings in one spelling. Numbers stay as they are
/// written: parsed, two different long ones could look alike.
fn write_canonical(text: &str, out: &mut String) -> serde_json::Result<()> {
    match text.as_bytes().first() {
        Some(b'{') => {
            let map: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
            out.push('{');
            for (key, item) in map {
                out.push_str(&serde_json::to_string(&key)?);
                out.push(':');
                write_canonical(item.get(), out)?;
                out.push(',');
            }
            out.push('}');
        }
        Some(b'[') => {
            out.push('[');
            for item in serde_json::from_str::<Vec<&RawValue>>(text)? {
                write_canonical(item.get(), out)?;
                out.push(',');
            }
            out.push(']');
        }
        Some(b'"') => out.push_str(&serde_json::to_string(&serde_json::from_str::<String>(text)?)?),
        _ => out.push_str(text),
    }
    Ok(())
}

/// The deepest nesting of brackets outside strings.
fn depth(text: &str) -> usize {
    let (mut now, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for &byte in text.as_bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                now += 1;
                deepest = deepest.max(now);
            }
            b'}' | b']' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The same JSON on one line.
fn compact(text: &str) -> String {
    if !text.bytes().any(|b| matches!(b, b'\n' | b'\r')) {
        return trim(text).to_owned();
    }
    // A line break inside a string is always escaped, so raw ones are between tokens.
    trim(text).replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Space that JSON does not know makes it no JSON.
    #[test]
    fn stored_text_that_only_looks_like_json_is_shown_as_text() {
        let shown = |text: &str| serde_json::to_string(&JsonText(text.to_owned())).unwrap();
        assert_eq!(shown(" \r\n{\n}\t"), "{ }");
        assert_eq!(shown("\u{a0}{}"), "\"\u{a0}{}\"");
        assert_eq!(shown("{}\u{b}"), r#""{}\u000b""#);
    }

    #[test]
    fn the_depth_limit_is_exact_and_brackets_in_strings_do_not_count() {
        let nested = |n: usize| format!("{}{}", "{\"a\":".repeat(n - 1) + "{", "}".repeat(n));
        assert!(check_limits(&nested(128)).is_ok());
        assert!(parse::<Value>(&nested(128)).is_ok());
        assert!(check_limits(&nested(129)).unwrap_err().to_string().contains("128"));
        assert_eq!(depth(r#"{"a":"[[[{\"["}"#), 1);
    }

    #[test]
    fn meaning_ignores_order_and_space_and_nothing_else() {
        assert!(same_meaning(r#"{"a":1,"b":[2]}"#, "{\"b\" : [2],\n\"a\":1}"));
        assert!(!same_meaning(r#"{"a":1}"#, r#"{"a":2}"#));
        assert!(!same_meaning(r#"{"a":"1"}"#, r#"{"a":1}"#));
        assert!(!same_meaning(r#"{"a":[1,2]}"#, r#"{"a":[12]}"#));
        assert!(same_meaning(r#"{"p":1.5,"a":"\u0041"}"#, r#"{ "a":"A", "p":1.5 }"#));
    }

    #[test]
    fn numbers_that_parse_alike_but_differ_are_not_the_same() {
        assert!(!same_meaning(r#"{"n":100000000000000000000001}"#, r#"{"n":100000000000000000000002}"#));
    }

    #[test]
    fn stored_text_prints_on_one_line_even_when_it_is_not_json() {
        let pretty = JsonText("{\n  \"a\": \"x\\ny\"\n}".into());
        assert_eq!(serde_json::to_string(&pretty).unwrap(), r#"{   "a": "x\ny" }"#);
        assert_eq!(serde_json::to_string(&JsonText("{oops".into())).unwrap(), r#""{oops""#);
        assert_eq!(serde_json::to_string(&JsonText("{\"a\":\"x\ny\"}".into())).unwrap(), r#""{\"a\":\"x\ny\"}""#);
    }
}
