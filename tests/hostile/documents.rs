//! Commit documents. What is wrong with a path in one is in `paths.rs`, with a job in
//! one in `job_objects.rs`.

use super::case::{Case, nested};

const WRONG: &[(&str, &str)] = &[
    ("", "empty"),
    (" \n", "empty"),
    ("{}", "empty"),
    ("[]", "an object with id, writes, removes and jobs"),
    ("null", "an object with id, writes, removes and jobs"),
    ("7", "an object with id, writes, removes and jobs"),
    ("\"x\"", "an object with id, writes, removes and jobs"),
    ("{", "commit: "),
    ("{}{}", "trailing"),
    ("\u{feff}\u{feff}{}", "commit: "),
    (r#"{"writes":[],"removes":[],"jobs":[]}"#, "empty"),
    (r#"{"writes":null}"#, "null"),
    (r#"{"writes":{}}"#, "a sequence"),
    (r#"{"writes":[7]}"#, "an object with path"),
    (r#"{"writes":[{}]}"#, "path"),
    (r#"{"writes":[{"path":"a"}]}"#, "exactly one of json, text and base64"),
    (r#"{"writes":[{"path":"a","text":"x","json":null}]}"#, "exactly one of json, text and base64"),
    (r#"{"writes":[{"path":"a","text":null}]}"#, "exactly one of json, text and base64"),
    (r#"{"writes":[{"path":"a","text":7}]}"#, "a string"),
    (r#"{"writes":[{"path":7,"text":""}]}"#, "a string"),
    (r#"{"writes":[{"path":"a","base64":"a"}]}"#, "base64"),
    (r#"{"writes":[{"path":"a","base64":"aGk=\n"}]}"#, "base64"),
    (r#"{"writes":[{"path":"a","base64":"🙂"}]}"#, "base64"),
    (r#"{"writes":[{"path":"a","json":}]}"#, "expected value"),
    (r#"{"writes":[{"path":"a","json":{"b":NaN}}]}"#, "expected value"),
    (r#"{"writes":[{"path":"a","json":1e}]}"#, "commit: "),
    (r#"{"writes":[{"path":"a","text":"x","mode":511}]}"#, "mode"),
    (r#"{"writes":[{"path":"a","text":"x","\u001b[31m":1}]}"#, "unknown field"),
    (r#"{"writes":[{"path":"a","path":"b","text":"x"}]}"#, "duplicate field"),
    (r#"{"writes":[{"path":"a","text":"x"},{"path":"a","text":"y"}]}"#, "twice"),
    (r#"{"writes":[{"path":"a","text":"x"},{"path":"./a","text":"y"}]}"#, "twice"),
    (r#"{"writes":[{"path":"a","text":"x"}],"removes":[{"path":".//a"}]}"#, "twice"),
    (r#"{"writes":[{"path":"a","text":"x"},{"path":"a/b","text":"y"}]}"#, "a/b"),
    (r#"{"writes":[{"path":"a/b/c","text":"x"}],"removes":[{"path":"a/b"}]}"#, "a/b"),
    (r#"{"removes":["a"]}"#, "an object with path and expect"),
    (r#"{"removes":[{"path":"a","text":"x"}]}"#, "text"),
    (r#"{"jobs":[7]}"#, "a job object"),
    (r#"{"jobs":{"type":"t","payload":{}}}"#, "a sequence"),
    (r#"{"write":[]}"#, "write"),
    (r#"{"writes":[],"writes":[{"path":"a","text":"x"}]}"#, "duplicate field"),
    (r#"{"id":"x","writes":[{"path":"a","text":"x"}]}"#, "id"),
    (r#"{"id":"../../x","writes":[{"path":"a","text":"x"}]}"#, "id"),
    (r#"{"id":7,"writes":[{"path":"a","text":"x"}]}"#, "a string"),
    (r#"{"id":"\u0000","writes":[{"path":"a","text":"x"}]}"#, "id"),
    (r#"{"writes":[{"path":"a","text":"x","expect":"present"}]}"#, "expect"),
    (r#"{"writes":[{"path":"a","text":"x","expect":""}]}"#, "expect"),
    (r#"{"writes":[{"path":"a","text":"x","expect":"Absent"}]}"#, "expect"),
    (r#"{"writes":[{"path":"a","text":"x","expect":"e3b0c44298fc1c14"}]}"#, "expect"),
    (r#"{"writes":[{"path":"a","text":"x","expect":{"sha256":"x"}}]}"#, "a string"),
    (r#"{"jobs":[{"type":"write_files","payload":{"files":[{"path":"a"}]}}]}"#, "write_files"),
];

pub fn cases() -> Vec<Case> {
    let commit = |word: &str, text: &[u8]| Case::refused(&["commit"], word).stdin(text);
    let mut cases: Vec<Case> = WRONG.iter().map(|(text, word)| commit(word, text.as_bytes())).collect();
    let expect = |what: &str| format!(r#"{{"writes":[{{"path":"a","text":"x","expect":"{what}"}}]}}"#);
    // Sixty-four letters that are no number, and a hash of what is not there.
    cases.push(commit("expect", expect(&"g".repeat(64)).as_bytes()));
    cases.push(commit("expect", expect(&"é".repeat(32)).as_bytes()));
    cases.push(commit("no such file", expect(&"0".repeat(64)).as_bytes()).code(4));
    // Content that goes deeper than anybody's stack.
    for levels in [129, 200_000] {
        let text = format!(r#"{{"writes":[{{"path":"a","json":{}}}]}}"#, nested(levels));
        cases.push(commit("nested deeper than 128", text.as_bytes()));
        let text =
            format!(r#"{{"writes":[{{"path":"a","text":"x"}}],"jobs":[{{"type":"t","payload":{}}}]}}"#, nested(levels));
        cases.push(commit("nested deeper than 128", text.as_bytes()));
    }
    cases.push(commit("commit: ", "[".repeat(200_000).as_bytes()));
    cases.push(commit("commit: ", nested(200_000).as_bytes()));
    cases.push(commit("UTF-8", b"{\"writes\":[{\"path\":\"\xff\",\"text\":\"\"}]}"));
    cases.push(commit("UTF-8", b"\xff\xfe{\0}\0"));
    cases.push(Case::refused(&["commit", "nowhere.json"], "nowhere.json").code(3));
    cases.push(Case::refused(&["commit", "/"], "cannot read /"));
    // The folder that one needs is the file that the other makes, and the other way round.
    cases.push(commit("there", br#"{"writes":[{"path":"there/x","text":"x"}]}"#).file("there", "a file"));
    cases.push(commit("there", br#"{"writes":[{"path":"there","text":"x"}]}"#).file("there/x", "in a folder"));
    cases.push(commit("there", br#"{"removes":[{"path":"there"}]}"#).file("there/x", "in a folder"));
    cases
}
