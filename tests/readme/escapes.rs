//! What a newcomer reads first has no command that nobody runs.

use std::path::Path;

use super::page::page;

/// Commands that the pages' own test cannot run, and who runs them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("bash scripts/check.sh", "this test is a part of it"),
    ("bash scripts/demo.sh", "tests/demo.rs, and check.sh with its build"),
    ("cargo install --path . --locked", "check.sh, into a folder of its own"),
];

#[test]
fn no_command_escapes() {
    for name in ["README.md", "docs/tour.md"] {
        for (language, block) in blocks(&page(name)) {
            match language {
                // All of it is commands, none is what one prints: a line without its mark would not be run.
                "console" => {
                    let is_run = |line: &str| line.starts_with("$ ") || line.starts_with("> ");
                    assert!(block.lines().all(is_run), "{name}: not commands only:\n{block}");
                }
                // Compiled by rustdoc (`lib.rs`), run by the pages' own test, or settings.
                "rust" | "python" | "js" | "toml" => {}
                "sh" => {
                    for line in block.lines() {
                        assert!(ELSEWHERE.iter().any(|(command, _)| *command == line), "{name}: nobody runs: {line}");
                    }
                }
                other => panic!("{name}: a block of {other:?}: are these commands?\n{block}"),
            }
        }
    }
    // The package has neither script.
    if Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/check.sh").exists() {
        let check = page("scripts/check.sh");
        assert!(check.contains("step bash scripts/demo.sh"));
        assert!(check.contains("step cargo install --path . --locked"));
        assert!(page(".ci/run").contains("bash scripts/check.sh"), "the README names the command that CI runs");
    }
}

#[test]
fn the_readme_names_what_a_newcomer_needs() {
    let text = page("README.md");
    let named: Vec<&str> = blocks(&text).filter(|(language, _)| *language == "sh").map(|(_, b)| b.trim()).collect();
    assert_eq!(named, ["bash scripts/demo.sh", "bash scripts/check.sh", "cargo install --path . --locked"]);
}

/// Language and text of all fenced blocks.
fn blocks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let fenced = text.split("```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').expect("a fence stands on a line of its own"))
}
