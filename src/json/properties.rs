//! What holds for any text and any value.

use std::fmt::Write as _;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::properties::cases;

/// A value, not too large.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        "\\PC{0,8}".prop_map(Value::from),
        any::<char>().prop_map(|c| Value::from(c.to_string())),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map("[a-c\"\\\\{\\[é]{0,2}", inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The same value as somebody else would write it: other space, other order, other
/// escapes.
fn respelled(value: &Value, seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut out = String::new();
    write(value, &mut random, &mut out);
    out
}

fn write(value: &Value, random: &mut fastrand::Rng, out: &mut String) {
    let space = |random: &mut fastrand::Rng| ["", " ", "\n", "\t\r\n "][random.usize(..4)];
    out.push_str(space(random));
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            random.shuffle(&mut entries);
            out.push('{');
            for (number, (key, item)) in entries.into_iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                write(&Value::from(key.as_str()), random, out);
                out.push(':');
                write(item, random, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                write(item, random, out);
            }
            out.push(']');
        }
        Value::String(text) => {
            out.push('"');
            for c in text.chars() {
                if c < ' ' || matches!(c, '"' | '\\') || random.u8(..4) == 0 {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                } else {
                    out.push(c);
                }
            }
            out.push('"');
        }
        other => out.push_str(&other.to_string()),
    }
    out.push_str(space(random));
}

/// JSON, JSON with something wrong in it, or no JSON at all.
fn text() -> impl Strategy<Value = String> {
    let broken = (value(), any::<u64>(), any::<prop::sample::Index>(), "[\\[\\]{}\",:0-9eE.+a-z \\\\\n]{0,2}");
    prop_oneof![
        "[\\[\\]{}\",:0-9eE.+\\-ntf \\\\]{0,24}",
        "\\PC{0,24}",
        (value(), any::<u64>()).prop_map(|(value, seed)| respelled(&json!({ "a": value }), seed)),
        broken.prop_map(|(value, seed, at, insertion)| {
            let mut text = respelled(&json!({ "a": value }), seed);
            let at = at.index(text.len() + 1);
            let at = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.insert_str(at, &insertion);
            text
        }),
    ]
}

/// How many keys a text has: each is followed by the only kind of colon that is not in a string.
fn keys_of_text(text: &str) -> usize {
    let outside: String = text.replace("\\\\", "").replace("\\\"", "").split('"').step_by(2).collect();
    outside.matches(':').count()
}

/// How many keys a parser has kept of it.
fn keys_of(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.len() + map.values().map(keys_of).sum::<usize>(),
        Value::Array(items) => items.iter().map(keys_of).sum(),
        _ => 0,
    }
}

proptest! {
    #![proptest_config(cases(2_000))]

    /// Within the limits a payload is what any parser takes for an object, if the parser has lost no key.
    #[test]
    fn a_payload_is_any_object_with_unique_keys_and_nothing_else(text in text()) {
        let ours = crate::payload::check_text(&text).is_ok();
        let theirs = serde_json::from_str::<Value>(&text).ok().filter(Value::is_object);
        prop_assert_eq!(ours, theirs.is_some_and(|object| keys_of(&object) == keys_of_text(&text)));
    }

    /// Wherever the second of two keys stands, and however it is written.
    #[test]
    fn a_key_that_is_there_twice_is_found(value in value(), deep in 0_usize..100, seed in any::<u64>(), key in "[a-zé\\PC]{1,4}") {
        let entry = format!("{}:{}", respelled(&Value::from(key.as_str()), !seed), respelled(&value, seed));
        let object = json!({ key: value, "another key": value });
        let open = respelled(&object, seed).trim().strip_suffix('}').unwrap().to_owned();
        let within = |text: &str| format!("{}{text}{}", "{\"a\":[".repeat(deep / 2), "]}".repeat(deep / 2));
        let sound = within(&respelled(&object, seed));
        prop_assert!(crate::payload::check_text(&sound).is_ok(), "{}", sound);
        let twice = within(&format!("{open},{entry}}}"));
        let error = crate::payload::check_text(&twice).map_err(|e| e.to_string());
        prop_assert!(error.as_ref().is_err_and(|e| e.contains("twice")), "{error:?}: {twice}");
    }

    /// Brackets count where they open something, however many there are.
    #[test]
    fn the_limit_of_depth_is_exact(levels in 1_usize..300, brackets in any::<u64>(), more in "[\\[\\]{}\"]{0,6}") {
        let mut random = fastrand::Rng::with_seed(brackets);
        let text = serde_json::to_string(&more).unwrap();
        let (mut open, mut close) = ("{\"a\":".to_owned(), "}".to_owned());
        for _ in 1..levels {
            let (a, b) = if random.bool() { ("[", "]") } else { ("{\"[\":", "}") };
            open.push_str(a);
            close.insert_str(0, b);
        }
        let payload = open + &text + &close;
        prop_assert_eq!(check_limits(&payload).is_ok(), levels <= MAX_JSON_DEPTH);
        prop_assert_eq!(meaning_key(&payload).is_ok(), levels <= MAX_JSON_DEPTH);
        prop_assert_eq!(parse::<Value>(&payload).is_ok(), levels <= MAX_JSON_DEPTH);
    }

    /// The key is of the meaning: the same for every spelling, another for another value.
    #[test]
    fn one_meaning_has_one_key(one in value(), other in value(), seed in any::<u64>()) {
        let (one, other) = (json!({ "a": one }), json!({ "a": other }));
        let (text, again) = (respelled(&one, seed), respelled(&one, !seed));
        prop_assert!(same_meaning(&text, &again), "{} {}", text, again);
        // Compared as they are written: 0.0 and -0.0 are equal, and two numbers.
        let [written, other_written] = [&one, &other].map(ToString::to_string);
        prop_assert_eq!(same_meaning(&text, &respelled(&other, seed)), written == other_written);
    }

    /// What is stored is printed on one line and says the same; what is no JSON is a text.
    #[test]
    fn stored_text_is_one_line_of_the_same(text in text()) {
        let line = serde_json::to_string(&JsonText(text.clone())).unwrap();
        prop_assert!(!line.contains(['\n', '\r']));
        match serde_json::from_str::<&RawValue>(&text) {
            // Numbers that no value can hold are JSON, too.
            Ok(_) => prop_assert_eq!(serde_json::from_str::<Value>(&line).ok(), serde_json::from_str(&text).ok()),
            Err(_) => prop_assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text),
        }
    }
}
