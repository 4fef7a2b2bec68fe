//! A little of what was printed, fit for an error message.

use super::echo::without_prompt;

/// Characters of it that are shown.
const SHOWN: usize = 300;

/// The end of some text, on one line, without anything that a terminal would act
/// on and without the prompt, which a program may print back.
pub(super) fn excerpt(text: &str, prompt: &str) -> String {
    let own = without_prompt(text, prompt);
    // Only now: what is cut off a prompt could not be told from other text any more.
    let text = own.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = crate::printable(&text);
    let hidden = text.chars().count().saturating_sub(SHOWN);
    let shown: String = text.chars().skip(hidden).collect();
    if hidden > 0 || own.cut { format!("…{shown}") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_shown_on_one_line() {
        assert_eq!(excerpt("one\n\ttwo\u{1b}[31m\u{0} ", ""), "one two\u{fffd}[31m\u{fffd}");
        let long = excerpt(&format!("{}end", "ä".repeat(1_000_000)), "");
        assert!(long.starts_with("…ä") && long.ends_with("ääend") && long.chars().count() == SHOWN + 1);
    }

    #[test]
    fn a_prompt_longer_than_what_is_shown_is_not() {
        let prompt = format!("LONG {}", "secret-merger ".repeat(1_500));
        assert_eq!(excerpt(&format!("cannot handle: {prompt}"), &prompt), "cannot handle: [prompt]");
        let begun: String = prompt.chars().take(120).collect();
        assert_eq!(excerpt(&format!("input was: {begun}..."), &prompt), "input was: [prompt]...");
    }
}
