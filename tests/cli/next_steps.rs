//! A mistake is told in words, with what to do next.

use std::os::unix::fs::PermissionsExt as _;

use super::harness::Scratch;

#[test]
fn what_was_typed_wrong_is_told_in_words() {
    let q = Scratch::new();
    let number = "is not a whole number";
    for (args, says) in [
        (&["enqueue", "t", "--priority", "high"][..], number),
        (&["enqueue", "t", "--max-attempts", "3.5"], number),
        (&["list", "--limit", "many"], number),
        (&["list", "--limit", "0"], "must be at least 1"),
        (&["events", "--after", "01J9"], number),
        (&["extract", "a.json", "--template", "t", "--target", "o", "--priority", "x"], number),
        (&["reconcile", "--path", "["], "`[[]`"),
        (&["show", ""], "`jobq list`"),
    ] {
        let error = q.refused(2, args);
        assert!(error.contains(says) && !error.contains("invalid digit"), "{args:?}: {error}");
    }
}

/// And not all that could have been.
#[test]
fn of_options_that_exclude_each_other_only_those_that_were_typed_are_named() {
    let q = Scratch::new();
    let error = q.refused(2, &["enqueue", "--batch", "jobs.jsonl", "--lane", "a"]);
    assert!(error.contains("--batch") && error.contains("--lane") && !error.contains("--priority"), "{error}");
    for option in ["--priority=1", "--key=a", "--no-key", "--unique=active", "--id=a", "--delay=1s", "--run-at=a"] {
        q.refused(2, &["enqueue", "--batch", "-", option]);
    }
    for option in ["--max-attempts=1", "--timeout=1s", "--after=a", "--correlation-id=a", "--wait"] {
        q.refused(2, &["enqueue", "--batch", "-", option]);
    }
}

#[test]
fn a_database_that_is_not_there_can_be_made_as_it_is_told() {
    let q = Scratch::empty();
    for (place, next) in [("--db=own.db", "`jobq init --db own.db`"), ("--root=sub", "`jobq init --root sub`")] {
        let error = q.refused(3, &[place, "list"]);
        assert!(error.contains(next), "{error}");
        let words: Vec<&str> = next.trim_matches('`').split(' ').skip(1).collect();
        std::fs::create_dir_all(q.path().join("sub")).unwrap();
        q.ok(&words);
        q.ok(&[place, "list"]);
    }
    let error = q.refused(3, &["--db", "sub", "list"]);
    assert!(error.contains("sub is a folder") && error.contains("--root sub"), "{error}");
}

/// There is no database yet, or none is concerned.
#[test]
fn the_doctor_is_named_only_where_there_is_something_to_look_at() {
    let q = Scratch::empty();
    std::fs::write(q.path().join("taken"), "").unwrap();
    for args in [&["init", "taken"][..], &["man", "--dir", "taken/man1"]] {
        let error = q.refused(5, args);
        assert!(error.contains("taken") && !error.contains("jobq doctor"), "{error}");
    }
    q.ok(&["init"]);
    std::fs::write(q.db(), "no database").unwrap();
    assert!(q.refused(5, &["list"]).contains("jobq doctor"));
}

#[test]
fn a_write_of_a_commit_without_a_content_is_told_what_it_needs() {
    let q = Scratch::new();
    for (write, says) in [
        (r#"{"path":"a"}"#, "error: writes[0]: a needs exactly one of json, text and base64\n"),
        (r#"{"path":"a","base64":"@"}"#, "error: writes[0]: base64: is not base64: "),
    ] {
        let said = q.run_with_input(&["commit"], &format!("{{\"writes\":[{write}]}}"));
        assert!(said.code == 2 && said.stderr.starts_with(says), "{}", said.stderr);
    }
    let said = q.run_with_input(&["commit"], "{oops");
    assert!(said.code == 2 && said.stderr.contains("is not a commit document"), "{}", said.stderr);
}

/// A job that has decided nothing has no conflict that could be settled.
#[test]
fn only_a_conflict_with_the_disk_can_be_settled_by_accepting_it() {
    let q = Scratch::new();
    let folder = q.path().join(".jobq/handlers");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("broken"), "#!/bin/sh\nexit 65\n").unwrap();
    std::fs::set_permissions(folder.join("broken"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let failed = q.enqueue(&["broken"]);
    q.ok(&["worker", "--drain"]);
    let error = q.refused(4, &["retry", &failed, "--accept-disk"]);
    assert!(error.contains(&failed) && error.contains("without --accept-disk"), "{error}");
    assert_eq!(q.json(&["show", &failed])[0]["status"], "failed");
    q.ok(&["retry", &failed]);
}

#[test]
fn a_job_that_cannot_be_retried_is_told_what_can_be_done_instead() {
    let q = Scratch::new();
    let id = q.enqueue(&["create_file", r#"{"path":"a","content":"a"}"#]);
    let error = q.refused(4, &["retry", &id]);
    assert!(error.contains("is pending") && error.contains("jobq show"), "{error}");
    q.ok(&["worker", "--drain"]);
    let error = q.refused(4, &["retry", &id]);
    assert!(error.contains("is completed") && error.contains("jobq enqueue"), "{error}");
}

#[test]
fn what_is_said_beside_the_result_is_left_out_when_nobody_wants_it() {
    let q = Scratch::empty();
    assert_eq!(q.ok(&["init", "-q"]), "made .jobq/jobq.db\n");
    let said = q.run(&["init", "other"]);
    assert!(said.stderr.contains("jobq enqueue create_file"), "{}", said.stderr);
}

/// The hint after `init` is typed as it stands, from where `init` was.
#[test]
fn what_init_proposes_works_where_it_was_typed() {
    for (args, go) in [
        (&["init", "my project"][..], "cd 'my project' && jobq enqueue"),
        (&["--db", "app.db", "init"], "jobq --db app.db enqueue"),
        (&["init"], "`jobq enqueue"),
    ] {
        let q = Scratch::empty();
        let said = q.run(args);
        assert!(said.code == 0 && said.stderr.contains(go), "{args:?}: {}", said.stderr);
        let line = said.stderr.split('`').nth(1).unwrap();
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_jobq")).parent().unwrap().to_path_buf();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let done = std::process::Command::new("sh").args(["-c", line]).current_dir(q.path()).env("PATH", path).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn a_finding_is_told_with_what_can_be_done_about_it() {
    let q = Scratch::new();
    q.enqueue(&["create_file", r#"{"path":"a.txt","content":"a"}"#]);
    q.ok(&["worker", "--drain"]);
    assert_eq!(q.run(&["reconcile"]).stderr, "", "nothing to be done");
    std::fs::write(q.path().join("a.txt"), "b").unwrap();
    let said = q.run(&["reconcile"]);
    assert!(said.code == 1 && said.stderr.contains("`jobq reconcile --requeue`"), "{}", said.stderr);
    for args in [&["reconcile", "--json"][..], &["-q", "reconcile"]] {
        let said = q.run(args);
        assert!(said.code == 1 && !said.stderr.contains("--requeue"), "{}", said.stderr);
    }
    let said = q.run(&["reconcile", "--requeue", "--yes"]);
    assert!(said.code == 1 && !said.stderr.contains("--requeue"), "it is being done: {}", said.stderr);
}
