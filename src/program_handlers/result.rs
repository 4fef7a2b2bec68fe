//! The result of a program: the last JSON object that it has printed, on one line
//! or on many, whatever else is printed before and after.
//!
//! Only an object that stands by itself counts. One that lies within something else
//! must not be taken for it when the whole cannot be read: a wrong result is worse
//! than none. So what looks like an object, comes last and is none is an error.

use serde_json::Value;

/// So often it is looked for the end of what is no JSON; each look may go through all of it.
const MOST_LOOKS: usize = 16;

/// The text of the last object that begins on a line of its own; `is_cut` if only
/// the end of what was printed is there. Or what is wrong with it.
pub(super) fn last_object(printed: &[u8], is_cut: bool) -> Result<Option<String>, String> {
    let text = String::from_utf8_lossy(printed);
    let mut last = Ok(None);
    let mut looks = 0;
    // Where the first line of a cut output begins is not known.
    let mut from = if is_cut { end_of_line(&text) } else { 0 };
    while from < text.len() {
        let begin = text.len() - text[from..].trim_start_matches([' ', '\t', '\r', '\n']).len();
        let rest = &text[begin..];
        let is_object = rest.starts_with('{');
        from = begin + end_of_line(rest);
        if !is_object && !rest.starts_with('[') {
            continue;
        }
        match first_value(rest) {
            Ok(value) => {
                from = begin + value.len();
                if is_object && !is_within(&text[from..]) {
                    last = Ok(Some(value.to_owned()));
                } else if is_object && is_cut {
                    last = Err(too_long());
                }
            }
            // All that follows belongs to it.
            Err(error) if error.is_eof() => {
                if is_object && looks_like_one(rest) {
                    last = Err("the last JSON object that it printed has no end".to_owned());
                }
                break;
            }
            Err(error) if is_object && looks_like_one(rest) => {
                last = Err(format!("the last object that it printed is not JSON that can be kept: {error}"));
                if looks < MOST_LOOKS {
                    looks += 1;
                    from = begin + extent(rest).unwrap_or_else(|| end_of_line(rest));
                }
            }
            // `{foo} bar` and `[info] bar`: words.
            Err(_) => {}
        }
    }
    if is_cut && last == Ok(None) && text.trim_end().ends_with('}') {
        return Err(too_long());
    }
    last
}

fn too_long() -> String {
    "it printed an object that is longer than what is kept of its output (keep_output)".to_owned()
}

fn end_of_line(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |end| end + 1)
}

/// The value that a text begins with.
fn first_value(text: &str) -> serde_json::Result<&str> {
    // As a value, because that ends at a depth: what is never closed is not read to the end again and again.
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values.next().transpose()?;
    Ok(text[..values.byte_offset()].trim_end())
}

/// Whether what comes after an object shows that it is a part of something.
fn is_within(rest: &str) -> bool {
    rest.trim_start().starts_with([',', ']', '}'])
}

/// `{"` is the beginning of an object; `{` may be that of any text.
fn looks_like_one(text: &str) -> bool {
    text[1..].trim_start().starts_with('"')
}

/// How long something is that has the braces of an object and is not JSON.
fn extent(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            // No string goes on there, so it cannot be said where this ends.
            b'\n' if in_string => return None,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(text: &str, object: &str) {
        assert_eq!(last_object(text.as_bytes(), false), Ok(Some(object.to_owned())), "{text}");
    }

    #[track_caller]
    fn is_none(text: &str) {
        assert_eq!(last_object(text.as_bytes(), false), Ok(None), "{text}");
    }

    #[track_caller]
    fn is_wrong(text: &str, is_cut: bool, word: &str) {
        let why = last_object(text.as_bytes(), is_cut).expect_err(text);
        assert!(why.contains(word), "{why}");
    }

    #[test]
    fn the_last_object_counts() {
        is_none("");
        is_none("done\n42\n[1]\n\"{}\"\n");
        is("{\"a\":1}\n{\"b\":2}\nbye\n", "{\"b\":2}");
        is_none("log {\"a\":1}\n");
        is("  {\n  \"a\": {\"b\": 1}\n}\n", "{\n  \"a\": {\"b\": 1}\n}");
        is("rest of it\"}\n{\"a\":\"ü\"} {\"b\":1}", "{\"b\":1}");
        assert_eq!(last_object(b"\xff\xfe\n{\"a\":1}", false), Ok(Some("{\"a\":1}".to_owned())));
    }

    #[test]
    fn an_object_within_something_is_not_taken_for_the_whole() {
        is_none("[\n{\"a\":1},\n{\"a\":2}\n]\n");
        is_none("items = [\n{\"a\":1},\n{\"a\":2}\n]\n");
        is_wrong("{\n\"big\":1e999,\n\"inner\":\n{\"a\":1}\n}\n", false, "number out of range");
        is_wrong("{\"big\":\nNaN, \"inner\":\n{\"a\":1}\n}\nbye\n", false, "not JSON");
        is_wrong(&format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200)), false, "recursion");
        is_wrong("{\"a\":\"\\ud800\"}", false, "not JSON");
    }

    #[test]
    fn what_is_no_object_and_comes_last_is_wrong_and_what_comes_before_one_is_not() {
        is_wrong("{\"a\":1}\n{\"half\":", false, "no end");
        is_wrong("{\"half\":\n{\"a\":1}\n", false, "no end");
        is("{\"x\":NaN}\n{\"a\":1}\n", "{\"a\":1}");
        is("{\"x\": oops\n{\"a\":1}\n", "{\"a\":1}");
        is("{\"a\":1}\n{foo} bar\n{\n", "{\"a\":1}");
        is_none("{foo} bar\n[info] bar\n{'a': 1}\n");
    }

    #[test]
    fn of_a_cut_output_only_what_is_whole_counts() {
        let last = |text: &str| last_object(text.as_bytes(), true);
        assert_eq!(last("rest\n{\"a\":1}\n"), Ok(Some("{\"a\":1}".to_owned())));
        assert_eq!(last("1}, {\"n\":2}]}\n{\"a\":1}\n"), Ok(Some("{\"a\":1}".to_owned())));
        assert_eq!(last("many words\nand no object\n"), Ok(None));
        is_wrong("1},{\"n\":2}]}\n", true, "keep_output");
        is_wrong(" \"n\": 1\n },\n {\n \"n\": 2\n }\n ]\n}\n", true, "keep_output");
        is_wrong("1},\n{\"n\":2}\n]}\nbye\n", true, "keep_output");
        is_wrong(" \"n\": 1\n}\n", true, "keep_output");
    }

    #[test]
    fn what_only_looks_like_objects_takes_no_time() {
        // Would take long if every line were read to the end.
        for line in ["{\"a\":[{},\n", "{\"a\":[\n", "[{},\n", "{\"a\" oops [\n", "{\"a\":[{},{},\n{},\n"] {
            let _ = last_object(line.repeat(2_000).as_bytes(), false);
        }
    }
}
