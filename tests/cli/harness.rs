//! A scratch folder and the real program in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub struct Scratch {
    folder: tempfile::TempDir,
}

/// What the program said and how it ended.
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Scratch {
    /// An empty folder.
    pub fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with a queue.
    pub fn new() -> Self {
        let scratch = Self::empty();
        scratch.ok(&["init"]);
        scratch
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn db(&self) -> PathBuf {
        self.path().join(".jobq/jobq.db")
    }

    pub fn sql(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.db()).unwrap()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jobq"));
        command.args(args).current_dir(self.path()).env_remove("JOBQ_DB").env_remove("JOBQ_LOG").stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Said {
        said(self.command(args).output().unwrap())
    }

    pub fn run_with_input(&self, args: &[&str], input: &str) -> Said {
        use std::io::Write as _;
        let mut child =
            self.command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        said(child.wait_with_output().unwrap())
    }

    /// Must succeed; returns standard output.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let said = self.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        said.stdout
    }

    /// Must succeed; returns the JSON lines.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Vec<Value> {
        let mut all = args.to_vec();
        all.push("--json");
        json_lines(&self.ok(&all))
    }

    /// Queues a job and returns its id.
    #[track_caller]
    pub fn enqueue(&self, args: &[&str]) -> String {
        let mut all = vec!["enqueue"];
        all.extend(args);
        self.json(&all)[0]["id"].as_str().unwrap().to_owned()
    }

    /// Must be refused with this exit code; returns what it said.
    #[track_caller]
    pub fn refused(&self, code: i32, args: &[&str]) -> String {
        let said = self.run(args);
        assert_eq!(said.code, code, "{args:?}: {}{}", said.stdout, said.stderr);
        assert_eq!(said.stdout, "", "a refusal leaves stdout alone");
        said.stderr
    }

    pub fn count(&self) -> i64 {
        self.sql().query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).unwrap()
    }
}

pub fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect()
}

pub fn said(output: Output) -> Said {
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Lines for `--batch`: that many different jobs.
pub fn batch_of(count: usize) -> String {
    use std::fmt::Write as _;
    (0..count).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "{{\"type\":\"t\",\"payload\":{{\"n\":{n}}}}}");
        text
    })
}
