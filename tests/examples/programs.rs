//! The interpreters, if they are there, and the examples that they run.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub const JOBQ: &str = env!("CARGO_BIN_EXE_jobq");

/// An example with the interpreter that runs it.
#[derive(Clone)]
pub struct Example {
    interpreter: PathBuf,
    script: PathBuf,
}

/// `None`, and a loud word, where there is no interpreter.
pub fn python(script: &str) -> Option<Example> {
    let probe = "import sqlite3, sys; sys.exit(sqlite3.sqlite_version_info < (3, 37))";
    example(script, vec!["python3".into()], &["-c", probe], "python3 with SQLite 3.37 or newer")
}

pub fn node(script: &str) -> Option<Example> {
    example(script, nodes(), &["-e", ""], "node")
}

pub fn node_with_sqlite(script: &str) -> Option<Example> {
    example(script, nodes(), &["-e", "require('node:sqlite')"], "a node that has node:sqlite (22.13 or newer)")
}

/// The one that was named; else the one that `scripts/check.sh` has fetched, or the one on PATH.
fn nodes() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os("JOBQ_TEST_NODE").filter(|path| !path.is_empty()) {
        return vec![named.into()];
    }
    let fetched = Path::new(JOBQ).ancestors().map(|folder| folder.join("tools/node_modules/.bin/node"));
    fetched.filter(|path| path.exists()).chain(["node".into()]).collect()
}

fn example(script: &str, interpreters: Vec<PathBuf>, probe: &[&str], what: &str) -> Option<Example> {
    let works = |path: &PathBuf| {
        let mut probing = Command::new(path);
        probing.args(probe).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probing.status().is_ok_and(|status| status.success())
    };
    let Some(interpreter) = interpreters.into_iter().find(works) else {
        crate::skipped::skipped(&format!("examples/{script}"), &format!("missing {what}"));
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(script);
    Some(Example { interpreter, script })
}

impl Example {
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.arg(&self.script).env("JOBQ", JOBQ).env_remove("JOBQ_DB").stdin(Stdio::null());
        command
    }

    /// Where the interpreter is, if that is not for PATH to say.
    pub fn interpreter_folder(&self) -> Option<&Path> {
        self.interpreter.parent().filter(|folder| !folder.as_os_str().is_empty())
    }

    pub fn start(&self, folder: &Path) -> Child {
        self.command().arg(folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs it in a folder; returns its story.
    #[track_caller]
    pub fn run(&self, folder: &Path) -> String {
        ended(self.start(folder))
    }

    /// Without a folder it takes a scratch one and takes it away again.
    #[track_caller]
    pub fn leaves_nothing_behind(&self) {
        let place = tempfile::tempdir().unwrap();
        let child = self.command().env("TMPDIR", place.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let story = ended(child.unwrap());
        assert!(story.contains("out/REQ-1.md:\n# Invoices are numbered\n"), "{story}");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}

/// Must succeed; returns standard output.
#[track_caller]
pub fn ended(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    stdout.into_owned()
}
