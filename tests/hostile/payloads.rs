//! Payloads that are no JSON, no object, too large, too deep, or not what their type
//! is.

use serde_json::json;

use super::case::{Case, nested};

/// Of a type that nobody knows: any object is a payload, and nothing else.
const NOT_OBJECTS: &[(&str, &str)] = &[
    ("", "is not JSON"),
    (" \n\t", "is not JSON"),
    ("\u{feff}\u{feff}{}", "is not JSON"),
    ("nul", "is not JSON"),
    ("null", "is JSON but not an object"),
    ("true", "is JSON but not an object"),
    ("0", "is JSON but not an object"),
    ("-0.0e-0", "is JSON but not an object"),
    ("1e999", "is not JSON"),
    ("\"text\"", "is JSON but not an object"),
    ("[]", "is JSON but not an object"),
    ("[{}]", "is JSON but not an object"),
    ("{", "is not JSON"),
    ("}", "is not JSON"),
    ("{}}", "is not JSON"),
    ("{}{}", "is not JSON"),
    ("{} x", "is not JSON"),
    ("{},", "is not JSON"),
    ("{\"a\"}", "is not JSON"),
    ("{\"a\":}", "is not JSON"),
    ("{\"a\":1,}", "is not JSON"),
    ("{,\"a\":1}", "is not JSON"),
    ("{\"a\":1 \"b\":2}", "is not JSON"),
    ("{a:1}", "is not JSON"),
    ("{'a':1}", "is not JSON"),
    ("{\"a\":01}", "is not JSON"),
    ("{\"a\":+1}", "is not JSON"),
    ("{\"a\":.5}", "is not JSON"),
    ("{\"a\":1.}", "is not JSON"),
    ("{\"a\":1e}", "is not JSON"),
    ("{\"a\":1e999}", "is not JSON"),
    ("{\"a\":-1e999}", "is not JSON"),
    ("{\"a\":0x10}", "is not JSON"),
    ("{\"a\":NaN}", "is not JSON"),
    ("{\"a\":Infinity}", "is not JSON"),
    ("{\"a\":undefined}", "is not JSON"),
    ("{\"a\":\"\n\"}", "is not JSON"),
    ("{\"a\":\"\u{1}\"}", "is not JSON"),
    ("{\"a\":\"\\x41\"}", "is not JSON"),
    ("{\"a\":\"\\u12\"}", "is not JSON"),
    ("{\"a\":\"\\ud800\"}", "is not JSON"),
    ("{\"a\":\"\\udc00\\ud800\"}", "is not JSON"),
    ("{\"a\":\"unclosed}", "is not JSON"),
    ("{\"a\":\"\\", "is not JSON"),
    ("{\"a\":[1,2}", "is not JSON"),
    ("{\"a\":1/*x*/}", "is not JSON"),
    ("{}//x", "is not JSON"),
    ("{}\0", "is not JSON"),
    ("\0{}", "is not JSON"),
    ("{\u{a0}}", "is not JSON"),
    ("{\u{1b}[31m}", "is not JSON"),
    ("<xml/>", "is not JSON"),
    ("---\na: 1", "is not JSON"),
];

