//! Slips in names of job types and paths: nobody is left to believe that all is well.

use super::harness::Scratch;

fn with_settings(text: &str) -> Scratch {
    let q = Scratch::new();
    std::fs::write(q.path().join(".jobq/config.toml"), text).unwrap();
    q
}

const SLIPS: &str = "[retention.types]\nsend_mial = \"3d\"\n[handlers.creat_file]\ntimeout = \"1m\"\n";

#[test]
fn settings_of_a_type_that_nobody_has_are_told_with_the_nearest() {
    let q = with_settings(SLIPS);
    q.enqueue(&["send_mail", "{}"]);
    for args in [&["config"][..], &["config", "--json"], &["worker", "--drain"]] {
        let said = q.run(args);
        assert_eq!(said.code, 0, "another process may know them: {}", said.stderr);
        let warned: Vec<&str> = said.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
        assert_eq!(warned.len(), 2, "{args:?}: {}", said.stderr);
        let words = [
            (warned[0], ["config.toml:2: retention.types.send_mial", "did you mean `send_mail`?"]),
            (warned[1], ["config.toml:3: handlers.creat_file", "did you mean `create_file`?"]),
        ];
        for (line, words) in words {
            assert!(words.iter().all(|word| line.contains(word)), "{args:?}: {line}");
        }
    }
    assert_eq!(q.run(&["config", "-q"]).stderr, "");
    let doctor = q.json(&["doctor"]);
    let check = doctor.iter().find(|check| check["check"] == "config").unwrap();
    assert_eq!(check["verdict"], "warn");
    let message = check["message"].as_str().unwrap();
    assert!(message.contains("send_mial") && message.contains("`create_file`"), "{message}");
}

/// Retention is kept by whoever prunes, also for the jobs of an application's own worker.
#[test]
fn settings_of_types_that_somebody_has_are_taken_as_they_are() {
    let q = with_settings(
        "[retention.types]\nour_own = \"3d\"\ncreate_file = \"1d\"\n[handlers.delete_file]\ntimeout = \"1m\"\n[handlers.x]\ncommand = [\"true\"]\n",
    );
    assert!(q.run(&["config"]).stderr.contains("retention.types.our_own"), "nobody has heard of it yet");
    q.enqueue(&["our_own", "{}"]);
    for args in [&["config"][..], &["worker", "--drain"]] {
        let said = q.run(args);
        assert!(!said.stderr.contains("warning: "), "{}", said.stderr);
    }
    assert!(q.json(&["doctor"]).iter().any(|check| check["check"] == "config" && check["verdict"] == "ok"));
}

/// What is said of a handler is for the one who runs it, and that is nobody, although there are jobs.
#[test]
fn settings_of_a_handler_that_is_not_here_are_told_though_there_are_jobs() {
    let q = with_settings("[handlers.our_own]\nconcurrency = 1\n");
    q.enqueue(&["our_own", "{}"]);
    let said = q.run(&["config"]);
    assert!(said.stderr.contains("config.toml:1: handlers.our_own") && said.code == 0, "{}", said.stderr);
    assert!(said.stderr.contains("jobq handlers"), "and where to look: {}", said.stderr);
}

