//! Folders of disks. Mounts are gone with the process that made them; a folder is
//! left behind by one that was killed.

use std::path::{Path, PathBuf};

const NAME: &str = "faultlab-power-cut-";

/// In memory where that can be had.
fn base() -> PathBuf {
    let base = Path::new("/dev/shm");
    if base.is_dir() { base.to_owned() } else { std::env::temp_dir() }
}

/// A folder that tells whose it is.
pub fn new_folder() -> tempfile::TempDir {
    let name = format!("{NAME}{}-", std::process::id());
    tempfile::Builder::new().prefix(&name).tempdir_in(base()).expect("there is room for a folder")
}

/// Removes the folders of those who are dead.
pub fn sweep() {
    for entry in base().read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(NAME)?.split_once('-'));
        if owner.is_some_and(|(owner, _)| !Path::new("/proc").join(owner).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
