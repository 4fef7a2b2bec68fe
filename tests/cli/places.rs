//! Where the database is found, and what `init` leaves.

use super::harness::{Scratch, batch_of};

#[test]
fn without_a_database_every_command_says_so_with_exit_3() {
    let q = Scratch::empty();
    for args in [vec!["list"], vec!["stats"], vec!["enqueue", "x", "{}"], vec!["events"], vec!["show", "a"]] {
        assert!(q.refused(3, &args).contains("jobq init"), "{args:?}");
    }
    assert!(q.refused(3, &["list", "--db", "nowhere.db"]).contains("nowhere.db"));
    assert!(!q.path().join("nowhere.db").exists(), "looking does not make one");
}

#[test]
fn init_makes_what_is_needed_and_repeating_it_changes_nothing() {
    let q = Scratch::empty();
    let said = q.run(&["init", "project"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "made project/.jobq/jobq.db\n"), "{}", said.stderr);
    assert!(said.stderr.contains("jobq enqueue"), "what to do next is a hint: {}", said.stderr);
    assert_eq!(q.run(&["init", "another", "-q"]).stderr, "");
    let folder = q.path().join("project/.jobq");
    let config = folder.join("config.toml");
    std::fs::write(&config, "busy_timeout = \"2s\"\n").unwrap();
    let before = std::fs::read(folder.join("jobq.db")).unwrap();
    assert!(q.ok(&["init", "project"]).contains("there already"));
    assert_eq!(std::fs::read(folder.join("jobq.db")).unwrap(), before);
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "busy_timeout = \"2s\"\n");
    assert!(folder.join(".gitignore").exists());
}

#[test]
fn the_database_is_found_by_flag_variable_and_in_parent_folders() {
    let q = Scratch::new();
    q.enqueue(&["send_mail", "{}"]);
    let deep = q.path().join("a/b/c");
    std::fs::create_dir_all(&deep).unwrap();
    let lines = |command: &mut std::process::Command| {
        String::from_utf8(command.output().unwrap().stdout).unwrap().lines().count()
    };
    assert_eq!(lines(q.command(&["list", "--json"]).current_dir(&deep)), 1);
    let other = Scratch::empty();
    assert_eq!(lines(other.command(&["list", "--json"]).env("JOBQ_DB", q.db())), 1);
    assert_eq!(lines(&mut other.command(&["list", "--json", "--db", q.db().to_str().unwrap()])), 1);
    assert_eq!(lines(&mut other.command(&["--root", q.path().to_str().unwrap(), "list", "--json"])), 1);
}

#[test]
fn a_mistake_in_the_settings_names_the_file_and_the_field() {
    let q = Scratch::new();
    std::fs::write(q.path().join(".jobq/config.toml"), "busy_timeout = \"soon\"\n").unwrap();
    let error = q.refused(2, &["list"]);
    assert!(error.contains("config.toml") && error.contains("busy_timeout"), "{error}");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let q = Scratch::new();
    let lines = batch_of(2_000);
    assert_eq!(q.run_with_input(&["enqueue", "--batch", "-"], &lines).code, 0);
    let mut child = q
        .command(&["events", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

/// Exit 5 would say that nothing has happened.
#[test]
fn who_cannot_be_told_that_a_job_was_accepted_is_told_to_ask_again() {
    let q = Scratch::new();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = q.command(&["enqueue", "send_mail", "{}", "--json"]).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(6));
    assert!(String::from_utf8(output.stderr).unwrap().contains("ask again with the same id or key"));
    assert_eq!(q.json(&["list"]).len(), 1);
    let output = q.command(&["list", "--json"]).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "nothing was to be changed");
}

#[test]
fn a_config_file_of_the_application_beside_its_database_is_none_of_ours() {
    let q = Scratch::empty();
    std::fs::write(q.path().join("config.toml"), "[server]\nport = 1\n").unwrap();
    q.ok(&["--db", "app.db", "init"]);
    q.ok(&["--db", "app.db", "enqueue", "send_mail", "{}"]);
    assert_eq!(q.json(&["--db", "app.db", "list"]).len(), 1);
}

#[test]
fn what_is_typed_counts_before_the_environment_and_an_empty_variable_is_none() {
    let q = Scratch::new();
    let run = |args: &[&str], db: &str| q.command(args).env("JOBQ_DB", db).output().unwrap().status.code();
    assert_eq!(run(&["list"], ""), Some(0));
    assert_eq!(run(&["init", "other"], "elsewhere.db"), Some(0));
    assert!(q.path().join("other/.jobq/jobq.db").exists() && !q.path().join("elsewhere.db").exists());
}
