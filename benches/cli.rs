//! `jobq enqueue` as a process, from exec to exit, beside the `sqlite3` shell
//! doing one durable INSERT.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Sizes;
use crate::table::{Goal, Table};

pub(crate) fn run(sizes: &Sizes, table: &mut Table) {
    if Command::new("sqlite3").arg("--version").output().is_err() {
        println!("jobq enqueue as a process: SKIPPED, there is no sqlite3 program to compare with");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let jobq = env!("CARGO_BIN_EXE_jobq");
    let at = |args: &[&str], program: &str| {
        let mut command = Command::new(program);
        command.args(args).current_dir(folder.path()).stdout(Stdio::null());
        command
    };
    assert!(at(&["init"], jobq).status().unwrap().success());
    let create = "PRAGMA journal_mode = WAL; CREATE TABLE jobs (id TEXT PRIMARY KEY, type TEXT, payload TEXT)";
    assert!(at(&["plain.db", create], "sqlite3").status().unwrap().success());
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for n in 0..sizes.processes {
        let payload = format!("{{\"n\":{n}}}");
        ours.push(milliseconds(&mut at(&["enqueue", "noop", &payload], jobq)));
        let insert = format!("PRAGMA synchronous = FULL; INSERT INTO jobs VALUES ('{n}', 'noop', '{payload}')");
        plain.push(milliseconds(&mut at(&["plain.db", &insert], "sqlite3")));
    }
    table.ratio("jobq enqueue, exec to exit; sqlite3", "ms", &ours, &plain, Goal::AtMost(2.0));
}

fn milliseconds(command: &mut Command) -> f64 {
    let start = Instant::now();
    assert!(command.status().unwrap().success());
    start.elapsed().as_secs_f64() * 1e3
}
