//! A backup is made every day, and brought back once: by then it must be the last one, and nothing else.

use std::path::Path;

use super::page::{page, run, run_page_until, steps};

/// The commands of one part of the page.
#[track_caller]
fn run_part(title: &str, folder: &Path) {
    let text = page("docs/operations.md");
    let part = text.split("\n## ").find(|part| part.starts_with(title)).unwrap();
    let steps = steps(part);
    assert!(!steps.is_empty(), "{title} has lost its commands");
    for step in &steps {
        run(step, folder);
    }
}

#[track_caller]
fn jobq(folder: &Path, command: &str) {
    run(&steps(&format!("```console\n$ jobq {command}\n```\n"))[0], folder);
}

#[test]
fn a_backup_can_be_made_every_day_and_the_last_one_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let at = |path: &str| folder.join(path);
    run_page_until("docs/operations.md", "## Backup", folder);
    assert_eq!(std::fs::read_to_string(at("out/a.txt")).unwrap(), "a");
    run_part("Backup", folder);
    jobq(folder, r#"enqueue delete_file '{"path":"out/a.txt"}'"#);
    jobq(folder, r#"enqueue create_file '{"path":"out/c.txt","content":"c"}'"#);
    jobq(folder, "worker --drain");
    run_part("Backup", folder);
    // A day later all of it is lost.
    jobq(folder, r#"enqueue create_file '{"path":"out/d.txt","content":"d"}'"#);
    std::fs::remove_dir_all(at("out")).unwrap();
    run_part("Restore", folder);
    assert_eq!(std::fs::read_to_string(at("out/c.txt")).unwrap(), "c");
    assert!(!at("out/a.txt").exists(), "it was deleted before the last backup");
    jobq(folder, "reconcile --deep");
    jobq(folder, "worker --drain");
    assert!(!at("out/d.txt").exists(), "the queue is the one of the backup");
}