#[test]
fn a_comparison_of_a_type_that_nobody_has_is_no_yes() {
    let q = Scratch::new();
    q.enqueue(&["create_file", r#"{"path":"a","content":"A"}"#]);
    q.ok(&["worker", "--drain"]);
    for args in [&["reconcile", "--type", "creat_file"][..], &["reconcile", "--type", "creat_file", "--watch"]] {
        let error = q.refused(3, args);
        assert!(error.contains("creat_file") && error.contains("did you mean `create_file`?"), "{error}");
    }
    assert_eq!(q.json(&["reconcile", "--type", "create_file"])[0]["checked"], 1);
    q.enqueue(&["creat_fil", "{}"]);
    let error = q.refused(3, &["reconcile", "--type", "creat_file"]);
    assert!(error.contains("did you mean `create_file`?"), "not the slip that was queued: {error}");
    assert_eq!(q.json(&["reconcile", "--type", "delete_file"])[0]["checked"], 0, "known, and has left nothing");
    q.enqueue(&["our_own", "{}"]);
    assert_eq!(q.json(&["reconcile", "--type", "our_own"])[0]["checked"], 0, "somebody else runs it");
}

/// What cannot be read says nothing about types.
#[test]
fn a_type_is_not_called_unheard_of_by_a_database_that_cannot_be_read() {
    let q = with_settings("[retention.types]\nour_own = \"3d\"\n");
    std::fs::write(q.db(), "this is not a database").unwrap();
    for args in [&["reconcile", "--type", "our_own"][..], &["reconcile", "--type", "our_own", "--watch"], &["config"]] {
        let said = q.run(args);
        assert_eq!(said.code, 5, "{args:?}: {}", said.stderr);
        assert!(!said.stderr.contains("nobody") && !said.stderr.contains("warning"), "{args:?}: {}", said.stderr);
    }
}

/// Told and no error: before the first job has completed it is so for every path.
#[test]
fn a_comparison_of_paths_that_nobody_left_says_so() {
    let q = Scratch::new();
    q.enqueue(&["create_file", r#"{"path":"data/a.json","content":"A"}"#]);
    q.ok(&["worker", "--drain"]);
    for args in [&["reconcile", "--path", "dta/*.json"][..], &["reconcile", "--json", "--path", "dta/*.json"]] {
        let said = q.run(args);
        assert_eq!((said.code, said.stdout.lines().count()), (0, 1), "the sums, as ever: {}", said.stdout);
        let words = ["warning: ", "dta/*.json", "nothing was compared", "relative to the root"];
        assert!(words.iter().all(|word| said.stderr.contains(word)), "{}", said.stderr);
    }
    let said = q.run(&["reconcile", "--json", "--path", "data/*.json"]);
    assert!(said.stdout.contains("\"checked\":1") && said.stderr.is_empty(), "{} {}", said.stdout, said.stderr);
}

/// The answer is right, only probably not to the question that was meant.
#[test]
fn a_list_of_a_type_that_nobody_has_is_empty_and_says_so() {
    let q = Scratch::new();
    q.enqueue(&["create_file", r#"{"path":"a","content":"A"}"#]);
    for args in [&["list", "--type", "creat_file"][..], &["list", "--type", "creat_file", "--json"]] {
        let said = q.run(args);
        assert_eq!((said.code, said.stdout.as_str()), (0, ""), "{}", said.stderr);
        assert!(said.stderr.contains("did you mean `create_file`?"), "{}", said.stderr);
        assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
    }
    assert_eq!(q.run(&["list", "--type", "delete_file", "--json"]).stderr, "", "known, and there are none");
}

/// A program that was meant to run jobs and does not.
#[test]
fn handlers_that_cannot_be_used_are_told_by_whoever_looks_at_them() {
    let q = with_settings("[handlers.\"re size\"]\ncommand = [\"cat\"]\n");
    let folder = q.path().join(".jobq/handlers");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("plain"), "#!/bin/sh\n").unwrap();
    std::os::unix::fs::symlink("nowhere", folder.join("dangling")).unwrap();
    std::fs::write(folder.join("judged.schema.json"), "{oops").unwrap();
    let words = ["`re size`", "`plain`", "chmod +x", "`dangling`", "a link to nothing", "`judged`"];
    for args in [&["config"][..], &["worker", "--drain"]] {
        let said = q.run(args);
        assert!(said.code == 0 && words.iter().all(|word| said.stderr.contains(word)), "{args:?}: {}", said.stderr);
    }
    let doctor = q.json(&["doctor"]);
    let check = doctor.iter().find(|check| check["check"] == "handlers").unwrap();
    let message = check["message"].as_str().unwrap();
    assert!(check["verdict"] == "warn" && words.iter().all(|word| message.contains(word)), "{message}");
    assert!(check["advice"].as_str().unwrap().contains("jobs of that type wait"), "{check}");
    let healthy = Scratch::new();
    assert!(healthy.json(&["doctor"]).iter().any(|check| check["check"] == "handlers" && check["verdict"] == "ok"));
}

#[test]
fn the_jobs_of_a_type_that_comes_with_jobq_are_not_said_to_wait() {
    let q = Scratch::new();
    super::top::handler(&q, "create_file", "true");
    let advice = || {
        let checks = q.json(&["doctor"]);
        checks.iter().find(|check| check["check"] == "handlers").unwrap()["advice"].as_str().unwrap().to_owned()
    };
    assert!(advice().contains("jobq runs those jobs itself") && !advice().contains("wait"), "{}", advice());
    std::os::unix::fs::symlink("nowhere", q.path().join(".jobq/handlers/dangling")).unwrap();
    assert!(advice().contains("does not come with jobq wait"), "{}", advice());
}

#[test]
fn a_number_that_cannot_be_is_told_why() {
    for (value, why) in [
        ("-1", "must not be below 0, but is -1"),
        ("99999999999999999999", "is too large: 99"),
        ("\"4\"", "must be a whole number, but is a text"),
    ] {
        let q = with_settings(&format!("[handlers.create_file]\nconcurrency = {value}\n"));
        let error = q.refused(2, &["list"]);
        assert!(error.contains(&format!("handlers.create_file.concurrency: {why}")), "{error}");
    }
}
