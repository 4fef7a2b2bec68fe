//! What Claude Code prints at its end: one JSON object, with luck.

use serde_json::Value;

/// How many places an object may begin at are tried, from the end: output that
/// is nothing but braces is given up.
const PLACES: usize = 1_000;

/// The object with `"type": "result"`. Everything but that may be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) subtype: Option<String>,
    pub(super) is_error: bool,
    /// The text, or what went wrong.
    pub(super) result: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) total_cost_usd: Option<f64>,
    pub(super) usage: Option<Value>,
    pub(super) num_turns: Option<u64>,
    pub(super) duration_ms: Option<u64>,
    /// The HTTP status of the last request that failed.
    pub(super) api_error_status: Option<u16>,
}

impl Answer {
    /// The last one in the output, whatever is printed around it: warnings before
    /// it, news of updates after it, all messages of the session as a list.
    pub(super) fn last_in(stdout: &str) -> Option<Self> {
        let lines = stdout.split_inclusive('\n').scan(0, |end, line| {
            let start = *end;
            *end += line.len();
            Some((start, line.trim_start()))
        });
        let places: Vec<usize> =
            lines.filter(|(_, line)| line.starts_with(['{', '['])).map(|(start, _)| start).collect();
        places.into_iter().rev().take(PLACES).find_map(|start| {
            let mut values = serde_json::Deserializer::from_str(&stdout[start..]).into_iter::<Value>();
            match values.next()?.ok()? {
                Value::Array(messages) => messages.iter().rev().find_map(Self::of),
                value => Self::of(&value),
            }
        })
    }

    fn of(value: &Value) -> Option<Self> {
        if value.get("type")?.as_str()? != "result" {
            return None;
        }
        let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
        let number = |field: &str| value.get(field).and_then(Value::as_u64);
        let status = |value: &Value| value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
        Some(Self {
            subtype: text("subtype"),
            is_error: value.get("is_error").is_some_and(says_yes),
            result: text("result"),
            session_id: text("session_id"),
            // Sums are made of it: what is no sum of money is none.
            total_cost_usd: value.get("total_cost_usd").and_then(Value::as_f64).filter(|cost| *cost >= 0.0),
            usage: value.get("usage").filter(|usage| !usage.is_null()).cloned(),
            num_turns: number("num_turns"),
            duration_ms: number("duration_ms"),
            api_error_status: value.get("api_error_status").and_then(status).and_then(|n| u16::try_from(n).ok()),
        })
    }

    /// Also says so without `is_error`: out of turns, for one.
    pub(super) fn has_failed(&self) -> bool {
        self.is_error || self.subtype.as_ref().is_some_and(|subtype| subtype.starts_with("error"))
    }
}

/// Whoever says in any other way that it is an error must not be taken for an answer.
fn says_yes(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(yes) => *yes,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(word) => !matches!(word.trim().to_lowercase().as_str(), "" | "false" | "no" | "0"),
        Value::Array(_) | Value::Object(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DONE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"4","session_id":"s","total_cost_usd":0.01,"usage":{"input_tokens":3},"num_turns":1,"duration_ms":1200,"new_field":[1]}"#;

    #[test]
    fn the_fields_are_read_and_others_are_left_alone() {
        let expected = Answer {
            subtype: Some("success".into()),
            result: Some("4".into()),
            session_id: Some("s".into()),
            total_cost_usd: Some(0.01),
            usage: Some(json!({"input_tokens": 3})),
            num_turns: Some(1),
            duration_ms: Some(1200),
            ..Answer::default()
        };
        assert_eq!(Answer::last_in(DONE), Some(expected));
    }

    #[test]
    fn it_is_found_among_other_output() {
        let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(DONE).unwrap()).unwrap();
        for stdout in [
            format!("{DONE}\n"),
            format!("warning: {{odd}}\n{{\"type\":\"system\"}}\n  {DONE}\nA new version is there.\n"),
            format!("[{{\"type\":\"system\"}},{DONE},{{\"type\":\"other\"}}]"),
            format!("note\n{pretty}\n{{\n"),
            format!("{{\"type\":\"result\",\"result\":\"earlier\"}}\n{DONE}"),
        ] {
            let answer = Answer::last_in(&stdout).unwrap_or_else(|| panic!("{stdout}"));
            assert_eq!(answer.result.as_deref(), Some("4"), "{stdout}");
        }
    }

    #[test]
    fn what_is_no_answer_is_none() {
        let half = &DONE[..DONE.len() / 2];
        let braces = "{\n".repeat(100_000);
        for stdout in ["", "\n", "Killed", "null", "[]", "{}", r#"{"type":"system"}"#, r#"{"type":7}"#, half, &braces] {
            assert_eq!(Answer::last_in(stdout), None, "{}", &stdout[..stdout.len().min(80)]);
        }
    }

    #[test]
    fn fields_of_another_kind_are_as_good_as_missing() {
        let odd = r#"{"type":"result","is_error":"no","result":{"a":1},"total_cost_usd":-1,"usage":null,"num_turns":"many","api_error_status":"529"}"#;
        let expected = Answer { api_error_status: Some(529), ..Answer::default() };
        assert_eq!(Answer::last_in(odd), Some(expected));
    }

    #[test]
    fn a_session_that_ran_out_of_turns_has_failed_too() {
        let failed = |text: &str| Answer::last_in(text).unwrap().has_failed();
        assert!(failed(r#"{"type":"result","subtype":"error_max_turns","is_error":false}"#));
        assert!(failed(r#"{"type":"result","subtype":"success","is_error":true}"#));
        assert!(!failed(DONE));
        for (word, is_error) in [
            ("\"true\"", true),
            ("\"yes\"", true),
            ("1", true),
            ("{\"message\":\"x\"}", true),
            ("null", false),
            ("0", false),
            ("\"false\"", false),
            ("\"\"", false),
        ] {
            let text = format!(r#"{{"type":"result","is_error":{word},"result":"API Error: 500"}}"#);
            assert_eq!(failed(&text), is_error, "{word}");
        }
    }
}
