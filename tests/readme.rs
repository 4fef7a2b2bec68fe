//! Every command of the README and the guides works, in order, in one scratch folder.
#![cfg(feature = "cli")]

use std::path::Path;
use std::process::Command;

/// Commands of the README that are not run here, and who runs them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("bash scripts/check.sh", "this test is a part of it"),
    ("bash scripts/demo.sh", "tests/demo.rs, and check.sh with its build"),
    ("cargo install --path . --locked", "check.sh, into a folder of its own"),
];

#[test]
fn the_commands_of_the_readme_work() {
    assert!(run_all(include_str!("../README.md")) >= 10, "the README has lost its commands");
}

#[test]
fn the_commands_of_the_guides_work() {
    assert!(run_all(include_str!("../docs/tour.md")) >= 25, "the tour has lost its commands");
    assert!(run_all(include_str!("../docs/handlers.md")) >= 9, "the guide has lost its commands");
    assert!(run_all(include_str!("../docs/aws.md")) >= 5, "the guide has lost its commands");
}

/// In order, in one scratch folder; how many they were.
fn run_all(text: &str) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_jobq")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut ran = 0;
    for block in text.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for line in block.lines().filter_map(|l| l.strip_prefix("$ ")) {
            let mut bash = Command::new("bash");
            bash.args(["-euo", "pipefail", "-c", line]).current_dir(folder.path()).env("PATH", &path);
            let output = bash.env_remove("JOBQ_DB").output().unwrap();
            assert!(output.status.success(), "$ {line}\n{}", String::from_utf8_lossy(&output.stderr));
            ran += 1;
        }
    }
    ran
}

#[test]
fn no_command_escapes() {
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/check.sh");
    for text in [include_str!("../README.md"), include_str!("../docs/tour.md")] {
        for (language, block) in blocks(text) {
            match language {
                // All of a `console` block is commands, each on a line: what goes on in the next would not be run.
                "console" => assert!(block.lines().all(|line| line.starts_with("$ ")), "not a command each:\n{block}"),
                // `Readme` and `Tour` in src/lib.rs compile them.
                "rust" | "toml" => {}
                "sh" => {
                    for line in block.lines() {
                        assert!(ELSEWHERE.iter().any(|(command, _)| *command == line), "nobody runs: {line}");
                    }
                }
                other => panic!("a block of {other:?}: are these commands?\n{block}"),
            }
        }
    }
    // The package has neither.
    if let Ok(check) = std::fs::read_to_string(check) {
        assert!(check.contains("step bash scripts/demo.sh"));
        assert!(check.contains("step cargo install --path . --locked"));
        let ci = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/run")).unwrap();
        assert!(ci.contains("bash scripts/check.sh"), "the README names the command that CI runs");
    }
}

#[test]
fn the_readme_names_what_a_newcomer_needs() {
    let named: Vec<&str> =
        blocks(include_str!("../README.md")).filter(|(l, _)| *l == "sh").map(|(_, b)| b.trim()).collect();
    assert_eq!(named, ["bash scripts/demo.sh", "bash scripts/check.sh", "cargo install --path . --locked"]);
}

/// Language and text of all fenced blocks.
fn blocks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let fenced = text.split("```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').expect("a fence stands on a line of its own"))
}
