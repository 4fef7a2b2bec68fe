//! One mechanism for all pages. Of a block ```` ```console ```` the lines after `$ ` are run by bash, with what follows
//! them after `> `; ```` ```python ```` and ```` ```js ```` are run as programs. Each has to end with exit code 0.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Pages with commands, and how many they have at least: a page that lost them would be tested by nothing.
const PAGES: &[(&str, usize)] = &[
    ("README.md", 10),
    ("docs/aws.md", 5),
    ("docs/guide.md", 18),
    ("docs/handlers.md", 9),
    ("docs/operations.md", 15),
    ("docs/tour.md", 25),
];

#[test]
fn the_commands_of_the_readme_work() {
    run_page("README.md");
}

#[test]
fn the_commands_about_aws_work() {
    run_page("docs/aws.md");
}

#[test]
fn the_commands_and_programs_of_the_guide_work() {
    run_page("docs/guide.md");
}

#[test]
fn the_commands_about_handlers_work() {
    run_page("docs/handlers.md");
}

#[test]
fn the_commands_about_operations_work() {
    run_page("docs/operations.md");
}

#[test]
fn the_commands_of_the_tour_work() {
    run_page("docs/tour.md");
}

#[test]
fn every_page_with_commands_is_run() {
    let mut found = vec!["README.md".to_owned()];
    for entry in std::fs::read_dir(Path::new(ROOT).join("docs")).unwrap() {
        let file = entry.unwrap().path();
        let name = format!("docs/{}", file.file_name().unwrap().to_str().unwrap());
        if file.extension() == Some("md".as_ref()) && !steps(&page(&name)).is_empty() {
            found.push(name);
        }
    }
    found.sort();
    let known: Vec<&str> = PAGES.iter().map(|(name, _)| *name).collect();
    assert_eq!(found, known);
}

pub(super) fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(name)).unwrap()
}

#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Command(String),
    Program(&'static [&'static str], String),
}

/// What a page has to be run, in order.
pub(super) fn steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        match language {
            "console" => commands(&body, &mut steps),
            "python" => steps.push(Step::Program(&["python3", "-"], body.join("\n"))),
            "js" => steps.push(Step::Program(&["node", "--input-type=module", "-"], body.join("\n"))),
            _ => {}
        }
    }
    steps
}

/// Other lines are what a command prints, and are not compared.
fn commands(body: &[&str], steps: &mut Vec<Step>) {
    for line in body {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step::Command(command.to_owned()));
        } else if let (Some(more), Some(Step::Command(command))) = (line.strip_prefix("> "), steps.last_mut()) {
            command.push('\n');
            command.push_str(more);
        }
    }
}

#[track_caller]
fn run_page(name: &str) {
    let steps = steps(&page(name));
    let (_, least) = PAGES.iter().find(|(page, _)| *page == name).unwrap();
    assert!(steps.len() >= *least, "{name} has lost its commands: {}", steps.len());
    let folder = tempfile::tempdir().unwrap();
    for step in &steps {
        run(step, folder.path());
    }
}

/// What a page has before a heading.
#[track_caller]
pub(super) fn run_page_until(name: &str, heading: &str, folder: &Path) {
    let text = page(name);
    let (before, _) = text.split_once(&format!("\n{heading}\n")).unwrap();
    for step in &steps(before) {
        run(step, folder);
    }
}

#[track_caller]
pub(super) fn run(step: &Step, folder: &Path) {
    let (mut command, input, shown) = match step {
        Step::Command(line) => {
            let mut bash = Command::new("bash");
            bash.args(["-euo", "pipefail", "-c", line]);
            (bash, "", line)
        }
        Step::Program(interpreter, text) => {
            if !Command::new(interpreter[0]).arg("--version").output().is_ok_and(|output| output.status.success()) {
                crate::skipped::skipped("programs of the guide", &format!("there is no {}", interpreter[0]));
                return;
            }
            let mut program = Command::new(interpreter[0]);
            program.args(&interpreter[1..]);
            (program, text.as_str(), text)
        }
    };
    let jobq = Path::new(env!("CARGO_BIN_EXE_jobq")).parent().unwrap();
    let path = format!("{}:{}", jobq.display(), std::env::var("PATH").unwrap());
    command.current_dir(folder).env("PATH", path).env_remove("JOBQ_DB");
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let (told, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n$ {shown}\n{told}\n{complained}", output.status);
}

#[test]
fn blocks_are_read_as_they_are_shown() {
    let text = "a ```b```\n```console\n$ cat <<END\n> a\n> END\nprinted\n$ true\n```\n```toml\n$ no\n```\n```python\nprint(1)\n```\n";
    let expected = [
        Step::Command("cat <<END\na\nEND".to_owned()),
        Step::Command("true".to_owned()),
        Step::Program(&["python3", "-"], "print(1)".to_owned()),
    ];
    assert_eq!(steps(text), expected);
}
