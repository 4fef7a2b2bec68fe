//! What people hand to `enqueue` by mistake, and what they are told to do instead.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use super::harness::Scratch;

fn refused(q: &Scratch, input: &[u8]) -> String {
    let mut command = q.command(&["enqueue", "--batch", "-"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), q.count()), (Some(2), 0), "{said}");
    assert!(said.contains("nothing was queued") && !said.contains("column"), "{said}");
    said
}

#[test]
fn a_batch_of_another_form_is_told_what_one_is() {
    let q = Scratch::new();
    let job = r#"{"type":"send_mail","payload":{}}"#;
    let one_a_line = "one job object a line, without an array around them";
    for (input, words) in [
        (format!("[\n  {job},\n  {job}\n]\n"), ["line 1: ", one_a_line]),
        (format!("\n[{job},{job}]\n"), ["line 2: ", one_a_line]),
        (format!("{job}\n{job},\n{job}\n"), ["line 2: ", "ends with a comma"]),
        ("{\n  \"type\": \"send_mail\",\n  \"payload\": {}\n}\n".to_owned(), ["line 1: ", "in one line"]),
        ("{\"type\": \"send_mail\",\n\"payload\": {}}\n".to_owned(), ["line 1: ", "in one line"]),
    ] {
        let said = refused(&q, input.as_bytes());
        assert!(words.iter().all(|word| said.contains(word)), "{input}: {said}");
    }
    let said = refused(&q, &[job.as_bytes(), b"\n{\"type\":\"caf\xe9\",\"payload\":{}}\n"].concat());
    assert!(said.contains("line 2: ") && said.contains("not UTF-8"), "{said}");
}

#[test]
fn a_payload_that_is_no_json_is_told_how_it_is_written() {
    let q = Scratch::new();
    std::fs::write(q.path().join("hello.json"), "{}").unwrap();
    for (typed, next) in [
        ("path=hello.txt", r#"'{"path":"hello.txt"}'"#),
        ("n=4", r#"'{"n":4}'"#),
        ("hello.json", "`@hello.json`"),
        ("{path:hello.txt}", "in single quotes"),
        ("hello", "@FILE"),
    ] {
        let error = q.refused(2, &["enqueue", "send_mail", typed]);
        assert!(error.contains("payload: is not JSON") && error.contains(next), "{typed}: {error}");
        assert_eq!(error.contains("column"), typed.starts_with('{'), "{error}");
    }
    q.enqueue(&["send_mail", r#"{"n":4}"#]);
    q.enqueue(&["send_mail", "@hello.json"]);
    assert_eq!(q.json(&["list"])[1]["payload"], json!({"n": 4}));
}
