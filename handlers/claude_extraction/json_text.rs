//! The JSON in an answer, freed from what is around it.

use serde::de::IgnoredAny;

/// The JSON text in an answer: without the space and the one fence around it.
/// `Err` says why it is none.
pub(super) fn json_in(answer: &str) -> Result<&str, String> {
    let text = unfenced(answer.trim());
    // Parsed without keeping anything: a long list of small things would otherwise cost many times its size.
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Ok(text),
        Err(error) => Err(error.to_string()),
    }
}

/// What is between an opening line of backticks, with a word or without, and a
/// closing one. Anything else stays as it is.
fn unfenced(text: &str) -> &str {
    let ticks = text.len() - text.trim_start_matches('`').len();
    if ticks < 3 {
        return text;
    }
    let fence = &text[..ticks];
    let Some((opening, rest)) = text[ticks..].split_once('\n') else { return text };
    let is_word = opening.trim().chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.'));
    match rest.strip_suffix(fence) {
        Some(inside) if is_word && !inside.ends_with('`') => inside.trim(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::json_in;

    #[test]
    fn json_is_freed_from_space_and_one_fence() {
        for answer in [
            "{\"a\": 1}",
            " \n{\"a\": 1}\r\n\n",
            "```json\n{\"a\": 1}\n```",
            "```\n{\"a\": 1}\n```\n",
            "\n```JSON \r\n\n  {\"a\": 1}\r\n```  \n",
            "````json5\n{\"a\": 1}\n````",
            "```json\n{\"a\": 1}```",
        ] {
            assert_eq!(json_in(answer).as_deref(), Ok("{\"a\": 1}"), "{answer:?}");
        }
        assert_eq!(json_in("```\n[\"``` inside\"]\n```"), Ok("[\"``` inside\"]"));
        assert_eq!(json_in("null"), Ok("null"), "any value will do");
    }

    #[test]
    fn anything_else_is_not_json() {
        for answer in [
            "",
            "Here it is: {\"a\": 1}",
            "{\"a\": 1} I hope this helps",
            "```json\n{\"a\": 1}",
            "{\"a\": 1}\n```",
            "```json\n{\"a\": 1}\n```\nThat is all.",
            "```json\n```json\n{\"a\": 1}\n```\n```",
            "``` so it is\n{\"a\": 1}\n```",
            "```{\"a\": 1}```",
            "{'a': 1}",
            "{\"a\": 1",
        ] {
            assert!(json_in(answer).is_err(), "{answer:?}");
        }
    }
}
