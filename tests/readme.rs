//! Every command of the README and the guides works, in order, in one scratch folder.

use std::path::Path;
use std::process::Command;

#[test]
fn the_commands_of_the_readme_work() {
    assert!(run_all(include_str!("../README.md")) >= 10, "the README has lost its commands");
}

#[test]
fn the_commands_of_the_guides_work() {
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
fn the_readme_names_the_command_that_ci_runs() {
    let ci = include_str!("../.ci/run");
    assert!(ci.contains("bash scripts/check.sh"));
    assert!(include_str!("../README.md").contains("bash scripts/check.sh"));
}
