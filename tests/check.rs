//! `scripts/check.sh` says what it needs, all of it at once, before it begins.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

/// The script's look at its tools, on a machine that has only these programs and no way to install others.
fn look(programs: &[&str]) -> Option<Output> {
    // Somebody else than root; `id` is all that is asked.
    run("--tools", programs, &[("id", "echo 1000")])
}

/// A part of the script on a machine that has only these programs, and these that are made of a line each.
fn run(part: &str, programs: &[&str], made: &[(&str, &str)]) -> Option<Output> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/check.sh");
    if !script.exists() {
        // The package does not have it.
        return None;
    }
    let tools = tempfile::tempdir().unwrap();
    for program in ["bash", "dirname"].iter().chain(programs) {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
        symlink(String::from_utf8(found.stdout).unwrap().trim(), tools.path().join(program)).unwrap();
    }
    for (program, line) in made {
        let path = tools.path().join(program);
        std::fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    symlink("/bin/sh", tools.path().join("sh")).unwrap();
    let mut check = Command::new("bash");
    // What is skipped here is part of a test, and not of the run that this is in.
    check.arg(script).arg(part).env("PATH", tools.path()).env_remove("JOBQ_TEST_SKIPPED");
    Some(check.output().unwrap())
}

#[test]
fn the_oldest_rust_is_used_where_it_is_and_missed_loudly_where_it_is_not() {
    let version = env!("CARGO_PKG_RUST_VERSION");
    let Some(output) = run("--oldest", &["sed"], &[("rustup", r#"echo "asked for: $*""#)]) else { return };
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, format!("asked for: run {version} cargo check --locked --all-features\n"));
    let asked = format!(r#"[ "$*" = "run {version} cargo --version" ]"#);
    let code = |made: &str| run("--oldest", &["sed"], &[("rustup", made)]).unwrap().status.code();
    assert_eq!(code(&asked), Some(1), "what does not compile there is a failure");
    let output = run("--oldest", &["sed"], &[("rustup", "exit 1")]).unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&format!("!!! SKIPPED: Rust {version} is not here")), "{said}");
}

#[test]
fn an_empty_machine_is_told_all_that_it_lacks() {
    let Some(output) = look(&[]) else { return };
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("missing: Rust 1.89 or newer with rustfmt and clippy"), "{said}");
    assert!(said.contains("apt-get install gcc libc6-dev python3 python3-venv strace"), "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "nothing was begun");
}

/// On a machine that may install, and cannot.
#[test]
fn what_could_not_be_installed_is_missing() {
    let made = [("id", "echo 0"), ("cargo", ""), ("apt-get", "echo no network >&2; exit 100")];
    let Some(output) = run("--tools", &["cc"], &made) else { return };
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no network") && said.contains("missing: python3 python3-venv strace"), "{said}");
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("installing: python3 python3-venv strace"));
}

/// A test that cannot run says so past the harness and in the list at the end, in one way.
#[test]
fn tests_are_skipped_in_one_way() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")];
    let mut found = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension() == Some("rs".as_ref()) && !path.ends_with("tests/check.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found += text.matches("skipped::skipped(").count();
                assert!(!text.contains("SKIPPED") || path.ends_with("support/skipped.rs"), "{}", path.display());
            }
        }
    }
    assert!(found > 10);
}

#[test]
fn what_is_there_is_not_asked_for() {
    let Some(output) = look(&["cc", "true"]) else { return };
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("apt-get install python3 python3-venv strace"), "{said}");
    assert!(!said.contains("gcc"), "{said}");
}

#[test]
fn the_rust_that_it_names_is_the_one_that_is_promised() {
    let version = env!("CARGO_PKG_RUST_VERSION");
    for file in ["README.md", "scripts/check.sh", "scripts/demo.sh"] {
        let Ok(text) = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)) else { continue };
        assert!(text.contains(&format!("Rust {version} or newer")), "{file}");
    }
}

#[test]
fn a_word_that_it_does_not_know_begins_nothing() {
    let Some(output) = run("--tool", &["sed"], &[]) else { return };
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("check.sh --tools") && said.contains("check.sh --oldest"), "{said}");
}
