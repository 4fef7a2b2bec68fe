//! Where worlds and disks are made, and what becomes of those whose maker was killed.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;

const NAME: &str = "faultlab-";

/// Files that are in memory: what a killed process has written is there without any sync.
const MEMORY: &str = "/dev/shm";
/// What has to be free there. In a container it may be a few megabytes.
const ROOM: u64 = 1 << 30;

/// In memory where there is room for it. Always the same for one process, because
/// calls are compared by the paths they are made with.
fn base() -> &'static Path {
    static BASE: OnceLock<PathBuf> = OnceLock::new();
    BASE.get_or_init(|| {
        let free = rustix::fs::statvfs(MEMORY).map_or(0, |there| there.f_bavail * there.f_frsize);
        if free >= ROOM { PathBuf::from(MEMORY) } else { std::env::temp_dir() }
    })
}

/// A folder that tells whose it is.
pub fn new_folder() -> TempDir {
    let name = format!("{NAME}{}-", std::process::id());
    tempfile::Builder::new().prefix(&name).tempdir_in(base()).expect("there is room for a folder")
}

/// Removes the folders of those who are dead, wherever they had them.
pub fn sweep() {
    for base in [Path::new(MEMORY), &std::env::temp_dir()] {
        for entry in base.read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_str().and_then(owner).is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// The process that a folder of this name is of, by its number.
fn owner(name: &str) -> Option<&str> {
    let (owner, _) = name.strip_prefix(NAME)?.split_once('-')?;
    owner.parse::<u32>().is_ok().then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_the_dead_are_swept() {
        let alive = new_folder();
        // The number of a process that has ended, and was waited for.
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let number = child.id();
        child.wait().unwrap();
        let dead = base().join(format!("{NAME}{number}-abcdef"));
        let strange = base().join(format!("{NAME}of-somebody-{number}"));
        for folder in [&dead, &strange] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("file"), "").unwrap();
        }
        sweep();
        let there = [alive.path(), &dead, &strange].map(Path::exists);
        std::fs::remove_dir_all(&strange).unwrap();
        assert_eq!(there, [true, false, true]);
    }
}
