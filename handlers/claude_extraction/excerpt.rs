//! A little of what was printed, fit for an error message.

/// Characters of it that are shown.
const SHOWN: usize = 300;
/// Bytes of it that are looked at.
const LOOKED_AT: usize = 16 << 10;
/// Shorter lines of a prompt are words like any other.
const TELLING: usize = 12;

/// The end of some text, on one line, without anything that a terminal would act
/// on and without the prompt, which a program may print back.
pub(super) fn excerpt(text: &str, prompt: &str) -> String {
    let cut = text.len() > LOOKED_AT;
    let text = without_prompt(tail(text), prompt);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = crate::printable(&text);
    let hidden = text.chars().count().saturating_sub(SHOWN);
    let shown: String = text.chars().skip(hidden).collect();
    if hidden > 0 || cut { format!("…{shown}") } else { shown }
}

/// As much of the end as is worth looking at.
fn tail(text: &str) -> &str {
    let mut start = text.len().saturating_sub(LOOKED_AT);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Line by line: a program may put something before each, or print it as JSON.
pub(super) fn without_prompt(text: &str, prompt: &str) -> String {
    let mut text = tail(text).to_owned();
    for line in prompt.lines().map(str::trim).filter(|line| line.len() >= TELLING) {
        let as_json = serde_json::to_string(line).unwrap_or_default();
        for spelling in [line, as_json.trim_matches('"')] {
            if text.contains(spelling) {
                text = text.replace(spelling, "[prompt]");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_shown_on_one_line() {
        assert_eq!(excerpt("one\n\ttwo\u{1b}[31m\u{0} ", ""), "one two\u{fffd}[31m\u{fffd}");
        let long = excerpt(&format!("{}end", "ä".repeat(100_000)), "");
        assert!(long.starts_with("…ä") && long.ends_with("ääend") && long.chars().count() == SHOWN + 1);
    }

    #[test]
    fn the_prompt_is_not() {
        let prompt = "Say \"nothing\" of the merger\nwith our friends\nok";
        for echoed in [prompt.to_owned(), serde_json::to_string(prompt).unwrap(), format!("> {prompt}")] {
            let shown = excerpt(&format!("oops: {echoed} ok"), prompt);
            assert!(shown.contains("oops") && shown.ends_with("ok"), "{shown}");
            assert!(!shown.contains("merger") && !shown.contains("friends"), "{shown}");
        }
    }
}
