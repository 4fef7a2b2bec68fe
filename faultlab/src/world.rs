//! A root folder with a queue, outside of which a scenario keeps its notes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jobq::{Queue, QueueOptions};
use rusqlite::Connection;

use crate::place;

/// Files with their contents, and folders (by a `/` at their end).
pub type Tree = BTreeMap<String, Vec<u8>>;

pub struct World {
    folder: tempfile::TempDir,
}

impl World {
    /// An empty root.
    pub fn empty() -> Self {
        let world = Self { folder: place::new_folder() };
        std::fs::create_dir(world.root()).unwrap();
        world
    }

    /// A root with a queue in which nothing has ever happened.
    pub fn new() -> Self {
        let world = Self::empty();
        drop(QueueOptions::in_folder(world.root()).create(true).open().unwrap());
        world
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// A place outside the root.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Opens the queue, which brings to its end what the dead have accepted.
    pub fn open(&self) -> jobq::Result<Queue> {
        Queue::open(self.root())
    }

    /// Everything below the root that is not jobq's own.
    pub fn tree(&self) -> Tree {
        let root = self.root();
        let content =
            |path: &str| if path.ends_with('/') { Vec::new() } else { std::fs::read(root.join(path)).unwrap() };
        let theirs = walk(&root).into_iter().filter(|path| !path.starts_with(".jobq/"));
        theirs.map(|path| (content(&path), path)).map(|(bytes, path)| (path, bytes)).collect()
    }

    /// What lies in jobq's own folder that nobody who is alive needs. Asked when
    /// no process has the queue open.
    pub fn litter(&self) -> Vec<String> {
        litter(&self.root())
    }

    /// Whoever has a job.
    pub fn owners(&self) -> Vec<String> {
        let sql = self.sql();
        let mut owners = sql.prepare("SELECT DISTINCT locked_by FROM jobs WHERE locked_by IS NOT NULL").unwrap();
        owners.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
    }

    /// The database as any other program sees it.
    pub fn sql(&self) -> Connection {
        let conn = Connection::open(self.root().join(".jobq/jobq.db")).unwrap();
        conn.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
        conn
    }

    /// What SQLite has to say against its file; nothing if it is sound.
    pub fn unsound(&self) -> Option<String> {
        let said: String = self.sql().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        (said != "ok").then_some(said)
    }
}

/// What lies in jobq's own folder of this root that nobody who is alive needs.
pub fn litter(root: &Path) -> Vec<String> {
    let known = ["jobq.db", "jobq.db-wal", "jobq.db-shm", "wake", "owners/", "stage/"];
    let mut names = walk(&root.join(".jobq"));
    names.retain(|path| !known.contains(&path.as_str()));
    names
}

/// The names of what is below a folder, sorted; those of folders end with a `/`.
pub fn walk(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
            if path.is_dir() && !path.is_symlink() {
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
