//! A root with something outside it, and the words the tests are written in.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use jobq::effects::{Act, Content, Expect, FileEffect, Files};
use jobq::store::{Applier as _, ApplyReport, EffectOp, Failure, FileStamp, Lease, PlannedEffect, Precondition};
use sha2::{Digest as _, Sha256};

pub struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    pub fn at(folder: tempfile::TempDir) -> Self {
        let world = Self { folder };
        fs::create_dir_all(world.state()).unwrap();
        fs::create_dir_all(world.outside().join("folder")).unwrap();
        fs::write(world.outside().join("secret.txt"), "secret").unwrap();
        fs::write(world.outside().join("folder/inner.txt"), "inner").unwrap();
        fs::write(world.outside().join("folder/f.txt"), "old").unwrap();
        world
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub fn state(&self) -> PathBuf {
        self.root().join(".jobq")
    }

    pub fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub fn files(&self) -> Files {
        self.files_of("owner-1")
    }

    pub fn files_of(&self, owner: &str) -> Files {
        Files::open(&self.root(), &self.state(), owner).unwrap()
    }

    /// A file of the user's, long enough ago for its times to prove something.
    pub fn old(&self, path: &str, content: &str) -> PathBuf {
        let path = self.write(path, content);
        std::thread::sleep(Duration::from_millis(30));
        path
    }

    /// A file of the user's.
    pub fn write(&self, path: &str, content: &str) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub fn content(&self, path: &str) -> Option<String> {
        match fs::read(self.path(path)) {
            Ok(content) => Some(String::from_utf8(content).unwrap()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => panic!("{path}: {e}"),
        }
    }

    /// What is in the stage of all owners.
    pub fn staged(&self) -> Vec<String> {
        let stage = self.state().join("stage");
        let mut names: Vec<String> = listing(&stage).into_keys().filter(|name| !stage.join(name).is_dir()).collect();
        names.sort();
        names
    }
}

pub fn lease(id: &str) -> Lease {
    claim(id, 1)
}

pub fn claim(id: &str, token: i64) -> Lease {
    Lease { id: id.to_owned(), seq: 1, token }
}

pub fn sha(content: &str) -> String {
    Sha256::digest(content.as_bytes()).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// A put as a handler would ask for it, staged as the n-th file of the job.
pub fn put(files: &Files, lease: &Lease, number: usize, path: &str, content: &str) -> FileEffect {
    let staged = files.stage_bytes(lease, number, content.as_bytes()).unwrap();
    files.sync_stage().unwrap();
    FileEffect::Put { path: path.to_owned(), content: Content::Staged(staged), expect: Expect::Any }
}

pub fn remove(path: &str) -> FileEffect {
    FileEffect::Remove { path: path.to_owned(), expect: Expect::Any }
}

/// Stages and plans puts of these contents.
pub fn plan_puts(files: &Files, lease: &Lease, puts: &[(&str, &str)]) -> Vec<PlannedEffect> {
    let effects = puts.iter().enumerate().map(|(n, (path, content))| put(files, lease, n, path, content)).collect();
    files.plan_all(effects).unwrap()
}

/// An effect as no plan would have made it.
pub fn forged(path: &str, op: EffectOp, precondition: Precondition) -> PlannedEffect {
    PlannedEffect { path: path.to_owned(), op, precondition, observed: None }
}

#[track_caller]
pub fn applied(report: ApplyReport) -> Vec<FileStamp> {
    match report {
        ApplyReport::Applied(stamps) => stamps,
        other => panic!("not applied: {other:?}"),
    }
}

#[track_caller]
pub fn conflict(report: ApplyReport) -> (Failure, Vec<(usize, FileStamp)>) {
    match report {
        ApplyReport::Conflict { failure, applied } => (failure, applied),
        other => panic!("no conflict: {other:?}"),
    }
}

#[track_caller]
pub fn deferred(report: ApplyReport) -> Failure {
    match report {
        ApplyReport::Deferred { failure, delay } => {
            assert_eq!(delay, 1_000);
            failure
        }
        other => panic!("not put off: {other:?}"),
    }
}

/// Applies and syncs, as the store does.
pub fn apply(files: &Files, lease: &Lease, effects: &[PlannedEffect]) -> ApplyReport {
    let report = files.apply(lease, effects, false);
    files.sync().unwrap();
    report
}

pub fn inode(path: &Path) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}

pub fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

pub fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub fn stamp_of(path: &Path) -> FileStamp {
    let meta = fs::metadata(path).unwrap();
    FileStamp { mtime: meta.mtime() * 1_000_000_000 + meta.mtime_nsec(), inode: meta.ino().cast_signed() }
}

/// Everything below a folder: what it is, who may do what, which content.
pub fn listing(folder: &Path) -> BTreeMap<String, String> {
    fn add(folder: &Path, prefix: &str, all: &mut BTreeMap<String, String>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let meta = entry.path().symlink_metadata().unwrap();
            let content = if meta.is_file() {
                sha(&String::from_utf8_lossy(&fs::read(entry.path()).unwrap()))
            } else if meta.is_symlink() {
                format!("-> {}", fs::read_link(entry.path()).unwrap().display())
            } else {
                String::new()
            };
            let times = if meta.is_file() { format!("{}.{}", meta.mtime(), meta.mtime_nsec()) } else { String::new() };
            all.insert(name.clone(), format!("{:o} {times} {content}", meta.mode()));
            if meta.is_dir() {
                add(&entry.path(), &format!("{name}/"), all);
            }
        }
    }
    let mut all = BTreeMap::new();
    add(folder, "", &mut all);
    all
}

/// What was done to the disk, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<(Act, String)>>>);

impl Log {
    pub fn note(&self, act: Act, what: &str) {
        self.0.lock().unwrap().push((act, what.to_owned()));
    }

    pub fn take(&self) -> Vec<(Act, String)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// The folders synced, sorted.
    pub fn synced(&self) -> Vec<String> {
        let mut folders: Vec<String> =
            self.take().into_iter().filter(|(act, _)| *act == Act::SyncFolder).map(|(_, what)| what).collect();
        folders.sort();
        folders
    }

    pub fn watch(&self) -> impl Fn(Act, &str) -> io::Result<()> + Send + Sync + 'static {
        let log = self.clone();
        move |act, what| {
            log.note(act, what);
            Ok(())
        }
    }
}

/// Does something the first time a thing is about to be done.
pub fn once(
    act: Act,
    what: &'static str,
    then: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> impl Fn(Act, &str) -> io::Result<()> + Send + Sync + 'static {
    let then = Mutex::new(Some(then));
    move |now, path| match then.lock().unwrap().take_if(|_| now == act && path == what) {
        Some(then) => then(),
        None => Ok(()),
    }
}

pub fn os_error(errno: rustix::io::Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.raw_os_error())
}

/// Sets a file's times, as a program that hides its change would.
pub fn set_mtime(path: &Path, time: SystemTime) {
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}
