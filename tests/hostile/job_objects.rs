//! Job objects: the lines of a batch, and the jobs of a commit.

use super::case::{Case, nested};

const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

const WRONG: &[(&str, &str)] = &[
    ("x", "expected value"),
    ("7", "a job object"),
    ("[]", "a job object"),
    ("[\"t\",{}]", "a job object"),
    ("{}", "missing field `type`"),
    (r#"{"type":"t"}"#, "payload"),
    (r#"{"payload":{}}"#, "type"),
    (r#"{"type":"t","payload":{}} {}"#, "trailing"),
    (r#"{"type":"t","type":"u","payload":{}}"#, "duplicate field"),
    (r#"{"type":"t","payload":{},"payload":{}}"#, "duplicate field"),
    (r#"{"type":7,"payload":{}}"#, "expected a string"),
    (r#"{"type":"","payload":{}}"#, "type: "),
    (r#"{"type":".","payload":{}}"#, "type: "),
    (r#"{"type":"..","payload":{}}"#, "type: "),
    (r#"{"type":"../evil","payload":{}}"#, "type: "),
    (r#"{"type":"-rf","payload":{}}"#, "type: "),
    (r#"{"type":"a/b","payload":{}}"#, "type: "),
    (r#"{"type":"a b","payload":{}}"#, "type: "),
    (r#"{"type":"a\u0000","payload":{}}"#, "type: "),
    (r#"{"type":"\u001b[31m","payload":{}}"#, "type: "),
    (r#"{"type":"täg","payload":{}}"#, "type: "),
    (r#"{"type":"t","payload":[]}"#, "not an object"),
    (r#"{"type":"t","payload":null}"#, "not an object"),
    (r#"{"type":"t","payload":"{}"}"#, "not an object"),
    (r#"{"type":"t","payload":{"a":NaN}}"#, "expected value"),
    (r#"{"type":"t","payload":{},"prioritty":1}"#, "prioritty"),
    (r#"{"type":"t","payload":{},"\u001b]0;owned\u0007":1}"#, "unknown field"),
    (r#"{"type":"t","payload":{},"status":"completed"}"#, "status"),
    (r#"{"type":"t","payload":{},"token":9}"#, "token"),
    (r#"{"type":"t","payload":{},"outcome":"{}"}"#, "outcome"),
    (r#"{"type":"t","payload":{},"seq":1}"#, "seq"),
    (r#"{"type":"t","payload":{},"holds":["path:x"]}"#, "holds"),
    (r#"{"type":"t","payload":{},"priority":2147483648}"#, "2147483648"),
    (r#"{"type":"t","payload":{},"priority":-2147483649}"#, "2147483649"),
    (r#"{"type":"t","payload":{},"priority":1.5}"#, "1.5"),
    (r#"{"type":"t","payload":{},"priority":"high"}"#, "high"),
    (r#"{"type":"t","payload":{},"max_attempts":0}"#, "max_attempts"),
    (r#"{"type":"t","payload":{},"max_attempts":-1}"#, "-1"),
    (r#"{"type":"t","payload":{},"max_attempts":4294967296}"#, "4294967296"),
    (r#"{"type":"t","payload":{},"timeout":"0s"}"#, "timeout"),
    (r#"{"type":"t","payload":{},"timeout":"-1s"}"#, "timeout"),
    (r#"{"type":"t","payload":{},"timeout":"5 parsecs"}"#, "timeout"),
    (r#"{"type":"t","payload":{},"timeout":"1000y"}"#, "timeout"),
    (r#"{"type":"t","payload":{},"timeout":5}"#, "expected a string"),
    (r#"{"type":"t","payload":{},"delay":"soon"}"#, "delay"),
    (r#"{"type":"t","payload":{},"delay":""}"#, "delay"),
    (r#"{"type":"t","payload":{},"delay":"99999999999999999999s"}"#, "delay"),
    (r#"{"type":"t","payload":{},"delay":"18446744073709551615s"}"#, "delay"),
    (r#"{"type":"t","payload":{},"delay":"1s","run_at":"2030-01-31T12:00:00Z"}"#, "delay"),
    (r#"{"type":"t","payload":{},"run_at":"tomorrow"}"#, "run_at"),
    (r#"{"type":"t","payload":{},"run_at":"2030-02-30T12:00:00Z"}"#, "run_at"),
    (r#"{"type":"t","payload":{},"run_at":"2030-01-31T12:00:00"}"#, "run_at"),
    (r#"{"type":"t","payload":{},"run_at":"99999-01-31T12:00:00Z"}"#, "run_at"),
    (r#"{"type":"t","payload":{},"run_at":4102444800}"#, "expected a string"),
    (r#"{"type":"t","payload":{},"id":""}"#, "id: "),
    (r#"{"type":"t","payload":{},"id":"job-1"}"#, "id: "),
    (r#"{"type":"t","payload":{},"id":"../../outside/x"}"#, "id: "),
    (r#"{"type":"t","payload":{},"id":"8ZZZZZZZZZZZZZZZZZZZZZZZZZ"}"#, "id: "),
    (r#"{"type":"t","payload":{},"id":"\u001b[2J"}"#, "id: "),
    (r#"{"type":"t","payload":{},"idempotency_key":""}"#, "idempotency_key"),
    (r#"{"type":"t","payload":{},"idempotency_key":"a\nb"}"#, "idempotency_key"),
    (r#"{"type":"t","payload":{},"idempotency_key":7}"#, "expected a string"),
    (r#"{"type":"t","payload":{},"unique":"sometimes"}"#, "sometimes"),
    (r#"{"type":"t","payload":{},"lane":""}"#, "lane"),
    (r#"{"type":"t","payload":{},"lane":"a\u0000b"}"#, "lane"),
    (r#"{"type":"t","payload":{},"correlation_id":""}"#, "correlation_id"),
    (r#"{"type":"t","payload":{},"correlation_id":"\u0007"}"#, "correlation_id"),
];

pub fn cases() -> Vec<Case> {
    let mut wrong: Vec<(String, String)> = WRONG.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    let with = |more: String, word: &str| (format!(r#"{{"type":"t","payload":{{}},{more}}}"#), word.to_owned());
    let long = "x".repeat(2_000);
    wrong.push(with(format!(r#""idempotency_key":"{long}""#), "idempotency_key"));
    wrong.push(with(format!(r#""lane":"{long}""#), "lane"));
    wrong.push(with(format!(r#""correlation_id":"{long}""#), "correlation_id"));
    wrong.push((format!(r#"{{"type":"{long}","payload":{{}}}}"#), "type: ".to_owned()));
    wrong.push((format!(r#"{{"type":"t","payload":{}}}"#, nested(129)), "nested deeper".to_owned()));
    wrong.push((format!(r#"{{"type":"t","payload":{}}}"#, nested(200_000)), "nested deeper".to_owned()));
    let good = r#"{"type":"t","payload":{"good":1}}"#;
    let mut cases: Vec<Case> = Vec::new();
    for (number, (object, word)) in wrong.iter().enumerate() {
        // Alone, among good ones, or as a part of a commit: all or nothing each time.
        cases.push(match number % 3 {
            0 => Case::refused(&["enqueue", "--batch", "-"], word).stdin(format!("{object}\n")),
            1 => Case::refused(&["enqueue", "--batch", "-"], word).stdin(format!("{good}\n\n{object}\r\n{good}")),
            // In a document the mistake is found wherever it is.
            _ => Case::refused(&["commit"], word)
                .stdin(format!(r#"{{"writes":[{{"path":"a","text":"x"}}],"jobs":[{good},{object}]}}"#)),
        });
    }
    let waits = with(format!(r#""waiting_on":"{ID}""#), "waiting_on").0;
    cases.push(Case::refused(&["enqueue", "--batch", "-"], ID).stdin(waits.clone()).code(3));
    cases.push(
        Case::refused(&["commit"], "waiting_on").stdin(format!(r#"{{"removes":[{{"path":"a"}}],"jobs":[{waits}]}}"#)),
    );
    let twice = with(format!(r#""id":"{ID}""#), "").0;
    let other = twice.replace("{}", r#"{"other":1}"#);
    cases.push(Case::refused(&["enqueue", "--batch", "-"], ID).stdin(format!("{twice}\n{other}\n")).code(4));
    cases.push(Case::refused(&["enqueue", "--batch", "-"], "UTF-8").stdin(b"{\"type\":\"\xff\"}\n".as_slice()));
    cases.push(Case::refused(&["enqueue", "--batch", "-"], "line 1").stdin("\u{feff}\u{feff}".to_owned() + good));
    cases.push(Case::refused(&["enqueue", "--batch", "nowhere"], "cannot read nowhere").code(3));
    cases
}
