//! Filesystems of their own, for tests that are run by root.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::world::World;

/// Whether this process may mount and make devices. If not, says what is left
/// out.
pub fn is_root(what: &str) -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    if !root {
        eprintln!("!!! NOT TESTED, needs root: {what}");
    }
    root
}

/// A mount, gone when dropped.
pub struct Mount(PathBuf);

impl Mount {
    pub fn new(arguments: &[&str], at: &Path) -> Self {
        let output = Command::new("mount").args(arguments).arg(at).output().unwrap();
        assert!(output.status.success(), "mount {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Self(at.to_owned())
    }

    pub fn tmpfs(options: &str, at: &Path) -> Self {
        Self::new(&["-t", "tmpfs", "-o", options, "tmpfs"], at)
    }

    pub fn bind(from: &Path, at: &Path) -> Self {
        Self::new(&["--bind", from.to_str().unwrap()], at)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let done = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(done.is_ok_and(|status| status.success()), "cannot unmount {}", self.0.display());
    }
}

/// A world on a filesystem of its own.
pub struct SmallWorld {
    pub world: World,
    pub mounted: PathBuf,
    _mount: Mount,
    _folder: tempfile::TempDir,
}

impl SmallWorld {
    pub fn new(options: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mount = Mount::tmpfs(options, folder.path());
        let world = World::at(tempfile::tempdir_in(folder.path()).unwrap());
        Self { world, mounted: folder.path().to_owned(), _mount: mount, _folder: folder }
    }
}
