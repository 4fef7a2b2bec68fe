//! What stands below the options in `--help`, by what it is.

use clap::Command;

#[derive(Default)]
pub(super) struct Help {
    /// Paragraphs.
    pub(super) prose: Vec<String>,
    /// Lines that can be typed.
    pub(super) examples: Vec<String>,
    pub(super) exit_codes: Vec<(String, String)>,
}

impl Help {
    pub(super) fn of(command: &Command) -> Self {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let mut help = Self::default();
        for paragraph in text.split("\n\n") {
            let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
            if let Some(codes) = paragraph.strip_prefix("Exit codes: ") {
                help.exit_codes = exit_codes(codes);
            } else if ["Example:", "Examples:", "Start with:"].contains(&first) {
                help.examples = rest.lines().map(str::to_owned).collect();
            } else {
                help.prose.push(paragraph.to_owned());
            }
        }
        help
    }
}

/// `0 done, 1 the answer is no, …`
fn exit_codes(text: &str) -> Vec<(String, String)> {
    let text = text.trim_end_matches('.').replace('\n', " ");
    let codes = text.split(", ").filter_map(|code| code.split_once(' '));
    codes.map(|(code, meaning)| (code.to_owned(), meaning.to_owned())).collect()
}
