//! What people see at a terminal: tables that fit it, short ids that can be typed,
//! and what to do next.

use std::fs::File;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::harness::Scratch;
use super::pty::Terminal;
use super::tmux::wait_until;

/// Wide characters take two columns.
fn width(line: &str) -> usize {
    line.chars().map(|c| if c >= '\u{1100}' && c != '…' { 2 } else { 1 }).sum()
}

/// Jobs with much to say: long types, long errors, wide characters, each in its state.
fn busy() -> Scratch {
    let q = Scratch::new();
    for path in ["out/a.txt", "out/b.txt"] {
        q.enqueue(&["create_file", &json!({"path": path, "content": "a"}).to_string()]);
    }
    let missing = json!({"path": "资料/没有这样的文件/没有这样的文件/没有.txt", "requireExists": true}).to_string();
    q.enqueue(&["delete_file", &missing, "--max-attempts", "1"]);
    q.ok(&["worker", "--drain"]);
    let first = q.enqueue(&["a_type_with_a_name_that_is_longer_than_one_would_like_it_to_be", "{}"]);
    q.enqueue(&["create_file", r#"{"path":"out/c.txt","content":"c"}"#, "--after", &first]);
    q.enqueue(&["create_file", r#"{"path":"out/d.txt","content":"d"}"#, "--delay", "2h"]);
    q.sql()
        .execute(
            "UPDATE jobs SET last_error = last_error || ': 文件文件文件文件文件文件文件' WHERE status = 'failed'",
            [],
        )
        .unwrap();
    q
}

#[test]
fn tables_fit_the_terminal_whatever_its_width() {
    let q = busy();
    for columns in [40, 80, 120] {
        for args in [vec!["list"], vec!["stats"], vec!["events"], vec!["blame", "out/a.txt"], vec!["handlers"]] {
            let lines = Terminal::wide(columns, &q, &args).screen();
            assert!(lines.len() >= 3 || args[0] == "blame", "{args:?}: {lines:?}");
            // The name of a folder is not cut; no table has it.
            for line in lines.iter().filter(|line| !line.contains("/.jobq/handlers/")) {
                assert!(width(line) <= usize::from(columns), "{args:?} at {columns}: {line:?}");
            }
        }
    }
}

#[test]
fn ids_are_short_on_a_terminal_and_every_command_takes_them() {
    let q = Scratch::new();
    let parent = q.enqueue(&["create_file", r#"{"path":"a","content":"1"}"#]);
    q.enqueue(&["delete_file", r#"{"path":"a"}"#]);
    let lines = Terminal::of(&q, &["list"]).screen();
    let short = lines[2].split_whitespace().next().unwrap();
    assert!(short.len() < 26 && parent.starts_with(short), "{lines:?}");
    assert!(lines[1].contains(&format!("behind {short} on path:a")), "{lines:?}");
    assert!(q.ok(&["list"]).contains(&parent), "whole where programs read");
    assert_eq!(q.json(&["show", short])[0]["id"], json!(parent));
    assert_eq!(q.json(&["events", short]).len(), 1);
    let child = q.enqueue(&["send_mail", "{}", "--after", short]);
    assert_eq!(q.json(&["show", &child])[0]["waiting_on"], json!(parent));
    assert_eq!(q.json(&["cancel", short])[0]["id"], json!(parent));
    assert_eq!(q.json(&["retry", short])[0]["id"], json!(parent));
}

#[test]
fn an_id_is_as_long_as_it_must_be_to_name_one_job() {
    let q = Scratch::new();
    for id in ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW", "01ARZ3NDEKZZZZZZZZZZZZZZZZ"] {
        q.enqueue(&["send_mail", "{}", "--no-key", "--id", id]);
    }
    let lines = Terminal::of(&q, &["list"]).screen();
    let ids: Vec<&str> = lines[1..].iter().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(ids, ["01ARZ3NDEKZZZZ", "01ARZ3NDEKTSV4RRFFQ69G5FAW", "01ARZ3NDEKTSV4RRFFQ69G5FAV"]);
    for args in [
        vec!["show", "01ARZ3NDEKTSV4"],
        vec!["events", "01ARZ3NDEKTSV4"],
        vec!["retry", "01ARZ3NDEKTSV4"],
        vec!["cancel", "01ARZ3NDEKTSV4"],
        vec!["enqueue", "send_mail", "{}", "--after", "01ARZ3NDEKTSV4"],
    ] {
        let error = q.refused(2, &args);
        assert!(error.contains("5FAV") && error.contains("5FAW"), "{args:?} names what there is: {error}");
    }
    // In a batch as everywhere.
    for (id, code) in [("01ARZ3NDEKZZZZ", 0), ("01ARZ3NDEKTSV4", 2)] {
        let batch = format!(r#"{{"type":"send_mail","payload":{{}},"waiting_on":"{id}"}}"#);
        let said = q.run_with_input(&["enqueue", "--batch", "-"], &batch);
        assert_eq!(said.code, code, "{}", said.stderr);
    }
}

/// Names that plain SQL has given may be long, and each the beginning of another.
#[test]
fn a_long_id_takes_no_columns_from_other_jobs() {
    let q = busy();
    let (alone, like) = ("import-".repeat(9) + "1", "customers-2024-".repeat(4));
    assert_eq!((alone.len(), like.len()), (64, 60));
    let insert =
        |id: &str| q.sql().execute("INSERT INTO jobs (id, type, payload) VALUES (?1, 'send_mail', '{}')", [id]);
    insert(&alone).unwrap();
    let head = || Terminal::of(&q, &["list"]).screen();
    let wanted = |line: &str| ["ID", "TYPE", "STATUS", "AGE"].iter().all(|name| line.contains(name));
    let lines = head();
    assert!(wanted(&lines[0]) && lines[0].contains("NOTE"), "{lines:?}");
    let short = lines[1].split_whitespace().next().unwrap();
    assert!(short.len() < 20 && lines[1].contains("send_mail"), "{lines:?}");
    assert_eq!(q.json(&["show", short])[0]["id"], json!(alone), "as every command takes it");
    for id in ["0001", "0002"] {
        insert(&(like.clone() + id)).unwrap();
    }
    let lines = head();
    assert!(wanted(&lines[0]) && lines[0].contains("TRIES"), "{lines:?}");
    q.ok(&["worker", "--drain"]);
    q.ok(&["cancel", &(like + "0001")]);
    for columns in [40, 60, 80] {
        for args in [&["list"][..], &["events"], &["stats"]] {
            let lines = Terminal::wide(columns, &q, args).screen();
            for line in &lines {
                assert!(width(line) <= usize::from(columns), "{args:?} at {columns}: {line:?}");
            }
            assert!(args[0] != "events" || lines.iter().any(|line| line.ends_with("cancelled")), "{lines:?}");
        }
    }
}

#[test]
fn an_empty_list_says_what_to_do_next_and_leaves_standard_output_alone() {
    let q = Scratch::new();
    let (none, filter) = (["list"].as_slice(), ["list", "--status", "failed"].as_slice());
    for args in [none, filter] {
        let said = q.run(args);
        assert_eq!((said.code, said.stdout.as_str()), (0, ""));
        assert!(said.stderr.contains("no jobs yet") && said.stderr.contains("jobq enqueue"), "{}", said.stderr);
    }
    q.enqueue(&["send_mail", "{}"]);
    let said = q.run(filter);
    assert!(said.stdout.is_empty() && said.stderr.contains("`jobq list` shows all"), "{}", said.stderr);
    for more in ["--json", "-q"] {
        let said = q.run(&["list", "--status", "failed", more]);
        assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("", ""), "{more}");
    }
}

/// It is queued all the same: a worker that knows the type may come.
#[test]
fn a_slip_in_the_name_of_a_type_is_told_with_what_was_probably_meant() {
    let q = Scratch::new();
    let lines = Terminal::of(&q, &["enqueue", "creat_file", "{}"]).screen();
    assert!(lines[0].starts_with("queued") && lines[1].contains("did you mean create_file?"), "{lines:?}");
    let lines = Terminal::of(&q, &["enqueue", "send_mail", "{}"]).screen();
    assert!(lines[1].contains("`jobq handlers`"), "{lines:?}");
    let lines = Terminal::of(&q, &["enqueue", "create_file", r#"{"path":"a","content":""}"#]).screen();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(q.run(&["enqueue", "creat_file", "{\"n\":2}"]).stderr, "", "nobody there to be told");
}

#[test]
fn a_status_has_its_colour_on_a_terminal() {
    let q = busy();
    let mut command = q.command(&["list"]);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(name);
    }
    let (shown, _) = Terminal::fed(&mut command).end();
    for coloured in ["\u{1b}[32mcompleted", "\u{1b}[31mfailed", "\u{1b}[33mpending"] {
        assert!(shown.contains(coloured), "{coloured:?}: {shown:?}");
    }
}

/// Only a word that is too long for a line of its own goes beyond the edge.
#[test]
fn lines_are_broken_between_words() {
    const COLUMNS: u16 = 60;
    let q = busy();
    std::fs::write(q.path().join("out/a.txt"), "changed").unwrap();
    let failed = q.json(&["list", "--status", "failed"])[0]["id"].as_str().unwrap().to_owned();
    q.sql()
        .execute("UPDATE jobs SET last_error = 'no paper, ' || hex(zeroblob(9)) || ' and ink' WHERE id = ?1", [&failed])
        .unwrap();
    let refused = ["commit", "--db", "no-such-folder/with-a-name/that-is-rather-long.db"];
    for args in [&["reconcile"][..], &["show", &failed], &["config"], &["doctor"], &["worker", "--drain"], &refused] {
        let lines = Terminal::wide(COLUMNS, &q, args).screen();
        assert_ne!(lines.len(), 0, "{args:?}");
        for line in &lines {
            let longest = line.split(' ').map(width).max().unwrap_or(0);
            assert!(width(line) <= usize::from(COLUMNS) || longest > 36, "{args:?}: {line:?}");
        }
    }
    // Unless it is a command, which is there to be copied.
    let lines = Terminal::wide(COLUMNS, &q, &["blame", "out/never-written.txt"]).screen();
    assert!(lines.iter().filter(|line| line.contains('`')).all(|line| line.matches('`').count() % 2 == 0), "{lines:?}");
    let lines = Terminal::wide(COLUMNS, &q, &["config"]).screen();
    let at = lines.iter().position(|line| line.starts_with("handlers.claude_extraction.pass_env")).unwrap();
    assert!(
        lines[at + 1].starts_with("    [\"ANTHROPIC_*\", \"CLAUDE_*\", "),
        "where there is room: {:?}",
        &lines[at..at + 3]
    );
}

#[test]
fn a_narrow_list_has_the_reason_rather_than_the_tries_or_below() {
    let q = busy();
    let lines = Terminal::wide(70, &q, &["list"]).screen();
    assert!(lines[0].contains("NOTE") && !lines[0].contains("TRIES"), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("  waits on")), "{lines:?}");
    let lines = Terminal::wide(60, &q, &["list"]).screen();
    assert!(lines[0].contains("TRIES") && !lines[0].contains("NOTE"), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("    waits on")), "{lines:?}");
}

#[test]
fn how_long_it_takes_until_a_job_runs_is_told_to_two_units() {
    let q = busy();
    let list = || Terminal::of(&q, &["list"]).screen()[1].clone();
    assert!(list().ends_with("  runs in 2h"), "{}", list());
    let move_by = |minutes: i64| {
        q.sql().execute("UPDATE jobs SET run_at = run_at + ?1 * 60000 WHERE gate = 'delayed'", [minutes])
    };
    move_by(-30).unwrap();
    assert!(list().ends_with("  runs in 1h 30m"), "{}", list());
    move_by(-90).unwrap();
    assert!(list().ends_with("  due now"), "{}", list());
}

/// A log line in the middle of a bar would leave half of it on the screen.
#[test]
fn drift_is_told_once_by_a_worker_too() {
    let q = busy();
    std::fs::write(q.path().join("out/a.txt"), "changed").unwrap();
    let stop = |worker: &Child| kill_process(Pid::from_child(worker), Signal::TERM).unwrap();
    let mut terminal = Terminal::of(&q, &["worker"]);
    terminal.until("1 of 2 paths");
    stop(&terminal.child);
    let (shown, _) = terminal.end();
    assert!(!shown.contains("WARN"), "{shown}");
    let log = q.path().join(".jobq/log");
    let mut logging = q.command(&["worker"]);
    let mut logging = logging.stdout(Stdio::null()).stderr(File::create(&log).unwrap()).spawn().unwrap();
    wait_until("the log where logs are read", || std::fs::read_to_string(&log).unwrap().contains("out/a.txt"));
    stop(&logging);
    logging.wait().unwrap();
}

/// The line of a finding is all that is said of it.
#[test]
fn drift_is_told_once() {
    let q = busy();
    std::fs::write(q.path().join("out/a.txt"), "changed").unwrap();
    let lines = Terminal::of(&q, &["reconcile"]).screen();
    assert_eq!(lines.iter().filter(|line| line.contains("out/a.txt")).count(), 1, "{lines:?}");
    assert!(lines[0].starts_with("changed    out/a.txt") && lines[1].contains("1 differ"), "{lines:?}");
    let said = q.run(&["reconcile"]);
    assert!(!said.stderr.contains("out/a.txt") && said.stdout.contains("out/a.txt"), "anywhere: {}", said.stderr);
}

/// All of it is in `jobq show`.
#[test]
fn a_failure_that_has_much_to_say_does_not_fill_the_screen() {
    let q = Scratch::new();
    let handler = q.path().join(".jobq/handlers/loud");
    std::fs::create_dir(handler.parent().unwrap()).unwrap();
    std::fs::write(&handler, "#!/bin/sh\nhead -c 9000 /dev/zero | tr '\\0' x >&2; exit 65\n").unwrap();
    std::fs::set_permissions(&handler, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let id = q.enqueue(&["loud"]);
    let lines = Terminal::of(&q, &["worker", "--drain"]).screen();
    assert!(lines.iter().map(|line| width(line)).sum::<usize>() < 800, "{lines:?}");
    assert!(lines.concat().contains(&format!("(`jobq show {id}` has all of it)")), "{lines:?}");
}

/// Ids are for typing, and the rest is what the tables are for.
#[test]
fn a_narrow_terminal_keeps_ids_whole_with_status_and_reason() {
    let q = Scratch::new();
    let id = q.enqueue(&["delete_file", r#"{"path":"no-such-file","requireExists":true}"#, "--max-attempts", "1"]);
    q.ok(&["worker", "--drain"]);
    q.sql().execute("UPDATE jobs SET last_error = 'not_found: no-such-file is not there'", []).unwrap();
    let all = |columns: u16, args: &[&str]| {
        let lines = Terminal::wide(columns, &q, args).screen();
        let fits = |line: &&String| width(line) <= usize::from(columns) || line.contains('?');
        assert!(lines.iter().all(|line| fits(&line)), "{columns}: {lines:?}");
        lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for columns in [20, 40, 60, 80, 132] {
        let list = all(columns, &["list", "--status", "failed"]);
        let reason = if columns == 20 { "not_found:" } else { "not_found: no-such-file" };
        assert!(list.contains(&id[..10]) && list.contains("failed"), "{columns}: {list}");
        assert!(list.contains(reason), "{columns}: {list}");
        let stats = all(columns, &["stats"]);
        let failed = stats.split("failed and why?").nth(1).unwrap().split("Is anything").next().unwrap();
        assert!(failed.contains(&id[..10]) && failed.contains(reason), "{columns}: {failed}");
        let hour = stats.split("in the last hour?").nth(1).unwrap();
        assert!(hour.contains("failed"), "{columns}: {hour}");
    }
}
