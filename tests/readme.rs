//! Every command of the README works, in order, in one scratch folder.

use std::path::Path;
use std::process::Command;

#[test]
fn the_commands_of_the_readme_work() {
    let readme = include_str!("../README.md");
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_jobq")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut ran = 0;
    for block in readme.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for line in block.lines().filter_map(|l| l.strip_prefix("$ ")) {
            let mut bash = Command::new("bash");
            bash.args(["-euo", "pipefail", "-c", line]).current_dir(folder.path()).env("PATH", &path);
            let output = bash.env_remove("JOBQ_DB").output().unwrap();
            assert!(output.status.success(), "$ {line}\n{}", String::from_utf8_lossy(&output.stderr));
            ran += 1;
        }
    }
    assert!(ran >= 10, "the README has lost its commands");
}

#[test]
fn the_readme_names_the_command_that_ci_runs() {
    let ci = include_str!("../.ci/run");
    assert!(ci.contains("bash scripts/check.sh"));
    assert!(include_str!("../README.md").contains("bash scripts/check.sh"));
}
