//! A queue with things beside its root that nobody may touch.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// By its path: what it is and holds, its mode, and when it was last changed.
pub type Tree = BTreeMap<PathBuf, (String, u32, (i64, i64))>;

pub struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        // In memory where that can be had: a thousand commands wait for no disk.
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let world = Self { folder: tempfile::Builder::new().prefix("jobq-hostile-").tempdir_in(base).unwrap() };
        for folder in ["root", "outside/folder"] {
            std::fs::create_dir_all(world.beside(folder)).unwrap();
        }
        for (path, content) in [("secret.txt", "secret"), ("folder/f.txt", "old"), ("root-of-all", "beside the root")] {
            std::fs::write(world.outside().join(path), content).unwrap();
        }
        symlink("secret.txt", world.outside().join("link")).unwrap();
        let said = world.jobq(&[b"init"], b"");
        assert!(said.status.success(), "{said:?}");
        world
    }

    pub fn root(&self) -> PathBuf {
        self.beside("root")
    }

    pub fn outside(&self) -> PathBuf {
        self.beside("outside")
    }

    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file below the root, with the folders that it needs.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// The real program, in the root. What it says of itself when it panics must be
    /// seen, and all that it could say is said.
    pub fn jobq<A: AsRef<[u8]>>(&self, args: &[A], stdin: &[u8]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jobq"));
        command.args(args.iter().map(|arg| OsStr::from_bytes(arg.as_ref()))).current_dir(self.root());
        command.env_remove("JOBQ_DB").env("JOBQ_LOG", "debug").env("RUST_BACKTRACE", "0");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // One that refuses its arguments does not wait for input.
        let mut input = child.stdin.take().unwrap();
        let given = stdin.to_vec();
        let feed = std::thread::spawn(move || drop(input.write_all(&given)));
        let said = child.wait_with_output().unwrap();
        feed.join().unwrap();
        said
    }

    /// Must succeed; returns the JSON lines.
    pub fn json(&self, args: &[&str]) -> Vec<Value> {
        let said = self.jobq(&[args, &["--json"]].concat(), b"");
        assert!(said.status.success(), "{args:?}: {}", String::from_utf8_lossy(&said.stderr));
        said.stdout.split(|byte| *byte == b'\n').flat_map(serde_json::from_slice).collect()
    }

    pub fn sql(&self) -> rusqlite::Connection {
        let conn = rusqlite::Connection::open(self.root().join(".jobq/jobq.db")).unwrap();
        conn.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
        conn
    }

    /// A job's status and its error; nothing if there is no such job.
    pub fn status(&self, id: &str) -> (String, String) {
        let found =
            self.sql().query_row("SELECT status, coalesce(last_error, '') FROM jobs WHERE id = ?1", [id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            });
        found.unwrap_or_default()
    }

    pub fn count(&self, sql: &str) -> i64 {
        self.sql().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Everything beside the root.
    pub fn canary(&self) -> Tree {
        tree(self.folder.path(), "root")
    }

    /// Everything below the root that is not jobq's own.
    pub fn inside(&self) -> Tree {
        tree(&self.root(), ".jobq")
    }

    /// What lies in jobq's own folder that nobody needs when no process runs.
    pub fn litter(&self) -> Vec<PathBuf> {
        let known = ["jobq.db", "jobq.db-wal", "jobq.db-shm", "wake", "owners", "stage", ".gitignore", "config.toml"];
        let mut found: Vec<PathBuf> = tree(&self.root().join(".jobq"), "handlers").into_keys().collect();
        found.retain(|path| !known.iter().any(|known| path == Path::new(known)));
        found
    }
}

fn tree(folder: &Path, but: &str) -> Tree {
    let mut found = Tree::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path == folder.join(but) {
                continue;
            }
            let metadata = path.symlink_metadata().unwrap();
            let what = if metadata.is_symlink() {
                format!("a link to {}", path.read_link().unwrap().display())
            } else if metadata.is_file() {
                std::fs::read(&path).unwrap().escape_ascii().to_string()
            } else {
                format!("{:?}", metadata.file_type())
            };
            // That somebody looks into a folder is seen in no time of it; that an entry is made or goes, is.
            let changed = (metadata.ctime(), metadata.ctime_nsec());
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), (what, metadata.mode(), changed));
            if metadata.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

/// Whether the program was not itself any more: panicked, or killed by a signal,
/// its own (an overflowing stack, no memory) or another's.
pub fn has_panicked(said: &Output) -> bool {
    let told = String::from_utf8_lossy(&said.stderr).contains("panicked at");
    told || said.status.code() == Some(101) || said.status.signal().is_some()
}

/// The first character of what it said that a terminal would act on.
pub fn upsetting(said: &Output) -> Option<char> {
    let text = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    text.chars().find(|c| c.is_control() && *c != '\n')
}