/// Of types that come with jobq.
fn not_of_their_type() -> Vec<(&'static str, String, &'static str)> {
    let file = |more: &str| format!(r#"{{"path":"a","content":"x"{more}}}"#);
    vec![
        ("create_file", "{}".into(), "path"),
        ("create_file", r#"{"path":"a"}"#.into(), "content"),
        ("create_file", r#"{"path":"a","content":"","contentBase64":""}"#.into(), "content"),
        ("create_file", r#"{"path":"a","contentBase64":"a"}"#.into(), "contentBase64"),
        ("create_file", r#"{"path":"a","contentBase64":"aGk"}"#.into(), "contentBase64"),
        ("create_file", r#"{"path":"a","contentBase64":"a\nGk="}"#.into(), "contentBase64"),
        ("create_file", r#"{"path":"a","contentBase64":"____"}"#.into(), "contentBase64"),
        ("create_file", r#"{"path":["a"],"content":""}"#.into(), "expected a string"),
        ("create_file", r#"{"path":"a","content":7}"#.into(), "expected a string"),
        ("create_file", r#"{"path":null,"content":""}"#.into(), "expected a string"),
        ("create_file", r#"{"path":"a","path":"../b","content":""}"#.into(), "has the key"),
        ("create_file", r#"{"PATH":"a","content":""}"#.into(), "unknown field"),
        ("create_file", file(r#","mode":"0777""#), "mode"),
        ("create_file", file(r#","overwrite":"yes""#), "boolean"),
        ("create_file", file(r#","overwrite":1"#), "boolean"),
        ("create_file", file(r#","\u001b[31m":1"#), "unknown field"),
        ("create_file", file(&format!(r#","x":{}"#, nested(127))), "unknown field"),
        ("delete_file", "{}".into(), "path"),
        ("delete_file", r#"{"path":"a","force":true}"#.into(), "force"),
        ("delete_file", r#"{"path":"a","requireExists":null}"#.into(), "boolean"),
        ("write_files", r#"{"files":[]}"#.into(), "write_files jobs are made by a commit"),
        ("write_files", r#"{"files":[{"path":"../x"}]}"#.into(), "write_files jobs are made by a commit"),
        ("claude_extraction", r#"{"prompt":"","targetPath":"a","requirementId":"r"}"#.into(), "prompt"),
        ("claude_extraction", r#"{"prompt":"p","targetPath":"a","requirementId":""}"#.into(), "requirementId"),
        ("claude_extraction", r#"{"prompt":"p","targetPath":"a"}"#.into(), "requirementId"),
        (
            "claude_extraction",
            r#"{"prompt":"p","targetPath":"a","requirementId":"r","promptHash":"x"}"#.into(),
            "promptHash",
        ),
        ("sync_aws", r#"{"resourceType":"x","resourceId":"b","config":null}"#.into(), "resourceType"),
        ("sync_aws", r#"{"resourceType":"AWS::S3::Bucket","resourceId":"","config":null}"#.into(), "resourceId"),
        ("sync_aws", r#"{"resourceType":"AWS::S3::Bucket","resourceId":"b","config":[]}"#.into(), "config"),
        (
            "sync_aws",
            r#"{"resourceType":"AWS::S3::Bucket","resourceId":"a\u0000b","config":null}"#.into(),
            "control characters",
        ),
    ]
}

pub fn cases() -> Vec<Case> {
    let given = |kind: &str, word: &str, text: &[u8]| Case::refused(&["enqueue", kind, "-"], word).stdin(text);
    let mut cases: Vec<Case> =
        NOT_OBJECTS.iter().map(|(text, word)| given("t", &format!("payload: {word}"), text.as_bytes())).collect();
    cases.extend(not_of_their_type().iter().map(|(kind, text, word)| given(kind, word, text.as_bytes())));
    for levels in [129, 1_000, 300_000] {
        cases.push(given("t", "nested deeper than 128", nested(levels).as_bytes()));
        cases.push(given("create_file", "nested deeper than 128", nested(levels).as_bytes()));
    }
    let brackets = "[".repeat(300_000);
    cases.push(given("t", "nested deeper than 128", brackets.as_bytes()));
    cases.push(given("t", "nested deeper than 128", format!("{{\"a\":{brackets}").as_bytes()));
    let large = json!({"a": "x".repeat(16 << 20)}).to_string();
    cases.push(given("t", "larger than 16 MiB", large.as_bytes()));
    cases.push(given("create_file", "larger than 16 MiB", large.as_bytes()));
    // Bytes that are no text.
    for bytes in [b"{\"a\":\"\xff\"}".as_slice(), b"\xfe\xff\0{\0}", b"{\"a\":\"\xed\xa0\x80\"}", b"{\"\xc0\xaf\":1}"] {
        cases.push(given("t", "UTF-8", bytes));
        cases.push(Case::refused(&["enqueue", "t", "@p.json"], "UTF-8").file("p.json", bytes));
    }
    cases.push(Case::refused(&["enqueue", "t", "@/dev/shm"], "cannot read /dev/shm"));
    cases.push(Case::refused(&["enqueue", "t", "@nowhere"], "cannot read nowhere").code(3));
    cases.push(Case::refused(&["enqueue", "t", "@"], "cannot read").code(3));
    cases
}
