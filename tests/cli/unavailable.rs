//! A database that cannot be used: exit 5, and the file as it was.

use std::path::Path;
use std::process::Command;

use super::harness::{Scratch, batch_of};

#[test]
fn a_file_that_is_not_a_database_is_left_alone() {
    let q = Scratch::new();
    for content in [&b"this is not a database, it only has its name; much longer than a header of one hundred bytes would be, so it is read"[..], b"short"] {
        let _ = std::fs::remove_file(q.path().join(".jobq/jobq.db-wal"));
        std::fs::write(q.db(), content).unwrap();
        for args in [vec!["list"], vec!["enqueue", "send_mail", "{}"], vec!["init"]] {
            q.refused(5, &args);
            assert_eq!(std::fs::read(q.db()).unwrap(), content, "{args:?}");
        }
    }
}

#[test]
fn a_database_without_our_tables_is_left_alone_until_init() {
    let q = Scratch::empty();
    let path = q.path().join("app.db");
    let app = rusqlite::Connection::open(&path).unwrap();
    app.execute_batch("CREATE TABLE mine (x)").unwrap();
    drop(app);
    let before = std::fs::read(&path).unwrap();
    // As where there is no queue at all: a worker is not started again and again for it.
    for args in [["--db", "app.db", "list"], ["--db", "app.db", "worker"]] {
        assert!(q.refused(3, &args).contains("`jobq --db"), "{args:?}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    q.ok(&["--db", "app.db", "init"]);
    q.ok(&["--db", "app.db", "enqueue", "send_mail", "{}"]);
    let app = rusqlite::Connection::open(&path).unwrap();
    assert_eq!(app.query_row("SELECT count(*) FROM mine", [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[test]
fn a_damaged_database_is_reported() {
    let q = Scratch::new();
    let lines = batch_of(500);
    assert_eq!(q.run_with_input(&["enqueue", "--batch", "-"], &lines).code, 0);
    let mut bytes = std::fs::read(q.db()).unwrap();
    let length = bytes.len();
    bytes[8192..length].fill(0xA5);
    std::fs::write(q.db(), &bytes).unwrap();
    let said = q.run(&["list"]);
    assert_eq!(said.code, 5, "{}{}", said.stdout, said.stderr);
    assert!(said.stderr.contains("damaged"), "{}", said.stderr);
    assert_eq!(std::fs::read(q.db()).unwrap(), bytes, "file untouched");
}

#[test]
fn a_newer_database_is_refused_untouched() {
    let q = Scratch::new();
    q.enqueue(&["send_mail", "{}"]);
    let conn = q.sql();
    conn.execute("UPDATE jobq_meta SET value = '99' WHERE key = 'schema_version'", []).unwrap();
    drop(conn);
    let before = std::fs::read(q.db()).unwrap();
    for args in [vec!["list"], vec!["enqueue", "send_mail", "{}"], vec!["init"], vec!["prune", "--older-than", "1s"]] {
        assert!(q.refused(5, &args).contains("99"), "{args:?}");
    }
    assert_eq!(std::fs::read(q.db()).unwrap(), before);
}

#[test]
fn a_locked_database_is_waited_for_and_then_reported() {
    let q = Scratch::new();
    std::fs::write(q.path().join(".jobq/config.toml"), "busy_timeout = \"50ms\"\n").unwrap();
    let conn = q.sql();
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(q.refused(5, &["enqueue", "send_mail", "{}"]).contains("locked"));
    q.ok(&["list"]);
    conn.execute_batch("ROLLBACK").unwrap();
    q.ok(&["enqueue", "send_mail", "{}"]);
}

/// Needs root for the mount; says so loudly when it cannot run.
fn mounted(at: &Path, options: &str) -> Option<Mounted> {
    let done = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).output();
    if done.as_ref().is_ok_and(|o| o.status.success()) {
        return Some(Mounted(at.to_owned()));
    }
    crate::skipped::skipped(
        "filesystems that are full or read-only",
        &format!("no tmpfs can be mounted (as root): {done:?}"),
    );
    None
}

struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    let q = Scratch::empty();
    let disk = q.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let Some(_mounted) = mounted(&disk, "size=1m") else { return };
    q.ok(&["init", "disk"]);
    let db = disk.join(".jobq/jobq.db");
    let db = db.to_str().unwrap();
    let filler = disk.join("filler");
    // As much as fits: the write ends with the disk full.
    let _ = std::fs::write(&filler, vec![0_u8; 2 * 1024 * 1024]);
    let payload = format!("{{\"a\":\"{}\"}}", "x".repeat(64 * 1024));
    let error = q.refused(5, &["--db", db, "enqueue", "send_mail", &payload]);
    assert!(error.contains("full") || error.contains("disk"), "{error}");
    std::fs::remove_file(&filler).unwrap();
    assert_eq!(q.json(&["--db", db, "list"]).len(), 0);
    q.ok(&["--db", db, "enqueue", "send_mail", &payload]);
    assert_eq!(q.json(&["--db", db, "list"]).len(), 1);
}

#[test]
fn a_read_only_disk_refuses() {
    let q = Scratch::empty();
    let disk = q.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let Some(_mounted) = mounted(&disk, "size=4m") else { return };
    q.ok(&["init", "disk"]);
    let db = disk.join(".jobq/jobq.db");
    let before = std::fs::read(&db).unwrap();
    assert!(Command::new("mount").args(["-o", "remount,ro"]).arg(&disk).status().unwrap().success());
    for args in [&["enqueue", "send_mail", "{}"][..], &["list"], &["stats"]] {
        let said = q.refused(5, &[&["--db", db.to_str().unwrap()], args].concat());
        assert!(said.contains("mounted read-only") && said.contains("copy the queue"), "{said}");
    }
    assert_eq!(std::fs::read(&db).unwrap(), before);
}

/// Whoever has put it there: an answer is owed for what is durable.
#[test]
fn a_pipe_that_nobody_reads_keeps_no_caller_waiting() {
    let q = Scratch::new();
    let wake = q.path().join(".jobq/wake");
    let _ = std::fs::remove_file(&wake);
    rustix::fs::mkfifoat(rustix::fs::CWD, &wake, 0o600.into()).unwrap();
    // With patience that ends: broken, each of them would stand for ever.
    for args in [&["enqueue", "create_file", r#"{"path":"a","content":"a"}"#][..], &["worker", "--drain"]] {
        let (command, _lines) = super::running::start(&q, args);
        assert_eq!(command.end().0, Some(0), "{args:?}");
    }
    assert!(q.path().join("a").exists());
}
