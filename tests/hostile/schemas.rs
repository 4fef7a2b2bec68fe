//! Schemas that are none, or harmful, and payloads that do not meet a good one.

use super::case::{Case, nested};

const FILE: &str = ".jobq/handlers/judged.schema.json";
const LONG: &str = r#"{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}"#;

/// Unusable: they refuse every payload of their type and say why.
const WRONG: &[&str] = &[
    "",
    "{",
    "7",
    "\"x\"",
    "[]",
    "null",
    r#"{"type":"nonsense"}"#,
    r#"{"type":7}"#,
    r#"{"required":"a"}"#,
    r#"{"properties":[]}"#,
    r#"{"properties":{"a":7}}"#,
    r#"{"minProperties":-1}"#,
    r#"{"minProperties":1e400}"#,
    r#"{"properties":{"a":{"multipleOf":0}}}"#,
    r#"{"properties":{"a":{"pattern":"("}}}"#,
    r#"{"properties":{"a":{"pattern":"(x{1000}){1000}"}}}"#,
    r#"{"patternProperties":{"[":{}}}"#,
    r##"{"$ref":"#/nowhere"}"##,
    r##"{"$dynamicRef":"#nowhere"}"##,
    r#"{"$ref":"file:///etc/passwd"}"#,
    r#"{"$ref":"http://127.0.0.1:1/x"}"#,
    r#"{"$ref":"other.schema.json"}"#,
    r#"{"$schema":"http://example.org/mine"}"#,
    r#"{"type":"object","type":{"\u001b[31m":1}}"#,
];

/// Usable; this payload is not what they ask for, and finding that out takes no time.
const UNMET: &[(&str, &str)] = &[
    (r#"{"properties":{"a":{"pattern":"^(a+)+$"}}}"#, LONG),
    (r#"{"properties":{"a":{"pattern":"(?=(a+)+b)"}}}"#, LONG),
    (r#"{"properties":{"a":{"pattern":"^(?:(a|aa)+)\\1$"}}}"#, LONG),
    (r#"{"required":["\u001b[31m"]}"#, "{}"),
    (r#"{"properties":{"a":{"const":"\u001b[31m"}}}"#, LONG),
    (r#"{"additionalProperties":false}"#, "{\"\\u001b[31m\":1}"),
    (r##"{"not":{"$ref":"#"}}"##, "{}"),
    ("false", "{}"),
];

pub fn cases() -> Vec<Case> {
    let refused = |schema: &[u8], payload: &str, word: &str| {
        Case::refused(&["enqueue", "judged", payload], word).file(FILE, schema)
    };
    let mut cases: Vec<Case> =
        WRONG.iter().map(|schema| refused(schema.as_bytes(), "{}", "judged.schema.json")).collect();
    cases.extend(UNMET.iter().map(|(schema, payload)| refused(schema.as_bytes(), payload, "payload: does not meet")));
    cases.push(refused(b"{\"type\":\"\xff\"}", "{}", "cannot be read"));
    cases.push(refused(nested(300).as_bytes(), "{}", "is not JSON"));
    cases.push(refused(&vec![b' '; (4 << 20) + 1], "{}", "larger than"));
    cases
}
