//! A root folder with a queue, and one commit that does a bit of everything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jobq::{EventQuery, Filter, Job, Queue, QueueOptions};
use serde_json::{Value, json};

/// The commit's id.
pub const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
/// What its jobs are called, in the order they were given.
pub const JOBS: [&str; 2] = ["01ARZ3NDEKC2MGCWB6R3130JZ0", "01ARZ3NDEK1A60XK57QQNF7XXM"];

/// Files with their contents, and folders (by a `/` at their end).
pub type Tree = BTreeMap<String, String>;

pub struct World {
    folder: tempfile::TempDir,
}

impl World {
    /// Three files, and a queue in which nothing has ever happened.
    pub fn new() -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        for (path, text) in before() {
            let path = world.root().join(path);
            if text.is_empty() { std::fs::create_dir_all(path).unwrap() } else { std::fs::write(path, text).unwrap() }
        }
        drop(QueueOptions::in_folder(world.root()).create(true).open().unwrap());
        world.document("commit", &commit());
        world
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// A place outside the root.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A commit to be read by the program.
    pub fn document(&self, name: &str, commit: &Value) {
        std::fs::write(self.outside(name).with_extension("json"), commit.to_string()).unwrap();
    }

    /// The real program.
    pub fn jobq(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jobq"));
        command.args(["--json", "--root"]).arg(self.root()).args(args);
        command.current_dir("/").env_remove("JOBQ_DB").env_remove("JOBQ_LOG").stdin(Stdio::null());
        command
    }

    /// The program that makes a commit, of the document of that name.
    pub fn committer(&self, name: &str) -> Command {
        let mut command = self.jobq(&["commit"]);
        command.arg(self.outside(name).with_extension("json"));
        command
    }

    /// The program that opens the queue for writing and finds nothing else to do.
    pub fn opener(&self) -> Command {
        self.jobq(&["prune", "--older-than", "3650d"])
    }

    /// Opens the queue, which brings to its end what others have left.
    pub fn open(&self) -> Queue {
        Queue::open(self.root()).unwrap()
    }

    /// Everything below the root that is not jobq's own.
    pub fn tree(&self) -> Tree {
        let root = self.root();
        let content =
            |path: &str| if path.ends_with('/') { Vec::new() } else { std::fs::read(root.join(path)).unwrap() };
        let theirs = walk(&root).into_iter().filter(|path| !path.starts_with(".jobq/"));
        theirs.map(|path| (String::from_utf8(content(&path)).unwrap(), path)).map(|(text, path)| (path, text)).collect()
    }

    /// What lies in jobq's own folder that nobody who is alive needs.
    pub fn litter(&self) -> Vec<String> {
        let known = ["jobq.db", "jobq.db-wal", "jobq.db-shm", "wake", "owners/", "stage/"];
        let mut names = walk(&self.root().join(".jobq"));
        names.retain(|path| !known.contains(&path.as_str()));
        names
    }

    pub fn sql(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.root().join(".jobq/jobq.db")).unwrap()
    }
}

/// The jobs that side effects are, oldest first.
pub fn jobs(queue: &Queue) -> Vec<Job> {
    let filter = Filter { job_type: Some("create_file".to_owned()), limit: 1_000, ..Filter::default() };
    let mut jobs = queue.list(&filter).unwrap();
    jobs.reverse();
    jobs
}

/// The types of a job's events, oldest first.
pub fn events(queue: &Queue, id: &str) -> Vec<String> {
    let query = EventQuery { job_id: Some(id.to_owned()), after: 0, limit: 1_000 };
    queue.events(&query).unwrap().into_iter().map(|event| event.event_type).collect()
}

/// A new file in new folders, one that is written over, one that goes, two jobs.
fn commit() -> Value {
    json!({
        "id": ID,
        "writes": [
            { "path": "new/deep/file.json", "json": { "made": true } },
            { "path": "data/there.json", "text": "new" },
        ],
        "removes": [{ "path": "data/gone.json" }],
        "jobs": [
            { "type": "create_file", "payload": { "path": "out/1.txt", "content": "one" } },
            { "type": "create_file", "payload": { "path": "out/2.txt", "content": "two" } },
        ],
    })
}

pub fn before() -> Tree {
    tree(&[("data/", ""), ("data/other.json", "other"), ("data/there.json", "old"), ("data/gone.json", "to go")])
}

pub fn after() -> Tree {
    tree(&[
        ("data/", ""),
        ("data/other.json", "other"),
        ("data/there.json", "new"),
        ("new/", ""),
        ("new/deep/", ""),
        ("new/deep/file.json", "{\n  \"made\": true\n}\n"),
    ])
}

pub fn tree(entries: &[(&str, &str)]) -> Tree {
    entries.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

/// The names of what is below a folder, sorted; those of folders end with a `/`.
fn walk(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
            if path.is_dir() {
                names.push(format!("{name}/"));
                folders.push(path);
            } else {
                names.push(name.to_owned());
            }
        }
    }
    names.sort();
    names
}
