//! A sync that has failed. What it was to make sure of is not sure, and a second sync may
//! succeed without having written anything: so either somebody is told of it, or the same
//! is written afresh and synced, before anything is acknowledged that rests on it.

use std::path::Path;

use crate::said::Said;
use crate::strace::TELLING;

/// What was acknowledged on top of a failed sync, by the log of a process with one thread.
pub fn ignored(log: &Path, said: &[Said]) -> Option<String> {
    let mut told = said.iter();
    let mut doubts = Doubts::default();
    for line in std::fs::read_to_string(log).unwrap_or_default().lines() {
        if line.starts_with(TELLING) {
            let said = told.next()?;
            if let Some(doubt) = doubts.told(said) {
                return Some(format!("{said:?} in spite of {doubt}"));
            }
        } else {
            doubts.see(line);
        }
    }
    None
}

/// The same for one thread of several: when others have told something is not in its log. But
/// what has failed must have been told by somebody, or be repaired by itself.
pub fn never_told(log: &Path, said: &[Said]) -> Option<String> {
    let mut doubts = Doubts::default();
    std::fs::read_to_string(log).unwrap_or_default().lines().for_each(|line| doubts.see(line));
    if said.iter().any(|said| matches!(said, Said::Failed(..))) {
        return None;
    }
    // Of the database nothing can be said: another thread's COMMIT may have been before or after it.
    let rests = |doubt: &&Doubt| !doubt.is_database() && said.iter().any(|said| doubt.concerns(said));
    doubts.open.iter().find(rests).map(|doubt| format!("nobody has told of {}", doubt.line))
}

/// What is not sure.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is another question")]
struct Doubts {
    open: Vec<Doubt>,
    /// The line before, and the one before that.
    before: [String; 2],
    /// Something was written to the database's log, and it has not been synced since.
    pending: bool,
    /// So it was at any time.
    logged: bool,
    /// A COMMIT has been made sure since the call before the last that was answered.
    committed: bool,
    /// The answer is being told.
    telling: bool,
}

struct Doubt {
    /// The file or folder.
    path: String,
    line: String,
    /// A COMMIT of the same call had been made sure before.
    committed: bool,
    /// Something was written to it since.
    fresh: bool,
}

impl Doubts {
    fn see(&mut self, line: &str) {
        self.committed &= !std::mem::take(&mut self.telling);
        let path = line.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or("", |(path, _)| path);
        let is_sync = line.starts_with("fsync") || line.starts_with("fdatasync");
        if line.contains("(INJECTED)") && is_sync {
            if !self.is_of_no_account(path) {
                let (path, line, committed) = (path.to_owned(), line.to_owned(), self.committed);
                self.open.push(Doubt { path, line, committed, fresh: false });
            }
        } else if is_sync {
            self.committed |= self.pending && path.ends_with("/jobq.db-wal");
            self.open.retain(|doubt| !(doubt.fresh && doubt.path == path));
        } else if !line.contains(" = -1 ") {
            let logs = line.starts_with("pwrite") && path.ends_with("/jobq.db-wal");
            (self.logged, self.pending) = (self.logged | logs, self.pending | logs);
            for doubt in &mut self.open {
                doubt.fresh |= renews(line, path, &doubt.path);
            }
        }
        self.pending &= !(is_sync && path.ends_with("/jobq.db-wal"));
        self.before = [line.to_owned(), std::mem::take(&mut self.before[0])];
    }

    /// What SQLite may fail to do: copying the log, which is sure, into the database, which is
    /// done again as a whole; and the sync of the folder when it has made a file, of which it
    /// asks for no answer.
    fn is_of_no_account(&self, path: &str) -> bool {
        let copies = self.logged && (path.ends_with("/jobq.db") || (path.ends_with("-wal") && !self.pending));
        let [opened, synced] = &self.before;
        let made = opened.starts_with("open") && synced.starts_with('f') && synced.contains("/jobq.db");
        copies || (path.ends_with("/.jobq") && made)
    }

    /// Something was told: the doubt that it must not rest on.
    fn told(&mut self, said: &Said) -> Option<&str> {
        if matches!(said, Said::Failed(..)) {
            self.open.clear();
        }
        self.telling = true;
        self.open.iter().find(|doubt| doubt.concerns(said)).map(|doubt| doubt.line.as_str())
    }
}

impl Doubt {
    fn is_database(&self) -> bool {
        self.path.contains("/jobq.db")
    }

    /// All rests on the database; what was decided, on the stage; and what is completed on
    /// every file and folder. A commit is answered after two COMMITs: if the first was sure when
    /// something failed, all but its completion rests on that.
    fn concerns(&self, said: &Said) -> bool {
        match said {
            Said::Completed(_) => true,
            _ if self.committed => false,
            Said::Decided(_) => self.path.contains("/.jobq"),
            Said::Stored(_) | Said::Claimed(_) | Said::Checkpoint(..) | Said::Gone(_) => self.is_database(),
            Said::Pid(_) | Said::Run(_) | Said::Failed(..) | Said::Done(_) | Said::GaveUp(_) => false,
        }
    }
}

/// Whether this call writes to a file anew, or gives something in a folder, or further below,
/// a name anew. (A folder that others are in cannot be made once more.)
fn renews(line: &str, first: &str, path: &str) -> bool {
    let name = line.split('(').next().unwrap_or_default();
    let in_folder = ["<{}>, \"", "<{}/", "\"{}/"].iter().any(|place| line.contains(&place.replace("{}", path)));
    match name {
        "write" | "writev" | "pwrite64" | "pwritev" | "ftruncate" | "fchmod" => first == path,
        "openat" | "open" => in_folder && line.contains("O_CREAT"),
        _ => (name.starts_with("rename") || name.starts_with("unlink") || name.starts_with("mkdir")) && in_folder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(lines: &[&str], said: &[Said]) -> bool {
        let log = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(log.path(), lines.join("\n")).unwrap();
        ignored(log.path(), said).is_some()
    }

    const FAILED: &str = "fsync(7</root/out>) = -1 EIO (Input/output error) (INJECTED)";
    const SYNCED: &str = "fsync(7</root/out>) = 0";
    const RENAMED: &str = r#"renameat2(5</root/.jobq/stage/x>, "1", 7</root/out>, "file", 0) = 0"#;
    const TOLD: &str = "sendto(0<socket:[1]>, \"\"..., 9, 0, NULL, 0) = 9";

    #[test]
    fn a_failed_sync_is_told_or_what_it_was_for_is_done_again() {
        let completed = || Said::Completed("a".to_owned());
        assert!(judged(&[RENAMED, FAILED, TOLD], &[completed()]));
        assert!(judged(&[RENAMED, FAILED, SYNCED, TOLD], &[completed()]), "a second sync says nothing");
        assert!(!judged(&[RENAMED, FAILED, RENAMED, SYNCED, TOLD], &[completed()]));
        assert!(!judged(&[RENAMED, SYNCED, TOLD], &[completed()]));
        let failed = Said::Failed("Io".to_owned(), "the disk".to_owned());
        assert!(!judged(&[RENAMED, FAILED, TOLD, TOLD], &[failed, completed()]));
        assert!(!judged(&[FAILED, TOLD], &[Said::Decided("a".to_owned())]), "it does not rest on that folder");
    }
}
