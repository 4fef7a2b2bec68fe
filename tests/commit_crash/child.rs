//! This test program again, as a process that uses the library.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use jobq::{NewJob, Queue, QueueOptions, handlers::CreateFile};
use serde::{Deserialize, Serialize};

use super::strace;
use super::world::World;

const SETUP: &str = "JOBQ_COMMIT_TEST_SETUP";
/// The name of [`the_process_that_a_test_starts`].
const NAME: &str = "commit_crash::child::the_process_that_a_test_starts";
/// Begins what the child says, among the lines of the test harness.
const MARK: &str = "C:";

/// What a child does.
#[derive(Debug, Serialize, Deserialize)]
pub enum Deed {
    /// Commits a file that holds its own path, and a job, without looking after
    /// what others have left.
    CommitAlone(String),
    /// Increments the counter so often, each time with a job.
    Count(u32),
}

pub struct Child {
    command: Command,
    log: PathBuf,
}

impl Child {
    pub fn new(world: &World, deed: &Deed) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", NAME, "--nocapture", "--test-threads=1"]);
        command.env(SETUP, serde_json::to_string(&(world.root(), deed)).unwrap());
        Self { command, log: world.outside("child.log") }
    }

    pub fn killed_at_first_rename(&self) {
        let rename = strace::Call { name: "renameat2".to_owned(), nth: 1, line: String::new() };
        // All threads: the harness runs it on one of its own.
        let mut command = strace::injected(&self.command, &rename, strace::At::Kill, &self.log, &["-f"]);
        let said = command.stdin(Stdio::null()).output().unwrap();
        assert!(strace::was_killed(said.status), "{said:?}");
    }

    /// Starts it; whoever waits for it hears what it has to say.
    pub fn start(mut self) -> impl FnOnce() -> String {
        let child = self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        move || {
            let said = child.wait_with_output().unwrap();
            assert!(said.status.success(), "{said:?}");
            let text = String::from_utf8(said.stdout).unwrap();
            text.lines().find_map(|line| line.strip_prefix(MARK)).expect("it says something").to_owned()
        }
    }
}

/// Not a test by itself. Without the variable it has nothing to do.
#[test]
fn the_process_that_a_test_starts() {
    let Ok(setup) = std::env::var(SETUP) else { return };
    let (root, deed): (PathBuf, Deed) = serde_json::from_str(&setup).unwrap();
    // The harness may have begun a line of its own.
    println!("\n{MARK}{}", act(&root, deed));
}

fn act(root: &std::path::Path, deed: Deed) -> String {
    match deed {
        Deed::CommitAlone(path) => {
            let queue = QueueOptions::in_folder(root).recover(false).open().unwrap();
            let accepted = queue.commit(|tx| {
                tx.write_json(&path, &path)?;
                tx.enqueue(CreateFile::text(format!("out/{path}"), "")).and(Ok(()))
            });
            accepted.unwrap().id
        }
        Deed::Count(times) => {
            let queue = Queue::open(root).unwrap();
            let mut calls = 0;
            for _ in 0..times {
                let increment = queue.update_json("data/counter.json", |value: Option<u64>, tx| {
                    calls += 1;
                    let next = value.unwrap_or(0) + 1;
                    tx.enqueue(NewJob::raw("count", format!(r#"{{"value":{next}}}"#)))?;
                    Ok(next)
                });
                assert!(increment.unwrap().applied);
            }
            calls.to_string()
        }
    }
}
