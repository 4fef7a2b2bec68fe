//! Help, manual pages and completions: each command is in each of them.

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

#[test]
fn bash_takes_the_completions_and_completes_a_command() {
    let q = Scratch::empty();
    let script = q.path().join("jobq.bash");
    std::fs::write(&script, q.ok(&["completions", "bash"])).unwrap();
    let ask = r#". "$0"; COMP_WORDS=(jobq recon); COMP_CWORD=1; _jobq jobq recon jobq; echo "${COMPREPLY[*]}""#;
    let output = std::process::Command::new("bash").args(["-c", ask]).arg(&script).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "reconcile", "{output:?}");
}

#[test]
fn every_command_is_in_the_manual_page() {
    let q = Scratch::empty();
    let man = q.ok(&["man"]);
    assert!(man.contains(".TH jobq"), "{}", &man[..40]);
    for command in commands(&q) {
        assert!(man.contains(&format!("\\fBjobq {command}\\fR")), "{command} has no synopsis");
    }
    assert!(man.contains("wait\\-timeout"), "the manual knows the options of the commands");
}

#[test]
fn every_command_has_a_manual_page_of_its_own() {
    let q = Scratch::empty();
    let said = q.json(&["man", "--dir", "share/man1"]);
    let pages = q.path().join("share/man1");
    let commands = commands(&q);
    for command in &commands {
        let page = std::fs::read_to_string(pages.join(format!("jobq-{command}.1"))).unwrap();
        assert!(page.contains(&format!("\\fBjobq {command}\\fR")) && page.contains("Example"), "{page}");
    }
    assert!(pages.join("jobq.1").exists());
    let count = std::fs::read_dir(&pages).unwrap().count();
    assert_eq!(count, commands.len() + 1, "one for each, and one for all");
    assert_eq!(said[0]["pages"], count);
    assert_eq!(q.ok(&["man", "--dir", "share/man1"]), format!("{count} pages in share/man1\n"), "again is no error");
}

#[test]
fn a_folder_for_pages_that_cannot_be_is_named() {
    let q = Scratch::empty();
    std::fs::write(q.path().join("taken"), "").unwrap();
    let error = q.refused(5, &["man", "--dir", "taken/man1"]);
    assert!(error.contains("taken/man1"), "{error}");
}
