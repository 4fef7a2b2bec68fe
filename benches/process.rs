//! What a worker costs as a process: pickup, idle CPU, memory.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::Sizes;
use crate::child::now;
use crate::drain::{Noop, fill, open};
use crate::table::{Goal, Table, percentile};

pub(crate) fn start(part: &str, folder: &Path) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child", part])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

pub(crate) fn stop(mut child: Child) {
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// From the return of an enqueue to the call of the handler in another process.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a second or so")]
pub(crate) fn pickup(sizes: &Sizes, table: &mut Table) {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    let (child, mut lines) = start("wait", folder.path());
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let mut times = Vec::new();
    for n in 0..sizes.pickups {
        // Apart, so that the worker has gone back to sleep.
        std::thread::sleep(Duration::from_millis(20));
        queue.enqueue(Noop { n }).unwrap();
        let queued = now();
        let called: u128 = lines.next().unwrap().unwrap().parse().unwrap();
        times.push(called.saturating_sub(queued) as f64 / 1e6);
    }
    stop(child);
    table.alone("pickup by another process, p50", "ms", &[percentile(&times, 50)], Goal::AtMost(1.0));
    table.alone("pickup by another process, p99", "ms", &[percentile(&times, 99)], Goal::AtMost(5.0));
    plain_sql(sizes, table);
}

/// The same for a row that is inserted by plain SQL: nobody tells the worker, and
/// the WAL changes before the commit can be seen.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a second or so")]
fn plain_sql(sizes: &Sizes, table: &mut Table) {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let (child, mut lines) = start("wait", folder.path());
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let conn = rusqlite::Connection::open(folder.path().join(".jobq/jobq.db")).unwrap();
    conn.busy_timeout(Duration::from_secs(30)).unwrap();
    let rows = sizes.pickups.min(200);
    let mut times = Vec::new();
    for n in 0..rows {
        std::thread::sleep(Duration::from_millis(20));
        let sql = "INSERT INTO jobs (id, type, payload) VALUES (?1, 'noop', ?2)";
        conn.execute(sql, [format!("plain-{n}"), format!("{{\"n\":{n}}}")]).unwrap();
        let queued = now();
        let called: u128 = lines.next().unwrap().unwrap().parse().unwrap();
        times.push(called.saturating_sub(queued) as f64 / 1e6);
    }
    stop(child);
    let late = times.iter().filter(|time| **time > 100.0).count();
    table.alone(&format!("plain SQL: of {rows}, later than 100 ms"), "rows", &[late as f64], Goal::AtMost(0.0));
}

pub(crate) fn idle(sizes: &Sizes, table: &mut Table) {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    fill(&queue, 1);
    let (child, mut lines) = start("wait", folder.path());
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let _ = lines.next();
    std::thread::sleep(Duration::from_millis(500));
    let before = cpu(child.id());
    std::thread::sleep(Duration::from_secs(sizes.idle_seconds));
    let spent = cpu(child.id()) - before;
    stop(child);
    table.alone(&format!("idle worker, CPU in {} s", sizes.idle_seconds), "ms", &[spent], Goal::AtMost(10.0));
}

/// CPU time of all threads so far, in milliseconds.
fn cpu(pid: u32) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let nanos = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanos.sum::<f64>() / 1e6
}

pub(crate) fn memory(sizes: &Sizes, table: &mut Table) {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    fill(&queue, sizes.many);
    drop(queue);
    let (mut child, mut lines) = start("drain", folder.path());
    let mut seen = Vec::new();
    loop {
        if let Some(rss) = resident(child.id()) {
            seen.push(rss);
        }
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(lines.next().unwrap().unwrap(), format!("drained {}", sizes.many));
    let half = seen.len() / 2;
    let most = |part: &[f64]| part.iter().copied().fold(0.0, f64::max);
    let (early, late) = (most(&seen[..half.max(1)]), most(&seen[half..]));
    table.alone(&format!("resident, draining {} no-ops", sizes.many), "MB", &[early.max(late)], Goal::AtMost(40.0));
    table.alone("  its second half against the first", "%", &[late / early.max(0.1) * 100.0], Goal::AtMost(105.0));
}

fn resident(pid: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kib| kib / 1000.0)
}
