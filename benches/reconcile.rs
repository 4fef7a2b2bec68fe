//! The reconciler beside bare loops over the same files.

use std::fmt::Write as _;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use jobq::{Queue, ReconcileOptions, Reconciled};
use rusqlite::{Connection, params};
use sha2::{Digest as _, Sha256};

use crate::Sizes;
use crate::table::{Goal, Table, per_second};

pub(crate) fn run(sizes: &Sizes, table: &mut Table) {
    fast(sizes, table);
    deep(sizes, table);
    memory(sizes, table);
}

/// A queue whose record says that these files were left as they are.
fn queue_with(root: &Path, paths: &[String], hash: impl Fn(&str) -> String) -> Queue {
    let queue = Queue::init(root).unwrap();
    let conn = Connection::open(queue.database()).unwrap();
    conn.execute_batch("BEGIN").unwrap();
    let mut insert = conn
        .prepare(
            "INSERT INTO effects (path, job_id, number, op, state, precondition, sha256, size, mtime, inode, applied_in)
             VALUES (?1, ?2, 0, 'put', 'applied', 'absent', ?3, ?4, ?5, ?6, ?7)",
        )
        .unwrap();
    for (number, path) in (1_i64..).zip(paths) {
        let meta = std::fs::symlink_metadata(root.join(path)).unwrap();
        let mtime = meta.mtime() * 1_000_000_000 + meta.mtime_nsec();
        let (size, inode) = (meta.size().cast_signed(), meta.ino().cast_signed());
        insert.execute(params![path, format!("{number:026}"), hash(path), size, mtime, inode, number]).unwrap();
    }
    drop(insert);
    conn.execute_batch("COMMIT").unwrap();
    queue
}

fn reconcile(queue: &Queue, deep: bool) -> Reconciled {
    let options = ReconcileOptions { deep, ..ReconcileOptions::default() };
    let sums = queue.reconcile(&options, |_, _| true).unwrap();
    assert_eq!(sums.checked, sums.ok, "{sums:?}");
    sums
}

fn fast(sizes: &Sizes, table: &mut Table) {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<String> = (0..sizes.looked_at).map(|n| format!("data/{:03}/file-{n}.json", n % 100)).collect();
    for path in &paths {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "{}\n").unwrap();
    }
    let queue = queue_with(folder.path(), &paths, |_| "0".repeat(64));
    let whole: Vec<PathBuf> = paths.iter().map(|path| folder.path().join(path)).collect();
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        floor.push(per_second(sizes.looked_at, || {
            assert!(whole.iter().all(|path| std::fs::symlink_metadata(path).unwrap().is_file()));
        }));
        ours.push(per_second(sizes.looked_at, || {
            assert_eq!(reconcile(&queue, false).checked, sizes.looked_at as u64);
        }));
    }
    let name = format!("fast look at {}; lstat", sizes.looked_at);
    table.ratio(&name, "files/s", &ours, &floor, Goal::AtLeast(0.7));
}

fn deep(sizes: &Sizes, table: &mut Table) {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<String> = (0..sizes.hashed).map(|n| format!("{n}.bin")).collect();
    let mut content = vec![0; sizes.hashed_bytes];
    for path in &paths {
        fastrand::fill(&mut content);
        std::fs::write(folder.path().join(path), &content).unwrap();
    }
    let queue = queue_with(folder.path(), &paths, |path| digest(&folder.path().join(path)));
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    let megabytes = sizes.hashed * sizes.hashed_bytes / 1_000_000;
    for _ in 0..sizes.rounds {
        floor.push(per_second(megabytes, || bare_hashes(folder.path(), &paths)));
        ours.push(per_second(megabytes, || {
            reconcile(&queue, true);
        }));
    }
    table.ratio("deep look; bare sha2", "MB/s", &ours, &floor, Goal::AtLeast(0.8));
}

/// The same files by as many threads, with nothing but read and hash.
fn bare_hashes(root: &Path, paths: &[String]) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    assert_eq!(digest(&root.join(path)).len(), 64);
                }
            });
        }
    });
}

fn digest(path: &Path) -> String {
    let mut file = std::fs::File::open(path).unwrap();
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 128 << 10];
    loop {
        match file.read(&mut buffer).unwrap() {
            0 => break,
            count => hasher.update(&buffer[..count]),
        }
    }
    hasher.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A process of its own, so that its peak is the reconciler's.
fn memory(sizes: &Sizes, table: &mut Table) {
    let folder = tempfile::tempdir().unwrap();
    let queue = Queue::init(folder.path()).unwrap();
    let conn = Connection::open(queue.database()).unwrap();
    conn.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO effects (path, job_id, number, op, state, precondition, applied_in)
         SELECT printf('data/%03d/file-%08d.json', i % 100, i), printf('%026d', i), 0, 'remove', 'applied', 'absent', i FROM n",
        [i64::try_from(sizes.many).unwrap()],
    )
    .unwrap();
    drop((conn, queue));
    let program = std::env::current_exe().unwrap();
    let output = std::process::Command::new(program).args(["child", "reconcile"]).arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let peak: f64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    let name = format!("reconcile, peak memory for {} effects", sizes.many);
    table.alone(&name, "MB", &[peak], Goal::AtMost(64.0));
}

pub(crate) fn child(root: &Path) {
    reconcile(&Queue::open(root).unwrap(), false);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: f64 = peak.trim().trim_end_matches("kB").trim().parse().unwrap();
    println!("{}", kilobytes / 1_000.0);
}
