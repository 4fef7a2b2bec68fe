//! The result of a program: the last JSON object that it has printed, on one line
//! or on many, whatever else is printed before and after.

use serde_json::Value;

/// The text of the last object that begins on a line of its own.
pub(super) fn last_object(printed: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(printed);
    let (mut from, mut last) = (0, None);
    while let Some(line) = text.get(from..).filter(|rest| !rest.is_empty()) {
        let begin = from + line.len() - line.trim_start_matches([' ', '\t', '\r', '\n']).len();
        if let Some(object) = text[begin..].starts_with('{').then(|| first_value(&text[begin..])).flatten() {
            last = Some(object.to_owned());
            from = begin + object.len();
        } else {
            from = text[begin..].find('\n').map_or(text.len(), |end| begin + end + 1);
        }
    }
    last
}

/// The value that a text begins with.
fn first_value(text: &str) -> Option<&str> {
    // As a value, because that ends at a depth: what is never closed is not read to the end again and again.
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values.next()?.ok()?;
    Some(text[..values.byte_offset()].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_object_counts() {
        let last = |text: &str| last_object(text.as_bytes());
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(last(""), None);
        assert_eq!(last("done\n42\n[1]\n\"{}\"\n"), None);
        assert_eq!(last("{\"a\":1}\n{\"b\":2}\nbye\n"), is("{\"b\":2}"));
        assert_eq!(last("log {\"a\":1}\n"), None, "it does not stand on its own line");
        assert_eq!(last("  {\n  \"a\": {\"b\": 1}\n}\n"), is("{\n  \"a\": {\"b\": 1}\n}"), "not the one within");
        assert_eq!(last("{\"a\":1}\n{\"half\":"), is("{\"a\":1}"));
        assert_eq!(last("rest of it\"}\n{\"a\":\"ü\"} {\"b\":1}"), is("{\"b\":1}"));
        assert_eq!(last_object(b"\xff\xfe\n{\"a\":1}"), is("{\"a\":1}"));
    }

    #[test]
    fn what_only_looks_like_objects_takes_no_time() {
        // Would take minutes if every line were read to the end.
        let text = "{\"a\":[{},\n".repeat(100_000);
        assert_eq!(last_object(text.as_bytes()), None);
    }
}
