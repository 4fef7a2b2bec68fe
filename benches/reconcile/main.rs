//! Speed and memory of the reconciler beside bare loops over the same files in
//! the same run. Ratios are what counts; absolute figures depend on the machine.
//!
//! ```text
//! cargo bench --bench reconcile             # the whole table, a minute or two
//! cargo bench --bench reconcile -- --short  # small numbers, to see that it runs
//! ```

#[path = "../core/table.rs"]
mod table;

use std::fmt::Write as _;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use jobq::{Queue, ReconcileOptions, Reconciled};
use rusqlite::{Connection, params};
use sha2::{Digest as _, Sha256};

use table::{line, per_second};

/// How much of everything.
struct Sizes {
    rounds: usize,
    files: usize,
    large: usize,
    large_bytes: usize,
    many: usize,
}

const WHOLE: Sizes = Sizes { rounds: 5, files: 100_000, large: 256, large_bytes: 8 << 20, many: 1_000_000 };
const SHORT: Sizes = Sizes { rounds: 1, files: 500, large: 4, large_bytes: 1 << 20, many: 5_000 };

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = args.iter().position(|a| a == "child") {
        return child(Path::new(&args[at + 1]));
    }
    let short = args.iter().any(|a| a == "--short");
    let sizes = if short { SHORT } else { WHOLE };
    if short {
        println!("Short form: it shows that the benchmark runs; its figures and verdicts mean nothing.");
    }
    println!("{:<44} {:>12} {:>12} {:>7} {:>7}", "", "jobq", "floor", "ratio", "goal");
    fast(&sizes);
    deep(&sizes);
    memory(&sizes);
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

fn fast(sizes: &Sizes) {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<String> = (0..sizes.files).map(|n| format!("data/{:03}/file-{n}.json", n % 100)).collect();
    for path in &paths {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "{}\n").unwrap();
    }
    let queue = queue_with(folder.path(), &paths, |_| "0".repeat(64));
    let whole: Vec<PathBuf> = paths.iter().map(|path| folder.path().join(path)).collect();
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        floor.push(per_second(sizes.files, || {
            assert!(whole.iter().all(|path| std::fs::symlink_metadata(path).unwrap().is_file()));
        }));
        ours.push(per_second(sizes.files, || {
            assert_eq!(reconcile(&queue, false).checked, sizes.files as u64);
        }));
    }
    line("fast look, beside lstat (files/s)", &ours, &floor, 0.7);
}

fn deep(sizes: &Sizes) {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<String> = (0..sizes.large).map(|n| format!("{n}.bin")).collect();
    let mut content = vec![0; sizes.large_bytes];
    for path in &paths {
        fastrand::fill(&mut content);
        std::fs::write(folder.path().join(path), &content).unwrap();
    }
    let queue = queue_with(folder.path(), &paths, |path| digest(&folder.path().join(path)));
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    let megabytes = sizes.large * sizes.large_bytes / 1_000_000;
    for _ in 0..sizes.rounds.min(3) {
        floor.push(per_second(megabytes, || bare_hashes(folder.path(), &paths)));
        ours.push(per_second(megabytes, || {
            reconcile(&queue, true);
        }));
    }
    line("deep look, beside bare sha2 (MB/s)", &ours, &floor, 0.8);
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
fn memory(sizes: &Sizes) {
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
    let output = std::process::Command::new(program).arg("child").arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let peak: f64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    let verdict = if peak <= 64.0 { "" } else { "  above the goal" };
    println!("{:<44} {peak:>12.1} {:>28}{verdict}", format!("peak memory for {} effects (MB)", sizes.many), "<= 64");
}

fn child(root: &Path) {
    reconcile(&Queue::open(root).unwrap(), false);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: f64 = peak.trim().trim_end_matches("kB").trim().parse().unwrap();
    println!("{}", kilobytes / 1_000.0);
}
