//! What a power cut would leave, as far as calls tell: a content is sure when its
//! file was synced after it was written, a name when its folder was.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::strace::Call;

/// Files and folders of one process that a power cut could take back.
#[derive(Default)]
pub struct Disk {
    pub contents: BTreeSet<PathBuf>,
    pub names: BTreeSet<PathBuf>,
    /// How many names and contents were ever in doubt.
    pub changes: usize,
}

/// The database's log.
pub fn is_log(call: &Call) -> bool {
    call.line.contains("jobq.db-wal>")
}

pub fn is_sync(call: &Call) -> bool {
    ["fsync", "fdatasync"].contains(&call.name.as_str())
}

impl Disk {
    /// Nothing could be lost.
    pub fn is_sure(&self) -> bool {
        self.contents.is_empty() && self.names.is_empty()
    }

    /// Takes note of a call that was made. What is not the user's and not staged
    /// (lock files, the database) is not looked at.
    pub fn see(&mut self, call: &Call, root: &Path) {
        let places = places(&call.line);
        let ours = |path: &Path| {
            let path = path.strip_prefix(root).unwrap_or(Path::new(".jobq"));
            !path.starts_with(".jobq") || path.starts_with(".jobq/stage")
        };
        let Some(first) = places.first().filter(|_| call.changes()) else { return };
        match call.name.as_str() {
            "fsync" | "fdatasync" => {
                self.contents.remove(first);
                self.names.retain(|name| name.parent() != Some(first));
            }
            "write" | "writev" | "pwrite64" | "ftruncate" if ours(first) => self.content(first),
            "open" | "openat" | "mkdir" | "mkdirat" | "unlink" | "unlinkat" if ours(first) => self.name(first),
            "rename" | "renameat" | "renameat2" | "link" | "linkat" => {
                let to = &places[1];
                assert!(!self.contents.contains(first), "{} has a name before its content is sure", to.display());
                self.name(to);
            }
            _ => {}
        }
    }

    fn content(&mut self, path: &Path) {
        self.changes += 1;
        self.contents.insert(path.to_owned());
    }

    fn name(&mut self, path: &Path) {
        self.changes += 1;
        self.names.insert(path.to_owned());
    }
}

/// The paths a call is given: a descriptor's, a name's, or a name in a
/// descriptor's folder.
fn places(line: &str) -> Vec<PathBuf> {
    // What it returns is no argument.
    let mut rest = line.rsplit_once(" = ").map_or(line, |(arguments, _)| arguments);
    let mut places: Vec<PathBuf> = Vec::new();
    // Whether the last one is a descriptor, which the next name may be in.
    let mut folder = false;
    while let Some(at) = rest.find(['<', '"']) {
        let is_name = rest.as_bytes()[at] == b'"';
        let (inner, after) = rest[at + 1..].split_once(if is_name { '"' } else { '>' }).unwrap();
        match places.last_mut().filter(|_| is_name && folder) {
            // What is written is not shown, and is no name.
            Some(_) if inner.is_empty() => {}
            Some(last) => *last = last.join(inner),
            None => places.push(inner.into()),
        }
        folder = !is_name;
        rest = after;
    }
    places
}
