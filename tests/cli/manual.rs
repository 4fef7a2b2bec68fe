//! Help, manual pages and completions: each command is in each of them.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::harness::Scratch;

/// As `jobq --help` lists them.
fn commands(q: &Scratch) -> Vec<String> {
    let help = q.ok(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let listed = list.lines().take_while(|line| !line.is_empty());
    // Lines that go on are indented further.
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|name| !name.is_empty()));
    let names: Vec<String> = names.filter(|name| *name != "help").map(str::to_owned).collect();
    assert!(names.len() >= 19 && names.contains(&"reconcile".to_owned()), "{names:?}");
    names
}

#[test]
fn help_has_an_example_for_every_command() {
    let q = Scratch::empty();
    for command in commands(&q) {
        assert!(q.ok(&[&command, "--help"]).contains("Example"), "{command} --help has no example");
    }
}

#[test]
fn every_command_is_in_the_completions_of_every_shell() {
    let q = Scratch::empty();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = q.ok(&["completions", shell]);
        for command in commands(&q) {
            let words = script.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
            assert!(words.clone().any(|word| word == command), "{shell} does not know {command}");
        }
        assert!(script.contains("wait-timeout"), "{shell} does not know the options of commands");
    }
}

/// What bash offers for the last of these words.
fn completed(script: &Path, words: &[&str]) -> String {
    let ask = r#". "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _jobq jobq "${@: -1}" "${@: -2:1}"; echo "${COMPREPLY[*]}""#;
    let output = Command::new("bash").args(["-c", ask]).arg(script).args(words).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn bash_takes_the_completions_and_completes_commands_and_fixed_values() {
    let q = Scratch::empty();
    let script = q.path().join("jobq.bash");
    std::fs::write(&script, q.ok(&["completions", "bash"])).unwrap();
    for (words, offered) in [
        ("jobq recon", "reconcile"),
        ("jobq list --status p", "pending"),
        ("jobq list --status c", "claimed completed cancelled"),
        ("jobq enqueue send_mail --unique al", "always"),
        ("jobq extract a.json --format j", "json"),
        ("jobq completions z", "zsh"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        assert_eq!(completed(&script, &words), offered, "{words:?}");
    }
}

#[test]
fn every_shell_knows_the_fixed_values() {
    let q = Scratch::empty();
    for shell in ["bash", "fish", "zsh"] {
        let script = q.ok(&["completions", shell]);
        for values in [&["pending", "claimed", "completed", "failed", "cancelled"][..], &["active", "always"]] {
            // All on one line, or in one list of several.
            let near = |window: &[&str]| values.iter().all(|value| window.iter().any(|line| line.contains(value)));
            let lines: Vec<&str> = script.lines().collect();
            assert!(lines.windows(values.len()).any(near), "{shell} does not know {values:?}");
        }
    }
}

#[test]
fn fish_knows_the_values_of_arguments() {
    let script = Scratch::empty().ok(&["completions", "fish"]);
    let line = script.lines().find(|line| line.contains("using_subcommand completions\" -f -a"));
    assert!(line.is_some_and(|line| ["bash", "fish", "zsh"].iter().all(|shell| line.contains(shell))), "{script}");
}

#[test]
fn every_command_is_in_the_manual_page() {
    let q = Scratch::empty();
    let man = q.ok(&["man"]);
    for command in commands(&q) {
        assert!(man.contains(&format!("\\fBjobq {command}\\fR")), "{command} has no synopsis");
    }
    assert!(man.contains("wait\\-timeout"), "the manual knows the options of the commands");
    let once =
        ["NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "EXAMPLES", "EXIT STATUS", "ENVIRONMENT", "FILES"];
    assert_eq!(headings(&man), once);
    assert_is_clean(&man);
}

/// The sections of a page.
fn headings(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix(".SH ")).map(|heading| heading.trim_matches('"')).collect()
}

/// groff has nothing to say about it.
fn assert_is_clean(page: &str) {
    let mut groff = Command::new("groff");
    groff.args(["-man", "-ww", "-z", "-Kutf8", "-Tutf8"]);
    let Ok(mut groff) = groff.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn() else {
        crate::skipped::skipped("manual pages as they are set", "groff is not installed");
        return;
    };
    groff.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let said = groff.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stderr), "");
}

#[test]
fn every_command_has_a_manual_page_of_its_own() {
    let q = Scratch::empty();
    let said = q.json(&["man", "--dir", "share/man1"]);
    let pages = q.path().join("share/man1");
    let commands = commands(&q);
    for command in &commands {
        let page = std::fs::read_to_string(pages.join(format!("jobq-{command}.1"))).unwrap();
        let (name, version) = (command.to_uppercase(), env!("CARGO_PKG_VERSION"));
        assert!(page.contains(&format!(".TH JOBQ-{name} 1 \"\" \"jobq {version}\"")), "{page}");
        assert!(page.contains(&format!("\\fBjobq {command}\\fR")), "{page}");
        let sections = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "OPTIONS OF EVERY COMMAND", "EXAMPLES"];
        let expected = [&sections[..], &["EXIT STATUS", "SEE ALSO"]].concat();
        assert_eq!(headings(&page), expected, "{command}");
        for code in 0..=6 {
            assert!(page.contains(&format!("\\fB{code}\\fR")), "{command} does not tell what exit code {code} is");
        }
        assert_is_clean(&page);
    }
    let main = std::fs::read_to_string(pages.join("jobq.1")).unwrap();
    assert!(main.contains("\\fBjobq\\-enqueue\\fR(1)"), "the first page leads to the others: {main}");
    let count = std::fs::read_dir(&pages).unwrap().count();
    assert_eq!(count, commands.len() + 1, "one for each, and one for all");
    assert_eq!(said[0]["pages"], count);
    assert_eq!(q.ok(&["man", "--dir", "share/man1"]), format!("{count} pages in share/man1\n"), "again is no error");
}

/// As it is typed, not filled up to the width of the page.
#[test]
fn examples_in_manual_pages_keep_their_lines() {
    let q = Scratch::empty();
    q.ok(&["man", "--dir", "man"]);
    let page = std::fs::read_to_string(q.path().join("man/jobq-enqueue.1")).unwrap();
    let (_, examples) = page.split_once(".SH EXAMPLES\n").unwrap();
    let literal = examples.split(".nf\n").nth(1).and_then(|rest| rest.split(".fi\n").next()).unwrap();
    assert_eq!(literal.lines().count(), 3, "{literal}");
    assert!(literal.contains("jobq enqueue send_mail @mail.json \\-\\-delay 10m"), "{literal}");
}

#[test]
fn a_folder_for_pages_that_cannot_be_is_named() {
    let q = Scratch::empty();
    std::fs::write(q.path().join("taken"), "").unwrap();
    let error = q.refused(5, &["man", "--dir", "taken/man1"]);
    assert!(error.contains("taken/man1"), "{error}");
}
